package engines

import (
	"maps"
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
)

// TestScope: each switch alone spreads its LIDs evenly, which as a whole is not even
// at all; where those count that come through, the links get as many routes as
// with ftree.
func TestScope(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=8,levels=3", graph.BuildOptions{})
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	busiest := map[string]traffic.Distribution{}
	for _, scope := range scopes() {
		r := routes.New(g, 0)
		if err := Assign(t.Context(), r, h, AssignOptions{Scope: scope}); err != nil {
			t.Fatal(err)
		}
		for s := range g.Switches() {
			up := map[uint8]int{}
			for _, d := range g.Dests() {
				if next := h.Next(s, g.Terminals()[d.Terminal].Switch); d.Out > 0 && len(next) > 1 {
					for _, p := range next {
						up[p] += routingtest.Count(p == r.Row(s)[d.LID])
					}
				}
			}
			counts := slices.Sorted(maps.Values(up))
			if scope == PerSwitch && len(counts) > 0 && counts[len(counts)-1]-counts[0] > 1 {
				t.Errorf("%s spreads LIDs over its ports up unevenly: %v", g.Switches()[s].Label(), up)
			}
		}
		b, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		busiest[scope] = b.Routes
	}
	best, err := traffic.MeasureBalance(t.Context(), compute(t, g, "ftree", Options{}), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if busiest[Global] != best.Routes {
		t.Errorf("global: %+v, ftree %+v", busiest[Global], best.Routes)
	}
	if busiest[PerSwitch].Max < 2*busiest[Global].Max {
		t.Errorf("%+v", busiest)
	}
}
