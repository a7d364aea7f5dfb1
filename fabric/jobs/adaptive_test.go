package jobs

import (
	"math"
	"slices"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// follow adds a flow to loads, each choice of each switch on its own; it reports whether all
// of it arrives.
func follow(r *routes.Routes, s int, in uint8, to mad.LID, amount float64, hops int, loads []float64) bool {
	g := r.Graph()
	ports := slices.Collect(r.Choice(s, adaptive.Packet{In: in, LID: to, Transport: adaptive.RC}).Ports.All())
	arrives := len(ports) > 0 && hops > 0
	for _, port := range ports {
		if hops == 0 {
			break
		}
		target := g.Target(int32(s), port)
		if !target.IsChannel() {
			arrives = arrives && target == graph.ToTerminal(int32(g.TerminalByLID(to)))
			continue
		}
		c := target.Channel()
		loads[c] += amount / float64(len(ports))
		all := follow(r, int(g.ChannelTo(c)), g.Channels()[c].PeerPort, to, amount/float64(len(ports)), hops-1, loads)
		arrives = arrives && all
	}
	return arrives
}

// TestSpread compares the traffic on routes with choices with each flow on its own, on
// fabrics with and without a port that leads astray.
func TestSpread(t *testing.T) {
	for _, net := range []string{"fattree:k=4,levels=3", "fattree:k=4,levels=2,rails=2", "dragonfly:a=3,p=1,h=1"} {
		r, err := engines.Compute(t.Context(), routingtest.Graph(t, net, graph.BuildOptions{}), "updn", engines.Options{Adaptive: true})
		if err != nil {
			t.Fatal(err)
		}
		g := r.Graph()
		if !r.HasChoices() {
			t.Fatalf("%s: no choices", net)
		}
		names := hostsOf(g)
		for _, broken := range []bool{false, true} {
			if broken { // packets to a host's LID may end at its neighbour
				host := g.Terminals()[g.TerminalByLID(portsOf(g).lids[names[0]][0])]
				other := g.Terminals()[g.TerminalByLID(portsOf(g).lids[names[len(names)-1]][0])]
				if err := r.SetChoices(other.Switch, []mad.LID{host.LID}, adaptive.PortSet(other.Out)); err != nil {
					t.Fatal(err)
				}
			}
			for _, pattern := range Patterns() {
				job := Job{ID: "a", Hosts: names}
				m, err := Measure(t.Context(), r, []Job{job}, pattern)
				if err != nil {
					t.Fatal(err)
				}
				var place JobTraffic
				want, lost := make([]float64, len(g.Channels())), int64(0)
				for f := range flows(place.place(portsOf(g), names), pattern) {
					if !follow(r, g.Terminals()[g.TerminalByLID(f.From)].Switch, 0, f.To, f.Traffic, 12, want) {
						lost++
					}
				}
				for ch, load := range m.Loads {
					if math.Abs(load-want[ch]) > 1e-9 {
						t.Fatalf("%s, broken %v, %s: channel %d has %v, want %v", net, broken, pattern, ch, load, want[ch])
					}
				}
				if m.Jobs[0].Lost != lost || broken && pattern == AllToAll && lost == 0 {
					t.Errorf("%s, broken %v, %s: lost %d, want %d", net, broken, pattern, m.Jobs[0].Lost, lost)
				}
			}
		}
	}
}

// TestSpreadLoop: packets in a loop are lost, and their traffic on a link is counted once.
func TestSpreadLoop(t *testing.T) {
	r, err := engines.Compute(t.Context(), routingtest.Graph(t, "fattree:k=4,levels=2", graph.BuildOptions{}), "updn", engines.Options{Adaptive: true})
	if err != nil {
		t.Fatal(err)
	}
	g := r.Graph()
	names := hostsOf(g)
	lid := portsOf(g).lids[names[0]][0]
	from := g.Terminals()[g.TerminalByLID(portsOf(g).lids[names[7]][0])].Switch
	c := g.Channels()[g.FirstChannel(from)]
	for s, port := range map[int32]uint8{c.From: c.Port, c.To: c.PeerPort} {
		if err := r.SetChoices(int(s), []mad.LID{lid}, adaptive.PortSet(port)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Measure(t.Context(), r, []Job{{ID: "a", Hosts: []string{names[7], names[0]}}}, Ring)
	if err != nil {
		t.Fatal(err)
	}
	// The other flow adds half of its traffic to the way back.
	if back := m.Loads[c.Reverse]; m.Jobs[0].Lost != 1 || m.Loads[g.FirstChannel(from)] != 1 || back != 1.5 {
		t.Errorf("lost %d; %v there, %v back", m.Jobs[0].Lost, m.Loads[g.FirstChannel(from)], back)
	}
}
