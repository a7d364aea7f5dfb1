package engines

import (
	"fmt"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestNueRoots: the lanes of nue have different roots, so the busiest channel has no more routes
// than these; on a HyperX, one root for all is better.
func TestNueRoots(t *testing.T) {
	routingtest.ResultsOnly(t)
	for _, x := range []struct {
		net        string
		lanes      int
		mostRoutes int64
	}{
		{"torus:dims=5/5/5,hosts=2", 2, 544},
		{"torus:dims=5/5/5,hosts=2", 4, 448},
		{"random:n=50,degree=5,hosts=4", 8, 500},
		{"hyperx:dims=6/6,hosts=4", 4, 104},
	} {
		r := compute(t, routingtest.Graph(t, x.net, graph.BuildOptions{}), "nue", Options{MaxVLs: x.lanes})
		if v := routingtest.Verified(t, r, verify.Options{}); !v.Acyclic || v.Unreachable > 0 || r.Lanes() > x.lanes {
			t.Errorf("%s: acyclic %v, unreachable %d, %d lanes", x.net, v.Acyclic, v.Unreachable, r.Lanes())
		}
		load, err := largestLoad(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if load > x.mostRoutes {
			t.Errorf("%s on %d lanes: %d routes on a channel, want %d at most", x.net, x.lanes, load, x.mostRoutes)
		}
	}
}

// TestNueShifts: next hops that spread the flows of shifts close no credit loop, also where several turns
// close none each by itself, but one together.
func TestNueShifts(t *testing.T) {
	routingtest.ResultsOnly(t)
	nets := []string{"hyperx:dims=4/3,hosts=1,remove_links=36%,seed=97"}
	for seed := range 8 {
		nets = append(nets, fmt.Sprintf("hyperx:dims=4/3,hosts=1,remove_links=30%%,seed=%d", seed), fmt.Sprintf("torus:dims=3/4/3,hosts=1,remove_switches=4,remove_links=12,seed=%d", seed))
	}
	for _, net := range nets {
		r := compute(t, routingtest.Graph(t, net, graph.BuildOptions{}), "nue", Options{})
		if v := routingtest.Verified(t, r, verify.Options{}); !v.Acyclic {
			t.Errorf("%s: a credit loop:\n%s", net, verify.FormatCycle(v.Cycle))
		}
	}
}
