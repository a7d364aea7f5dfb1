package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestRegular: every switch has its cables, to different switches, and
// the seed decides to which.
func TestRegular(t *testing.T) {
	links := func(seed int64) (list []string) {
		f := must(t)(randomRegular(20, 5, 4, seed))
		for _, n := range f.OfType(mad.NodeTypeSwitch) {
			others := map[*fabric.Node]bool{}
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					others[q.Node()] = true
					list = append(list, p.Name()+" "+q.Name())
				}
			}
			if len(others) != 5 || others[&n] {
				t.Errorf("seed %d: %s has cables to %d others", seed, n.Label(), len(others))
			}
		}
		return list
	}
	if got, want := must(t)(randomRegular(3, 0, 2, 1)).String(), "fabric: 9 nodes (3 switches, 6 CAs), 6 links, complete"; got != want {
		t.Errorf("without cables between switches: %s, want %s", got, want)
	}
	one := links(1)
	if !cmp.Equal(one, links(1)) || cmp.Equal(one, links(2)) {
		t.Error("the seed does not decide")
	}
}
