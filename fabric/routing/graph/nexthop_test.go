package graph_test

import (
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// TestToward: the switches with a path come nearest first, each with the channels that are next
// hops by NextHops, with weights and without, and under up*/down*.
func TestToward(t *testing.T) {
	for i, spec := range routingtest.SmallNets() {
		o := graph.BuildOptions{}
		if i%3 == 2 {
			o.Weight = func(p *fabric.Port) int { return 1 + (p.Num()+p.Peer().Num())%2 }
		}
		g := routingtest.Graph(t, spec, o)
		h, err := graph.AllHops(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		upDown, err := graph.UpDown(t.Context(), g, graph.RanksFrom(g, []int{0}))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []*graph.Hops{h, upDown} {
			var x graph.Toward
			var next graph.NextHops
			for d := range g.Switches() {
				x.Load(h, d, nil)
				before := 0
				met := map[int32]bool{}
				for _, st := range x.Steps {
					s := int(st.Switch)
					if h.Distance(s, d) < before || met[st.Switch] {
						t.Fatalf("%s: to %d, switch %d is out of order", spec, d, s)
					}
					before, met[st.Switch] = h.Distance(s, d), true
					var got, want []uint8
					for j, c := range x.Next[st.First:st.Last] {
						got = append(got, g.Channels()[c].Port)
						if g.ChannelTo(c) != x.To[int(st.First)+j] {
							t.Fatalf("%s: channel %d leads to %d, not to %d", spec, c, g.ChannelTo(c), x.To[int(st.First)+j])
						}
					}
					next.Load(h, s)
					ports, _ := next.Ports(d)
					want = append(want, ports...)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						t.Fatalf("%s: from %d to %d: ports %v, want %v", spec, s, d, got, want)
					}
				}
				for s := range g.Switches() {
					if s != d && met[int32(s)] != (h.Distance(s, d) > 0) {
						t.Fatalf("%s: switch %d has a path to %d: %v", spec, s, d, !met[int32(s)])
					}
				}
			}
		}
	}
}
