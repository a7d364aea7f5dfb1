package repair

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
)

// TestRepairKeepsLanes: after the loss of a link, the tables of lash and dfsssp have as many lanes as
// before, where that is possible, in nearly all cases. In those that are proven not to be possible for
// paths that must change alone, a few others move. A mesh has no other lane to move to: one is added,
// and no more blocks change than must.
func TestRepairKeepsLanes(t *testing.T) {
	for _, x := range []struct {
		engine, spec  string
		step          int     // every so many links
		proven, added int     // losses that are, and with a lane more
		moved         int     // other paths in all, at most
		most          float64 // blocks, times those that must change
	}{
		{"lash", "torus:dims=4/4/4,hosts=1", 24, 4, 0, 10, 1.25},
		{"lash", "dragonfly:a=6,p=3,h=2", 40, 3, 1, 40, 1.1},
		{"lash", "random:n=50,degree=5,hosts=1", 10, 1, 0, 2, 1.05},
		{"lash", "mesh:dims=4/4/4,hosts=1", 24, 4, 4, 0, 1},
		{"dfsssp", "mesh:dims=5/5,hosts=1", 8, 3, 3, 0, 1},
	} {
		whole := damaged(t, x.spec)
		links := whole.switchLinks()
		old := compute(t, whole.graph(t), x.engine, engines.Options{})
		cases, proven, added, moved, blocks, least := 0, 0, 0, 0, 0, 0
		for i := 0; i < len(links); i += x.step {
			d := &damage{whole.f, map[*fabric.Port]bool{links[i]: true}, map[*fabric.Node]bool{}}
			g := d.graph(t)
			if unavoidable(t, old, g) {
				proven++
			}
			r, err := Tables(t.Context(), old, g)
			if err != nil {
				t.Fatal(err)
			}
			got := judge(t, old, r, r)
			if got.wrong != nil {
				t.Errorf("%s, %s without link %d: %q", x.engine, x.spec, i, got.wrong)
			}
			if r.Lanes() > old.Lanes() {
				added++
			}
			cases, moved, blocks, least = cases+1, moved+got.moved, blocks+got.blocks, least+got.least
		}
		t.Logf("%s, %s: %d losses, %d proven, %d with a lane more; %d other paths on other lanes; %d blocks change, %d must", x.engine, x.spec, cases, proven, added, moved, blocks, least)
		if proven != x.proven || added != x.added || moved > x.moved || float64(blocks) > x.most*float64(least) {
			t.Errorf("%s, %s: want %d losses proven, %d with a lane more, at most %d other paths on other lanes, %.2f times the blocks", x.engine, x.spec, x.proven, x.added, x.moved, x.most)
		}
	}
}
