package engine

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/walk"
)

// TestShifts: when next hops have been moved, loads and flows are those of the tables, the sum of
// the squares of flows has not grown, and no load beyond what may be.
func TestShifts(t *testing.T) {
	moved := 0
	for i, net := range routingtest.SmallNets() {
		g := routingtest.Graph(t, net, graph.Options{})
		h, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		b := newBalancer(routes.New(g, 0), h)
		if i%2 == 1 {
			b.turns, b.toll = lanes.NewTurns(network(g)), lowToll
		}
		if err := b.pass(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		x := newShifts(b)
		if x == nil {
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
		load, err := walk.CountAllRoutes(t.Context(), b.r)
		if err != nil || !slices.Equal(load, b.load) || slices.Max(append(load, 0)) > x.most {
			t.Errorf("%s: load %v, counted again %v, at most %d, %v", net, b.load, load, x.most, err)
		}
		if !slices.Equal(entries, routingtest.Tables(b.r)) {
			moved++
		}
	}
	if moved < 10 {
		t.Errorf("next hops moved on %d networks", moved)
	}
}
