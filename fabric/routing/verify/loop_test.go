package verify_test

import (
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// roundRing returns tables of a ring that lead to all LIDs one way round.
func roundRing(t *testing.T) *routes.Routes {
	t.Helper()
	g := routingtest.Graph(t, "ring:n=5,hosts=20", graph.BuildOptions{})
	r := routes.New(g, 0)
	for s := range g.Switches() {
		for _, d := range g.Dests() {
			port := d.Out
			if home := g.Terminals()[d.Terminal].Switch; home != s {
				for c := g.FirstChannel(s); c < g.FirstChannel(s+1); c++ {
					if int(g.Channels()[c].To) == (s+1)%len(g.Switches()) {
						port = g.Channels()[c].Port
					}
				}
			}
			r.Row(s)[d.LID] = port
		}
	}
	return r
}

// TestLoopOf: paths that cover a credit loop close it on one service level, and do not where each has
// a lane of its own.
func TestLoopOf(t *testing.T) {
	r := roundRing(t)
	v, err := verify.Tables(t.Context(), r, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Acyclic || len(v.Cycle) != 5 {
		t.Fatal(v.Cycle)
	}
	paths := verify.PathsThrough(r, v.Cycle, 1000)
	if len(paths) < 5*8 || len(paths) > 5*8*4 {
		t.Errorf("%d paths", len(paths))
	}
	if few := verify.PathsThrough(r, v.Cycle, 7); len(few) != 7 {
		t.Errorf("%d paths, want 7", len(few))
	}
	r.SL2VL = routes.NewSL2VL(r.Graph())
	if loop := verify.LoopOf(r, paths); len(loop) != 5 || loop[0].VL != 0 {
		t.Errorf("on one lane: %v", loop)
	}
	for _, p := range paths { // those from each switch have a lane
		p.SL = uint8(p.Hops[0].Switch)
	}
	if loop := verify.LoopOf(r, paths); loop != nil {
		t.Errorf("on a lane for each switch: %v", loop)
	}
	var zero mad.LID
	if w := v.WithoutLoop("why"); w.Wrong() || w.OK() || len(w.Cycle) > 0 || w.LoopUnknown != "why" || len(v.Cycle) != 5 || v.Cycle[0].LID == zero {
		t.Errorf("%+v", w)
	}
}
