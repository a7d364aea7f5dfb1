package verify_test

import (
	"strings"
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

func TestLanes(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=3", graph.BuildOptions{})
	r := compute(t, g, "minhop", engines.Options{})
	from, to := routingtest.LID(t, g, "node-0001 HCA-1"), routingtest.LID(t, g, "node-0002 HCA-1")
	r.SL = &routes.SL{Dest: []uint8{0, 1, 2, 3, 4, 5, 6}}
	if p, _ := r.Trace(from, to); p.SL != uint8(to) || p.Hops[0].VL != 0 {
		t.Errorf("%+v", p)
	}
	r.SL2VL = routes.NewSL2VL(g)
	if p, _ := r.Trace(from, to); p.Hops[0].VL != uint8(to) {
		t.Errorf("%+v", p)
	}
	one := g.Terminals()[g.TerminalByLID(from)]
	out := r.Row(one.Switch).Port(to)
	if err := r.SL2VL.Set(one.Switch, one.Out, out, [16]uint8{0, 0, 0, 0, 0, 7, 0}); err != nil {
		t.Fatal(err)
	}
	clone := r.Clone()
	if err := r.SL2VL.Set(one.Switch, one.Out, out, [16]uint8{5: mad.DropVL}); err != nil {
		t.Fatal(err)
	}
	if p, _ := clone.Trace(from, to); p.Hops[0].VL != 7 || p.Broken != "" {
		t.Errorf("%+v", p)
	}
	if p, _ := r.Trace(from, to); p.Broken != `"switch-1" (0x0002c90300100000) drops SL 5 from port 1 to port 3` {
		t.Errorf("%+v", p)
	}
	// The lane that drops breaks that pair, and no other.
	v := routingtest.Verified(t, r, verify.Options{})
	if v.Unreachable != 1 || v.Pairs != 6 || len(v.Broken) != 1 || v.Broken[0].From != one.Port || v.Broken[0].LID != to {
		t.Errorf("%+v", v)
	}
	if err := r.SL2VL.Set(0, 1, 4, [16]uint8{}); err == nil || err.Error() != `"switch-1" (0x0002c90300100000) has ports 0..3, not 4` {
		t.Error(err)
	}
	r.SL.Pair = make([][]uint8, len(g.Terminals()))
	r.SL.Pair[0] = []uint8{9, 9}
	if r.SL.Of(0, 1) != 9 || r.SL.Of(0, 2) != 2 || r.SL.Of(1, 1) != 1 || r.SL.Of(1, 99) != 0 {
		t.Error("service levels of pairs")
	}
}

// TestLanesBreakLoops: a ring's credit loop is gone when packets change lanes
// where they pass the dateline.
func TestLanesBreakLoops(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=6,hosts=1", graph.BuildOptions{})
	r := compute(t, g, "minhop", engines.Options{})
	if v := routingtest.Verified(t, r, verify.Options{}); v.Acyclic || len(v.Cycle) != 6 || v.OK() {
		t.Errorf("%+v", v)
	}
	// SL 1 for paths that pass between the last switch and the first.
	r.SL, r.SL2VL = &routes.SL{Pair: make([][]uint8, len(g.Terminals()))}, routes.NewSL2VL(g)
	for i, from := range g.Terminals() {
		r.SL.Pair[i] = make([]uint8, int(g.Top())+1)
		for _, to := range g.LIDs(graph.ClassCN) {
			p, err := r.Trace(from.LID, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Hops {
				if c := g.Target(int32(h.Switch), h.Out); c >= 0 && g.Channels()[c].From+g.Channels()[c].To == 5 && g.Channels()[c].From%5 == 0 {
					r.SL.Pair[i][to] = 1
				}
			}
		}
	}
	v := routingtest.Verified(t, r, verify.Options{})
	if !v.OK() || v.Judged != "static forwarding tables, their service levels and virtual lanes" || !strings.HasPrefix(v.Notes[1], "paths have service levels that OpenSM's engine file does not set: with it this is analysis only; ") {
		t.Errorf("%+v\n%s", v, verify.FormatCycle(v.Cycle))
	}
	// The lanes stay with the tables in another graph of the subnet.
	again, err := graph.New(g.Fabric(), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := routingtest.Verified(t, r.On(again), verify.Options{Union: r}); !v.OK() || r.On(again).SL.Of(2, 9) != r.SL.Of(2, 9) {
		t.Errorf("%+v\n%s", v, verify.FormatCycle(v.Cycle))
	}
	r.SL2VL = nil
	if v := routingtest.Verified(t, r, verify.Options{}); v.Acyclic || v.Judged != "static forwarding tables, their service levels, all on VL 0" {
		t.Errorf("%+v", v)
	}
}
