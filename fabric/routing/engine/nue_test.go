package engine

import (
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestNueRoots: the lanes of nue have different roots, so the busiest channel has no more routes
// than these; on a HyperX, one root for all is better.
func TestNueRoots(t *testing.T) {
	for _, x := range []struct {
		net        string
		lanes      int
		mostRoutes int64
	}{
		{"torus:dims=5/5/5,hosts=2", 2, 544},
		{"torus:dims=5/5/5,hosts=2", 4, 448},
		{"random:n=50,degree=5,hosts=4", 8, 496},
		{"hyperx:dims=6/6,hosts=4", 4, 104},
	} {
		r := compute(t, routingtest.Graph(t, x.net, graph.Options{}), "nue", Options{MaxVLs: x.lanes})
		if v := verified(t, r, verify.Options{}); !v.Acyclic || v.Unreachable > 0 || r.Lanes() > x.lanes {
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
