package traffic_test

import (
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// TestBalanceOracle: routes and LIDs of a channel, path by path.
func TestBalanceOracle(t *testing.T) {
	g := routingtest.Graph(t, "dragonfly:a=4,p=2,h=1,remove_links=1", graph.BuildOptions{})
	r := compute(t, g, "minhop", engines.Options{})
	b, err := traffic.MeasureBalance(t.Context(), r, graph.ClassCN, nil)
	if err != nil {
		t.Fatal(err)
	}
	routes, lids := make([]int64, len(g.Channels())), make([]map[mad.LID]bool, len(g.Channels()))
	for _, from := range g.LIDs(graph.ClassCN) {
		for _, to := range g.LIDs(graph.ClassCN) {
			p, err := r.Trace(from, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Hops {
				if c := g.Target(int32(h.Switch), h.Out); c >= 0 {
					routes[c]++
					if lids[c] == nil {
						lids[c] = map[mad.LID]bool{}
					}
					lids[c][to] = true
				}
			}
		}
	}
	for c := range routes {
		if b.PerChannel[c] != routes[c] || b.DLIDs[c] != int64(len(lids[c])) {
			t.Errorf("%s: %d routes to %d LIDs, path by path %d to %d", g.ChannelPort(c).Label(), b.PerChannel[c], b.DLIDs[c], routes[c], len(lids[c]))
		}
	}
	all, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: traffic.AllToAll})
	if err != nil || int64(all.Max) != b.Routes.Max || all.At != b.Routes.Busiest {
		t.Errorf("all-to-all %+v %v, routes %+v", all, err, b.Routes)
	}
}
