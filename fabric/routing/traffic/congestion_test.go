package traffic_test

import (
	"slices"
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// compute computes tables by an engine, and fails the test on an error.
var compute = routingtest.Computing(engines.Compute)

// TestCongestion: on one switch that all paths cross, flow by flow.
func TestCongestion(t *testing.T) {
	g := routingtest.Graph(t, "pgft:m=3/2,w=1/1,p=1/1", graph.BuildOptions{}) // two leaves, one link each to the spine
	r := compute(t, g, "ftree", engines.Options{})
	congestion := func(o traffic.CongestionOptions) traffic.Congestion {
		t.Helper()
		c, err := traffic.MeasureCongestion(t.Context(), r, o)
		if err != nil {
			t.Fatal(err)
		}
		c.At = 0
		return *c
	}
	// Of 5 shifts among 6, 1 to 5 send 1, 2, 3, 2, 1 flows from leaf to leaf, on each way.
	want := traffic.Congestion{Pattern: traffic.Shift, Endpoints: 6, Samples: 5, Max: 3, Worst: 3, Mean: 9.0 / 5, Bandwidth: (2*(2+1) + 2*(1+2) + 2.0 + 2*(2+1)) / 30}
	// shift 1: two flows at 1, four between neighbours on a leaf at 1: 6.
	want.Bandwidth = (6*1 + (2 + 4.0/2) + 6.0/3 + (2 + 4.0/2) + 6*1) / 30
	if got := congestion(traffic.CongestionOptions{Pattern: traffic.Shift}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := congestion(traffic.CongestionOptions{Pattern: traffic.AllToAll}); got != (traffic.Congestion{Pattern: traffic.AllToAll, Endpoints: 6, Samples: 1, Max: 9, Mean: 9}) {
		t.Errorf("%+v", got)
	}
	order := g.LIDs(graph.ClassCN)
	got := congestion(traffic.CongestionOptions{Pattern: traffic.Bisection, Order: []mad.LID{order[0], order[5]}, Samples: 3})
	if got != (traffic.Congestion{Pattern: traffic.Bisection, Endpoints: 2, Samples: 3, Max: 1, Mean: 1, Bandwidth: 1}) {
		t.Errorf("%+v", got)
	}
	r.Row(routingtest.SwitchNamed(t, g, "leaf-1"))[order[5]] = routes.NoPort
	got = congestion(traffic.CongestionOptions{Pattern: traffic.Bisection, Order: []mad.LID{order[0], order[5]}, Samples: 3})
	if got != (traffic.Congestion{Pattern: traffic.Bisection, Endpoints: 2, Samples: 3, Max: 1, Mean: 1, Bandwidth: 0.5, Lost: 3}) {
		t.Errorf("%+v", got)
	}
	if got := congestion(traffic.CongestionOptions{Pattern: traffic.AllToAll}); got.Lost != 3 {
		t.Errorf("%+v", got)
	}
	for _, o := range []traffic.CongestionOptions{{Pattern: "storm"}, {Pattern: traffic.Shift, Order: []mad.LID{99}}} {
		_, err := traffic.MeasureCongestion(t.Context(), r, o)
		want := map[string]string{"storm": `congestion: unknown pattern "storm"; supported: shift, permutation, bisection, ring, all-to-all`, traffic.Shift: "congestion: no port on a switch has LID 99"}[o.Pattern]
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestTraffic: a matrix of one shift is that shift, whatever the unit; and loads are sums
// over the paths.
func TestTraffic(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"torus:dims=4/4,hosts=2", "fattree:k=8,levels=2,remove_links=10%,seed=2"} {
		r := compute(t, routingtest.Graph(t, spec, graph.BuildOptions{}), "minhop", engines.Options{})
		g := r.Graph()
		order := graph.Order(g)
		row := r.EditRow(g.Terminals()[g.TerminalByLID(order[0])].Switch)
		row[order[len(order)-1]] = routes.NoPort // a flow is lost
		shift, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: traffic.Shift, Samples: 1})
		if err != nil {
			t.Fatal(err)
		}
		var flows []traffic.Flow
		loads := make([]float64, len(g.Channels()))
		for i, lid := range order {
			to := order[(i+1)%len(order)]
			flows = append(flows, traffic.Flow{lid, to, 4}, traffic.Flow{lid, lid, 9}, traffic.Flow{to, lid, 0})
			p, err := r.Trace(lid, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Hops {
				if c := g.Target(int32(h.Switch), h.Out); c >= 0 && p.Broken == "" {
					loads[c] += 4
				}
			}
		}
		m, err := traffic.MeasureFlows(t.Context(), r, flows)
		if err != nil {
			t.Fatal(err)
		}
		if m.MaxLoad != 4*float64(shift.Max) || m.Lost != shift.Lost || m.Bandwidth != shift.Bandwidth || m.Endpoints != len(order) || !slices.Equal(m.Traffic, loads) {
			t.Errorf("%s: max %v, lost %d, bandwidth %v of %d, want 4 times %+v", spec, m.MaxLoad, m.Lost, m.Bandwidth, m.Endpoints, shift)
		}
	}
}
