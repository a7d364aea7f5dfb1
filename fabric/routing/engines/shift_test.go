package engines

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
)

// TestShifts: when next hops have been moved, of each LID or of all on a switch at once, loads and flows
// agree with the tables, the sum of the squares of flows has not grown, and no load is above its limit.
func TestShifts(t *testing.T) {
	routingtest.ResultsOnly(t)
	moved := 0
	for i, net := range routingtest.SmallNets() {
		for _, bySwitch := range []bool{false, true} {
			g := routingtest.Graph(t, net, graph.BuildOptions{})
			h, err := graph.AllHops(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			b := newBalancer(routes.New(g, 0), h)
			if i%2 == 1 {
				b.turns, b.toll = lanes.NewTurns(laneNetwork(g)), lowToll
			}
			if bySwitch {
				b.bySwitch(true)
				if slices.ContainsFunc(b.ports, func(ports []uint8) bool { return len(ports) > 1 }) {
					continue
				}
			}
			if err := b.pass(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			x := newShifts(b)
			if x.flows == nil {
				continue
			}
			if err := x.each(t.Context(), x.countPaths); err != nil {
				t.Fatal(err)
			}
			before, entries := x.squares(), routingtest.Tables(b.r)
			x.most = slices.Max(append(b.load, 0))
			if err := x.passes(t.Context(), shiftPasses); err != nil {
				t.Fatal(err)
			}
			squares, err := shiftSquares(t.Context(), b.r, h)
			if err != nil || x.squares() != squares || squares > before {
				t.Errorf("%s: squares %v, counted again %v, before %v, %v", net, x.squares(), squares, before, err)
			}
			load, err := verify.CountAllRoutes(t.Context(), b.r)
			if err != nil || !slices.Equal(load, b.load) || slices.Max(append(load, 0)) > x.most {
				t.Errorf("%s: load %v, counted again %v, at most %d, %v", net, b.load, load, x.most, err)
			}
			for d := range g.Switches() {
				dests := g.DestsOf(d)
				for s := range g.Switches() {
					if row := b.r.Row(s); bySwitch && s != d && slices.ContainsFunc(dests, func(x graph.Dest) bool { return row[x.LID] != row[dests[0].LID] }) {
						t.Errorf("%s: switch %d has several paths to switch %d", net, s, d)
					}
				}
			}
			if !slices.Equal(entries, routingtest.Tables(b.r)) {
				moved++
			}
		}
	}
	if moved < 20 {
		t.Errorf("next hops moved %d times", moved)
	}
}

// TestShiftsOfTables: next hops are moved in tables of searches, with detours: all pairs still have paths,
// which close no cycle and are not longer, no load is beyond the largest before, and flows
// are spread better.
func TestShiftsOfTables(t *testing.T) {
	routingtest.ResultsOnly(t)
	moved, gain := 0, 0.0
	for _, net := range routingtest.SmallNets() {
		r := searched(t, withLMC(t, net, 0))
		if r == nil {
			continue
		}
		before := r.Clone()
		if err := spreadShiftsOf(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(routingtest.Tables(before), routingtest.Tables(r)) {
			continue
		}
		moved++
		if was, is := noLonger(t, net, before, r); is > was {
			t.Errorf("%s: load %d, before %d", net, is, was)
		}
		var a, b figure
		a.measure(t, before)
		b.measure(t, r)
		gain += b.Shift/a.Shift - 1
	}
	if moved < 10 || gain/float64(moved) < 0.02 {
		t.Errorf("next hops moved on %d networks, %.3f gained", moved, gain/float64(moved))
	}
}

// withLMC is the graph of a net whose ports of CAs have 1<<lmc LIDs.
func withLMC(t *testing.T, net string, lmc int) *graph.Graph {
	t.Helper()
	g, err := graph.New(routingtest.WithLMC(t, routingtest.Topology(t, net), lmc), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// searched are tables of searches on one lane; nil: the network has no root.
func searched(t *testing.T, g *graph.Graph) *routes.Routes {
	t.Helper()
	root, ranks, err := search.EscapeRoot(t.Context(), g, nil)
	if err != nil {
		return nil
	}
	connected, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	list, err := search.InLanes(t.Context(), g, []int{root}, ranks, connected)
	if err != nil {
		t.Fatal(err)
	}
	return list[1]
}

// noLonger: no path of after is missing or closes a cycle, and the longest is not longer than before. It returns
// the largest loads.
func noLonger(t *testing.T, net string, before, after *routes.Routes) (was, is int64) {
	t.Helper()
	a, b := routingtest.Verified(t, before, verify.Options{}), routingtest.Verified(t, after, verify.Options{})
	if !b.Acyclic || b.Unreachable != a.Unreachable {
		t.Errorf("%s: acyclic %v, unreachable %d, before %d", net, b.Acyclic, b.Unreachable, a.Unreachable)
	}
	far, load, err := longestAndLoad(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	longest, more, err := longestAndLoad(t.Context(), after)
	if err != nil || longest > far {
		t.Errorf("%s: %d links, before %d, %v", net, longest, far, err)
	}
	return slices.Max(append(load, 0)), slices.Max(append(more, 0))
}
