package graph_test

import (
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

func BenchmarkGraph(b *testing.B) {
	for _, net := range []string{"ft11664", "wide"} {
		b.Run(net, func(b *testing.B) {
			f := routingtest.Topology(b, net)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := graph.New(f, graph.BuildOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHops(b *testing.B) {
	routingtest.Bench(b, "ft11664", func(b *testing.B, g *graph.Graph) error {
		_, err := graph.AllHops(b.Context(), g)
		return err
	})
}

func BenchmarkUpDown(b *testing.B) {
	routingtest.Bench(b, "ft11664", func(b *testing.B, g *graph.Graph) error {
		_, err := graph.UpDown(b.Context(), g, graph.FindLevels(g).Ranks())
		return err
	})
}
