package routing

import (
	"testing"

	"fabsh/mad"
)

// TestBalanceOracle: routes and LIDs of a channel, path by path.
func TestBalanceOracle(t *testing.T) {
	g := graph(t, "dragonfly:a=4,p=2,h=1,remove_links=1", GraphOptions{})
	r := compute(t, g, "minhop", Options{})
	b, err := r.Balance(t.Context(), ClassCN)
	if err != nil {
		t.Fatal(err)
	}
	routes, lids := make([]int64, len(g.channels)), make([]map[mad.LID]bool, len(g.channels))
	for _, from := range g.LIDs(ClassCN) {
		for _, to := range g.LIDs(ClassCN) {
			p, err := r.Trace(from, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Hops {
				if c := g.target(int32(h.Switch), h.Out); c >= 0 {
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
	all, err := r.Congestion(t.Context(), CongestionOptions{Pattern: AllToAll})
	if err != nil || int64(all.Max) != b.Routes.Max || all.At != b.Routes.Busiest {
		t.Errorf("all-to-all %+v %v, routes %+v", all, err, b.Routes)
	}
}
