package verify_test

import (
	"testing"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// BenchmarkVerify: reachability, hops, detours and credit loops.
func BenchmarkVerify(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		_, err := verify.Tables(b.Context(), r, verify.Options{})
		return err
	})
}

// BenchmarkVerifyLanes is BenchmarkVerify where paths are on eight virtual lanes.
func BenchmarkVerifyLanes(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		if r.SL == nil {
			r.SL, r.SL2VL = &routes.SL{Pair: make([][]uint8, len(r.Graph().Terminals()))}, routes.NewSL2VL(r.Graph())
			for i, t := range r.Graph().Terminals() {
				r.SL.Pair[i] = make([]uint8, int(r.Top())+1)
				for lid := range r.SL.Pair[i] {
					r.SL.Pair[i][lid] = uint8(lid*7+max(0, t.Switch)) % 8
				}
			}
			b.ResetTimer()
		}
		_, err := verify.Tables(b.Context(), r, verify.Options{})
		return err
	})
}

// BenchmarkVerifyAdaptive: under any choice among minimal ports.
func BenchmarkVerifyAdaptive(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		_, err := verify.Tables(b.Context(), r, verify.Options{Adaptive: verify.AdaptiveMinimal})
		return err
	})
}

// BenchmarkDisjointness: of the paths to the two LIDs of each port, alone; and ftree with
// two LIDs for each port.
func BenchmarkDisjointness(b *testing.B) {
	g, err := graph.New(routingtest.WithLMC(b, routingtest.Topology(b, "ft11664"), 1), graph.BuildOptions{})
	if err != nil {
		b.Fatal(err)
	}
	r := compute(b, g, "ftree", engines.Options{})
	b.Run("ft11664", func(b *testing.B) {
		e := verify.SelectEndpoints(g, 0)
		for b.Loop() {
			if _, err := verify.MeasureDisjointness(b.Context(), r, e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ftree/ft11664", func(b *testing.B) {
		for b.Loop() {
			compute(b, g, "ftree", engines.Options{})
		}
	})
}

// BenchmarkCreditLoops: these alone.
func BenchmarkCreditLoops(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		d, err := verify.Dependencies(b.Context(), r, verify.SelectEndpoints(r.Graph(), 0))
		if err == nil {
			d.Cycle()
		}
		return err
	})
}

// BenchmarkVerifyChoices: by the choices of adaptive routing, as updn lets switches choose.
func BenchmarkVerifyChoices(b *testing.B) {
	for _, net := range []string{"ft1728", "ft11664", "wide"} {
		b.Run(net, func(b *testing.B) {
			r := compute(b, routingtest.Graph(b, net, graph.BuildOptions{}), "updn", engines.Options{Adaptive: true})
			b.ReportAllocs()
			for b.Loop() {
				if v := routingtest.Verified(b, r, verify.Options{}); !v.OK() {
					b.Fatal("not ok")
				}
			}
		})
	}
}
