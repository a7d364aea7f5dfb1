package traffic_test

import (
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
)

func compute(t testing.TB, g *graph.Graph, name string, o engines.Options) *routes.Routes {
	t.Helper()
	r, err := engines.Compute(t.Context(), g, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// benchmarkRoutes measures do on the tables of two fat trees.
func benchmarkRoutes(b *testing.B, do func(b *testing.B, r *routes.Routes) error) {
	for _, net := range []string{"ft1728", "ft11664"} {
		b.Run(net, func(b *testing.B) {
			r := compute(b, routingtest.Graph(b, net, graph.BuildOptions{}), "ftree", engines.Options{})
			b.ReportAllocs()
			for b.Loop() {
				if err := do(b, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
