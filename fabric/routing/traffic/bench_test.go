package traffic_test

import (
	"strings"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

func BenchmarkBalance(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		_, err := traffic.MeasureBalance(b.Context(), r, 0, nil)
		return err
	})
}

// BenchmarkPermutations: a hundred.
func BenchmarkPermutations(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		_, err := traffic.MeasureCongestion(b.Context(), r, traffic.CongestionOptions{Pattern: traffic.Permutation, Samples: 100})
		return err
	})
}

// BenchmarkAdaptive prints the largest loads of links by static ports, with the best and the
// worst choices, and a lower bound on the best, as means over samples: on trees with the
// choices of up*/down*, on others with all minimal ports, intact and with links missing.
func BenchmarkAdaptive(b *testing.B) {
	for _, net := range []string{
		"ft1728", "pgft:m=12/12/12,w=1/12/12,p=1/1/1,remove_links=2%,seed=1", "ft11664", "ft11664-400",
		"dragonfly:a=8,p=4,h=4", "dragonfly:a=8,p=4,h=4,remove_links=5%,seed=1", "hyperx:dims=12/8,hosts=7", "hyperx:dims=12/8,hosts=7,remove_links=5%,seed=1",
	} {
		var r *routes.Routes
		for _, pattern := range []string{traffic.Shift, traffic.Permutation, traffic.Ring, traffic.AllToAll} {
			b.Run(strings.ReplaceAll(net, "/", "x")+"/"+pattern, func(b *testing.B) {
				if r == nil {
					r = withChoices(b, net)
				}
				var l *traffic.AdaptiveLoad
				before := routingtest.UsedTime(b)
				for b.Loop() {
					var err error
					if l, err = traffic.MeasureAdaptive(b.Context(), r, traffic.CongestionOptions{Pattern: pattern, Seed: 1}, 0); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((routingtest.UsedTime(b)-before).Seconds()*1e3/float64(b.N), "cpu-ms")
				b.ReportMetric(l.Static.Mean, "static")
				b.ReportMetric(l.Ideal.Mean, "ideal")
				b.ReportMetric(l.Bound.Mean, "bound")
				b.ReportMetric(l.Worst.Mean, "worst")
			})
		}
	}
}

// withChoices has the tables of a network, with choices.
func withChoices(b *testing.B, net string) *routes.Routes {
	g := routingtest.Graph(b, net, graph.BuildOptions{})
	if strings.HasPrefix(net, "ft") || strings.HasPrefix(net, "pgft") {
		return compute(b, g, "updn", engines.Options{Adaptive: true})
	}
	r := compute(b, g, "minhop", engines.Options{})
	h, err := graph.AllHops(b.Context(), g)
	if err != nil {
		b.Fatal(err)
	}
	for s := range g.Switches() {
		for d := range g.Switches() {
			var lids []mad.LID
			for _, dest := range g.DestsOf(d) {
				lids = append(lids, dest.LID)
			}
			if ports := h.Next(s, d); s != d && len(ports) > 0 && len(lids) > 0 {
				if err := r.SetChoices(s, lids, adaptive.PortSet(ports...)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	return r
}
