package spec

import (
	"strings"
	"testing"
)

// TestDragonflyGroups: any two groups have as many cables as any other two, or
// one more.
func TestDragonflyGroups(t *testing.T) {
	for groups, want := range map[int][]int{
		9: {1},
		5: {2},
		4: {2, 3},
	} {
		f := must(t)(dragonfly(4, 1, 2, groups))
		cables := map[[2]string]int{}
		for i := range f.Ports() {
			p := &f.Ports()[i]
			if p.Peer() == nil || !p.Node().IsSwitch() || !p.Peer().Node().IsSwitch() {
				continue
			}
			g, _, _ := strings.Cut(p.Node().Name(), " ")
			h, _, _ := strings.Cut(p.Peer().Node().Name(), " ")
			if g < h {
				cables[[2]string{g, h}]++
			}
		}
		seen := map[int]bool{}
		for _, n := range cables {
			seen[n] = true
		}
		for _, n := range want {
			if !seen[n] {
				t.Errorf("%d groups: none with %d cables", groups, n)
			}
			delete(seen, n)
		}
		if len(seen) > 0 {
			t.Errorf("%d groups: also %v", groups, seen)
		}
	}
}
