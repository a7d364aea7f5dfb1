package engines

import (
	"fmt"
	"testing"

	"fabsh/fabric"
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
			before, _, _ := x.cost(t.Context(), graph.DenseOrder(g, 0, number))
			if after, ok, err := x.cost(t.Context(), order); !ok || err != nil || after > before {
				t.Errorf("%s: cost %g, of the order of numbers %g; %v", net, after, before, err)
			}
		}
	}
	if found, err := findOrders(t.Context(), routingtest.Graph(t, "hyperx:dims=32/32,hosts=1", graph.BuildOptions{})); err != nil || len(found) > 0 {
		t.Errorf("of a network that is too large: %d, %v", len(found), err)
	}
}

// TestPlanes: nue has hardly more load than engines that may close loops, where the planes of a network are linked at
// each switch: the planes are a dimension, and what each plane is decides about the order in the other one.
func TestPlanes(t *testing.T) {
	routingtest.ResultsOnly(t)
	for spec, most := range map[string]float64{
		"fattree:k=8,planes=4":                      1,
		"fattree:k=8,planes=2,rails=2":              1.5,
		"fattree:k=4,levels=3,planes=4":             1,
		"dragonfly+:p=1,planes=4,leaves=2,spines=2": 1,
		"dragonfly:a=4,p=2,h=2,planes=2":            1.5,
		"random:n=10,degree=3,hosts=2,planes=2":     1.5,
	} {
		for seed := range 2 {
			spec := spec
			if seed > 0 {
				spec += fmt.Sprintf(",numbering=random,seed=%d", seed)
			}
			f := routingtest.Topology(t, spec)
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			shortest, err := largestLoad(t.Context(), compute(t, g, sssp.Name, Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if load := nueLoad(t, f); float64(load) > most*float64(shortest) {
				t.Errorf("%s: %d routes on a channel, sssp: %d", spec, load, shortest)
			}
		}
	}
}

// TestAggregation: where aggregation nodes are on all switches, and some pairs have no path up to a top and then
// down, nue has hardly more load than updn.
func TestAggregation(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, spec := range []string{"fattree:k=8,levels=2", "fattree:k=8,levels=3", "pgft:m=8/8/8,w=1/8/8,p=1/1/1,remove_links=2%"} {
		for _, numbering := range []string{"", ",numbering=random,seed=1"} {
			f := routingtest.Topology(t, spec+",aggregation=yes"+numbering)
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			most, err := largestLoad(t.Context(), compute(t, g, updn.Name, Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if load := nueLoad(t, f); float64(load) > 1.1*float64(most) {
				t.Errorf("%s%s: %d routes on a channel, updn: %d", spec, numbering, load, most)
			}
		}
	}
}

// TestNueMoreLanes: nue has no more load with more lanes, also where rates of links differ.
func TestNueMoreLanes(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, spec := range []string{"fattree:k=8,planes=2", "fattree:k=4,planes=4", "random:n=10,degree=3,hosts=2,planes=2", "torus:dims=3/4,hosts=2,planes=2", "random:n=16,degree=3,hosts=2"} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		var loads []int64
		for _, vls := range []int{1, 2, 8} {
			load, err := largestLoad(t.Context(), compute(t, g, nue.Name, Options{MaxVLs: vls}))
			if err != nil {
				t.Fatal(err)
			}
			if loads = append(loads, load); float64(load) > loadSlack*float64(loads[0]) {
				t.Errorf("%s: loads with 1, 2, 8 lanes: %d", spec, loads)
			}
		}
	}
}

// TestUpDownPlanes: up*/down* has the tops of all planes as roots.
func TestUpDownPlanes(t *testing.T) {
	for _, spec := range []string{"fattree:k=8,planes=4", "fattree:k=4,levels=3,planes=2", "pgft:m=3/5,w=1/2,p=1/2,planes=2"} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		r := compute(t, g, updn.Name, Options{})
		load, err := largestLoad(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		shortest, err := largestLoad(t.Context(), compute(t, g, sssp.Name, Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() || load > shortest*3/2 {
			t.Errorf("%s: %d routes on a channel, sssp: %d; %+v", spec, load, shortest, v)
		}
	}
}

// TestParallelRates: lash divides the destinations over parallel links by their rates.
func TestParallelRates(t *testing.T) {
	rates := routingtest.Rates()
	f := routingtest.WithRates(t, routingtest.Topology(t, "torus:dims=3/3,hosts=4,links=3"), func(p *fabric.Port) routingtest.Rate {
		if p.Node().IsSwitch() && p.Peer().Node().IsSwitch() {
			return rates[[]int{0, 1, 3}[p.Num()%3]] // 200, 100 and 50 Gb/s
		}
		return rates[0]
	})
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, lash.Name, Options{})
	load, err := largestLoad(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	even, err := largestLoad(t.Context(), compute(t, g, sssp.Name, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() || load > even*5/4 {
		t.Errorf("largest load %d, of sssp %d; %+v", load, even, v)
	}
}
