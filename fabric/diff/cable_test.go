package diff

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestCablesAnyhow: however cables change, each cable that differs is reported once.
func TestCablesAnyhow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		f := tree(t)
		d := draftOf(f)
		var all []string
		for _, n := range d.nodes {
			for num := range int(n.info.NumPorts) {
				all = append(all, portOf(n, num+1))
			}
		}
		for range random.IntN(12) {
			a, b := all[random.IntN(len(all))], all[random.IntN(len(all))]
			x, y := d.end(a), d.end(b)
			_, linked := x.node.peers[x.num]
			_, too := y.node.peers[y.num]
			switch {
			case linked && x.node.peers[x.num] == y:
			case linked && too && random.IntN(3) > 0:
				d.cross(a, b)
			case linked:
				d.unlink(a)
			case !too && a != b:
				d.link(a, b)
			}
		}
		g := d.build()
		r, err := Compare(t.Context(), f, g)
		if err != nil {
			t.Fatal(err)
		}
		gone, come := differing2(f, g), differing2(g, f)
		for _, x := range r.Changes {
			switch x.Kind {
			case LinkGone:
				gone--
			case LinkNew:
				come--
			case LinkMoved:
				gone--
				come--
			case LinkSwapped:
				n := strings.Count(x.Before, " - ")
				if strings.Contains(x.Before, " more") {
					n = len(all) // too long to be counted
				}
				gone -= n
				come -= n
			default:
				t.Errorf("%+v", x)
			}
		}
		if gone > 0 || come > 0 || gone != 0 && gone > -len(all)/2 {
			t.Fatalf("%d links that went and %d that came are not told:\n%s", gone, come, reportLines(r))
		}
	}
}
