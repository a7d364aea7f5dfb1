package verify_test

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestFailEachLink: each link taken out, tables as they are; and whether any
// tables would help.
func TestFailEachLink(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	cuts := 0
	for i, spec := range routingtest.SmallNets() {
		if i%3 != 0 {
			continue
		}
		f := routingtest.Topology(t, spec)
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := compute(t, g, "sssp", engines.Options{})
		before := routingtest.Verified(t, r, verify.Options{})
		list, _, err := verify.FailEachLink(t.Context(), r, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(g.Channels())/2 {
			t.Errorf("%s: %d links, want %d", spec, len(list), len(g.Channels())/2)
		}
		for _, l := range list {
			less, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == l.Port }})
			if err != nil {
				t.Fatal(err)
			}
			after := routingtest.Verified(t, r.On(less), verify.Options{})
			best := routingtest.Verified(t, compute(t, less, "sssp", engines.Options{}), verify.Options{})
			if after.Unreachable-before.Unreachable != l.Pairs || best.Unreachable-before.Unreachable != l.Lost || l.Cuts && l.Lost == 0 != (best.Unreachable == before.Unreachable) {
				t.Errorf("%s without %s: %+v; %d pairs are lost, %d for good", spec, l.Port.Label(), l, after.Unreachable-before.Unreachable, best.Unreachable-before.Unreachable)
			}
			if l.Cuts {
				cuts++
			}
		}
	}
	if cuts == 0 {
		t.Error("no link cuts anything: that proves little")
	}
}
