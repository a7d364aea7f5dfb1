package engines

import (
	"fmt"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

func BenchmarkEngine(b *testing.B) {
	for _, x := range []struct {
		engine, policy string
		maxVLs         int
		nets           []string
	}{
		{"minhop", "", 0, []string{"ft11664", "ft11664-400", "wide"}},
		{"minhop", LeastLoaded, 0, []string{"ft11664"}},
		{"updn", "", 0, []string{"ft11664", "ft11664-400", "wide"}},
		{"dnup", "", 0, []string{"ft11664", "ft11664-400"}},
		{"ftree", "", 0, []string{"ft11664", "ft11664-400", "wide"}},
		{"sssp", "", 0, []string{"ft11664"}},
		{"nue", "", 0, []string{"ft5832", "ft11664", "wide", "dragonfly:a=8,p=4,h=4"}},
		{"nue", "", 8, []string{"dragonfly:a=8,p=4,h=4", "torus:dims=12/12/8,hosts=1", "random:n=1000,degree=10,hosts=2"}},
		{"dfsssp", "", 0, []string{"ft5832", "ft11664", "dragonfly:a=8,p=4,h=4"}},
		{"lash", "", 0, []string{"ft5832", "dragonfly:a=8,p=4,h=4", "torus:dims=16/16/16,hosts=1"}},
		{"torus-2qos", "", 0, []string{"torus:dims=8/8/8,hosts=1", "torus:dims=16/16/16,hosts=1"}},
	} {
		name := x.engine
		if x.policy != "" {
			name += "-" + x.policy
		}
		if x.maxVLs > 0 {
			name += fmt.Sprintf("-%dlanes", x.maxVLs)
		}
		b.Run(name, func(b *testing.B) {
			for _, net := range x.nets {
				routingtest.Bench(b, net, func(b *testing.B, g *graph.Graph) error {
					_, err := Compute(b.Context(), g, x.engine, Options{Policy: x.policy, MaxVLs: x.maxVLs})
					return err
				})
			}
		})
	}
}
