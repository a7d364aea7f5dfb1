package traffic_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
)

// mixedNets are small networks whose links get random rates.
var mixedNets = []string{
	"ring:n=4,hosts=1", "mesh:dims=2/3,hosts=1", "pgft:m=2/2,w=1/2,p=1/2", "pgft:m=2/3,w=1/2,p=1/1", "hyperx:dims=3,hosts=2",
	"torus:dims=3,hosts=1,links=2", "random:n=6,degree=3,hosts=1,seed=3", "pgft:m=2/4,w=1/3,p=1/1", "dragonfly:a=2,p=1,h=1",
}

// TestMixedCapacity: on 100 small nets whose links have random rates, loads per capacity by static ports agree with
// the sum over all flows of each path, and the best and the worst splits with a linear program over all
// paths.
func TestMixedCapacity(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 1))
	const nets = 100
	solved, ratios, worst := 0, 0.0, 0.0
	for i := range nets {
		rates := map[*fabric.Port]float64{}
		plain := routingtest.Topology(t, mixedNets[i%len(mixedNets)])
		hosts := routingtest.Rates()[i%2*2] // 200 or 100 Gb/s
		f := routingtest.WithRates(t, plain, func(p *fabric.Port) routingtest.Rate {
			r := hosts
			if p.Node().IsSwitch() && p.Peer().Node().IsSwitch() {
				r = routingtest.Rates()[random.IntN(len(routingtest.Rates()))]
			}
			rates[p], rates[p.Peer()] = r.Gbps, r.Gbps
			return r
		})
		g, err := graph.New(f, graph.BuildOptions{Workers: 1 + i%3})
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]float64, len(g.Channels()))
		fastest := 0.0
		for c := range parts {
			p := g.ChannelPort(c)
			r := rates[plain.Nodes()[p.Node().ID()].Port(p.Num())]
			parts[c], fastest = hosts.Gbps/r, max(fastest, r)
			if got := g.Capacity().Rates[c]; got != r {
				t.Fatalf("net %d: channel %d has %v Gb/s, want %v", i, c, got, r)
			}
		}
		r, err := engines.Compute(t.Context(), g, "minhop", engines.Options{Adaptive: true})
		if err != nil {
			r = compute(t, g, "updn", engines.Options{Adaptive: true})
		}
		flows := randomFlows(random, g)
		m, err := traffic.MeasureFlows(t.Context(), r, flows)
		if err != nil {
			t.Fatal(err)
		}
		loads := make([]float64, len(parts))
		for _, x := range flows {
			path, _ := traffic.Channels(r, x, nil)
			for _, c := range path {
				loads[c] += x.Traffic * parts[c]
			}
		}
		if most := slices.Max(loads); math.Abs(m.MaxLoad-most) > 1e-9 || math.Abs(loads[max(0, m.At)]-most) > 1e-9 {
			t.Errorf("net %d: %v at %d, want %v", i, m.MaxLoad, m.At, most)
		}
		// All routes, by way of flows.
		clear(loads)
		lids := g.LIDs(^graph.ClassSwitch)
		for _, from := range lids {
			for _, to := range lids {
				path, _ := traffic.Channels(r, traffic.Flow{From: from, To: to}, nil)
				for _, c := range path {
					loads[c] += parts[c]
				}
			}
		}
		b, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: traffic.AllToAll, Order: lids})
		if err != nil {
			t.Fatal(err)
		}
		if most := slices.Max(loads); math.Abs(all.Max-most) > 1e-9 || b.Weighed != nil && math.Abs(b.Weighed.Max*hosts.Gbps/fastest-most) > 1e-6 {
			t.Errorf("net %d: all to all %v, balance %+v, want %v", i, all.Max, b.Weighed, most)
		}
		if !r.HasChoices() {
			continue
		}
		got, err := traffic.MeasureAdaptiveFlows(t.Context(), r, flows, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := oracle{parts: parts}
		want.solve(t, r, flows)
		for c, x := range got.WorstLoads {
			if math.Abs(x-want.worst[c]) > 1e-9 {
				t.Fatalf("net %d: worst load of channel %d: %v, want %v", i, c, x, want.worst[c])
			}
		}
		if math.IsNaN(want.ideal) || want.ideal == 0 {
			continue
		}
		solved++
		most := slices.Max(got.IdealLoads)
		const rounding = 1e-6
		if got.Bound.Max > want.ideal+rounding || most < want.ideal-rounding || most > want.ideal*1.02+rounding {
			t.Errorf("net %d: ideal %v, at least %v; linear program: %v", i, most, got.Bound.Max, want.ideal)
		}
		ratios, worst = ratios+got.Static.Max/want.ideal, max(worst, got.Static.Max/want.ideal)
	}
	t.Logf("%d of %d solved; static ports have %.3f times the least load on average, at most %.3f", solved, nets, ratios/float64(solved), worst)
	if solved < nets*6/10 {
		t.Errorf("%d of %d solved: that proves little", solved, nets)
	}
}

// TestUnknownRates: where the rate of a link is unknown, loads are counts.
func TestUnknownRates(t *testing.T) {
	drawn := func(cables ...[4]any) *graph.Capacity {
		g, err := graph.New(routingtest.Draw(t, 0, cables...), graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return g.Capacity()
	}
	c := drawn([4]any{"a", 1, "A", 1}, [4]any{"A", 2, "B", 1}, [4]any{"b", 1, "B", 2})
	if c.Differs() || c.Costs() != nil || c.Reference != 0 || c.Load(0, 3) != 3 {
		t.Errorf("%+v", c)
	}
	g, err := graph.New(routingtest.WithRates(t, routingtest.Topology(t, "ring:n=4,hosts=1"), func(*fabric.Port) routingtest.Rate { return routingtest.Rates()[1] }), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := g.Capacity(); c.Differs() || c.Costs() != nil || c.Reference != 100 || c.Fastest != 100 {
		t.Errorf("%+v", c)
	}
}
