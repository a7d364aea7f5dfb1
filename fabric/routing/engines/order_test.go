package engines

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestOrders: under an order that is found all pairs have a path, also where the network is not connected,
// and the moves lower the cost of the order in which they begin.
func TestOrders(t *testing.T) {
	for _, net := range []string{"dragonfly:a=4,p=2,h=2,arrangement=relative", "hyperx:dims=4/4,hosts=2", "random:n=24,degree=4,hosts=3", "ring:n=7,hosts=2", "random:n=24,degree=3,hosts=2,remove_links=40%,seed=1"} {
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		connected, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		found, err := findOrders(t.Context(), g)
		if err != nil || len(found) != orders {
			t.Fatal(net, len(found), err)
		}
		for _, r := range found {
			h, err := graph.UpDown(t.Context(), g, r)
			if err != nil {
				t.Fatal(err)
			}
			for s := range g.Switches() {
				for d := range g.Switches() {
					if (h.Distance(s, d) < 0) != (connected.Distance(s, d) < 0) {
						t.Fatalf("%s: no path from %d to %d", net, s, d)
					}
				}
			}
			x := newOrderSearch(g)
			order := make([]int, len(g.Switches()))
			for s, place := range r.Rank {
				order[place] = s
			}
			number := make([]int, len(g.Switches()))
			before, _, _ := x.cost(t.Context(), x.dense(0, number))
			if after, ok, err := x.cost(t.Context(), order); !ok || err != nil || after > before {
				t.Errorf("%s: cost %g, of the order of numbers %g; %v", net, after, before, err)
			}
		}
	}
	if found, err := findOrders(t.Context(), routingtest.Graph(t, "hyperx:dims=16/16,hosts=1", graph.BuildOptions{})); err != nil || found != nil {
		t.Errorf("of a network that is too large: %d, %v", len(found), err)
	}
}

// TestArrangements: the largest load of nue depends little on how a network is arranged and numbered, and it
// is less than OpenSM's on each (OpenSM 3.3.23 on the generator's own numbers: 172 routes on the
// dragonfly with the absolute arrangement, 256 on the HyperX, 1,980 on the random network).
func TestArrangements(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, x := range []struct {
		nets []string
		most int64
	}{
		{[]string{"dragonfly:a=4,p=2,h=2", "dragonfly:a=4,p=2,h=2,arrangement=relative", "dragonfly:a=4,p=2,h=2,arrangement=circulant", "dragonfly:a=4,p=2,h=2,arrangement=random"}, 140},
		{[]string{"hyperx:dims=6/6,hosts=4"}, 160},
		{[]string{"random:n=50,degree=5,hosts=4"}, 800},
	} {
		var loads []int64
		for _, net := range x.nets {
			for seed := range uint64(3) {
				f := routingtest.Topology(t, net)
				if seed > 0 {
					f = routingtest.WithLMC(t, routingtest.Shuffled(t, f, seed), 0)
				}
				g, err := graph.New(f, graph.BuildOptions{})
				if err != nil {
					t.Fatal(err)
				}
				r := compute(t, g, "nue", Options{})
				if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() {
					t.Errorf("%s, numbers %d: %+v", net, seed, v)
				}
				load, err := largestLoad(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				loads = append(loads, load)
			}
		}
		slices.Sort(loads)
		if worst := loads[len(loads)-1]; worst > x.most {
			t.Errorf("%v: loads %v, want at most %d", x.nets, loads, x.most)
		}
	}
}
