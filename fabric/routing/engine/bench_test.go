package engine

import (
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

func BenchmarkEngine(b *testing.B) {
	for _, x := range []struct {
		engine, policy string
		nets           []string
	}{
		{"minhop", "", []string{"ft11664", "ft11664-400"}},
		{"minhop", LeastLoaded, []string{"ft11664"}},
		{"updn", "", []string{"ft11664", "ft11664-400"}},
		{"dnup", "", []string{"ft11664", "ft11664-400"}},
		{"ftree", "", []string{"ft11664", "ft11664-400", "wide"}},
		{"sssp", "", []string{"ft11664"}},
		{"nue", "", []string{"ft5832", "ft11664", "dragonfly:a=8,p=4,h=4"}},
		{"dfsssp", "", []string{"ft5832", "ft11664", "dragonfly:a=8,p=4,h=4"}},
		{"lash", "", []string{"ft5832", "dragonfly:a=8,p=4,h=4", "torus:dims=16/16/16,hosts=1"}},
		{"torus-2qos", "", []string{"torus:dims=8/8/8,hosts=1", "torus:dims=16/16/16,hosts=1"}},
	} {
		name := x.engine
		if x.policy != "" {
			name += "-" + x.policy
		}
		b.Run(name, func(b *testing.B) {
			for _, net := range x.nets {
				routingtest.Bench(b, net, func(b *testing.B, g *graph.Graph) error {
					_, err := Compute(b.Context(), g, x.engine, Options{Policy: x.policy})
					return err
				})
			}
		})
	}
}
