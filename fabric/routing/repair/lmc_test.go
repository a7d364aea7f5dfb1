package repair

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestRepairLMC: after the loss of a link, the LIDs of a port have nearly as many paths without a
// common link as tables that are computed from the start give them.
func TestRepairLMC(t *testing.T) {
	mean := func(v *verify.Verdict) float64 {
		sum := 0.0
		for n, pairs := range v.Disjoint.Links {
			sum += float64(n) * float64(pairs)
		}
		return sum / float64(v.Disjoint.Pairs)
	}
	for _, spec := range []string{"fattree:k=8,levels=2", "fattree:k=4,levels=3", "torus:dims=4/4,hosts=2", "hyperx:dims=4/4,hosts=2", "random:n=16,degree=4,hosts=2"} {
		f := routingtest.WithLMC(t, routingtest.Topology(t, spec), 1)
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cut := g.ChannelPort(len(g.Channels()) / 2)
		less, err := graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range engines.Names() {
			if name == "file" {
				continue
			}
			o := engines.Options{MaxVLs: 15}
			old, err := engines.Compute(t.Context(), g, name, o)
			if err != nil {
				continue
			}
			fresh, err := engines.Compute(t.Context(), less, name, o)
			if err != nil {
				continue
			}
			repaired, err := Tables(t.Context(), old, less)
			if err != nil {
				t.Fatal(spec, name, err)
			}
			before, want, got := mean(verified(t, old, verify.Options{})), mean(verified(t, fresh, verify.Options{})), mean(verified(t, repaired, verify.Options{}))
			t.Logf("%s %s: %.2f disjoint paths of 2 before, %.2f computed, %.2f repaired", spec, name, before, want, got)
			if got < 0.95*min(before, want) {
				t.Errorf("%s %s: repaired tables have %.2f disjoint paths, computed ones %.2f", spec, name, got, want)
			}
		}
	}
}
