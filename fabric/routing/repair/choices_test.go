package repair

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// TestRepairChoices: choices that an engine made are made for the network that is left, and those
// set by hand are left out.
func TestRepairChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=8,levels=2", graph.BuildOptions{})
	lost := g.ChannelPort(0)
	less, err := g.Part(func(p *fabric.Port) bool { return p != lost && p != lost.Peer() })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"updn", "ftree", "minhop"} {
		r := compute(t, g, name, engines.Options{Adaptive: true})
		repaired, err := Tables(t.Context(), r, less)
		if err != nil {
			t.Fatal(err)
		}
		if d := repaired.Diff(compute(t, less, name, engines.Options{Adaptive: true, Keep: r.StaticPart()})); d.Choices > 0 || !repaired.HasChoices() {
			t.Errorf("%s: %d entries have other choices than those of the engine", name, d.Choices)
		}
		r.SetChoices(0, []mad.LID{g.DestsOf(1)[0].LID}, adaptive.PortSet(g.Neighbours(0)[0].Ports...))
		repaired, err = Tables(t.Context(), r, less)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(repaired.Notes); repaired.HasChoices() || n == 0 || repaired.Notes[n-1] != "the choices of adaptive routing, which no engine made, were left out" {
			t.Errorf("%s, with choices by hand: %t, notes %q", name, repaired.HasChoices(), repaired.Notes)
		}
	}
}
