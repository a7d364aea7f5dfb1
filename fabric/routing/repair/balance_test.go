package repair

import (
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestEvenOutWithoutLID: hosts without a LID have no routes, so the loads are right after LIDs get other
// entries.
func TestEvenOutWithoutLID(t *testing.T) {
	lid := mad.LID(0)
	g := routingtest.Graph(t, "fattree:k=4,levels=3", graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
		if lid++; !p.Node().IsSwitch() && lid%2 == 0 {
			return 0, 0
		}
		return lid, 0
	}})
	r, full := compute(t, g, "minhop", engines.Options{Policy: engines.First}), compute(t, g, "minhop", engines.Options{})
	if err := evenOut(t.Context(), r, full); err != nil {
		t.Fatal(err)
	}
	load, err := verify.CountAllRoutes(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	best, err := verify.CountAllRoutes(t.Context(), full)
	if most := slices.Max(best); err != nil || slices.Max(load) > most+most/maxWorse {
		t.Errorf("%d routes on a link, %d by a full run, %v", slices.Max(load), slices.Max(best), err)
	}
}
