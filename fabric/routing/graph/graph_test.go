package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

func TestGraph(t *testing.T) {
	f := routingtest.Draw(t, 1, [4]any{"A", 1, "a", 1}, [4]any{"B", 1, "b", 1}, [4]any{"A", 3, "B", 2}, [4]any{"A", 2, "B", 4}, [4]any{"C", 1, "C", 2}, [4]any{"c", 1, "d", 1}, [4]any{"B", 3, "C", 3})
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range g.Channels() {
		got = append(got, fmt.Sprintf("%d/%d > %d/%d, back %d", c.From, c.Port, c.To, c.PeerPort, c.Reverse))
	}
	for s := range g.Switches() {
		got = append(got, fmt.Sprintf("%d: %v", s, g.Neighbours(s)))
	}
	for _, x := range g.Terminals() {
		got = append(got, fmt.Sprintf("%s: LID %d+%d at %d/%d %v", x.Port.Name(), x.LID, x.Count, x.Switch, x.Out, x.Class))
	}
	got = append(got, slices.Concat(g.Notes(), g.LeftOut())...)
	got = append(got, fmt.Sprint(g.LIDs(graph.ClassCN), g.LIDs(graph.ClassSwitch), g.Top(), g.TerminalByLID(5), g.TerminalByLID(99), g.SwitchByGUID(3), g.SwitchByGUID(9)))
	want := []string{
		"0/2 > 1/4, back 4", "0/3 > 1/2, back 2", "1/2 > 0/3, back 1", "1/3 > 2/3, back 5", "1/4 > 0/2, back 0", "2/3 > 1/3, back 3",
		"0: [{1 1 [2 3]}]", "1: [{0 1 [2 4]} {2 1 [3]}]", "2: [{1 1 [3]}]",
		"A/0: LID 2+1 at 0/0 switch", "B/0: LID 6+1 at 1/0 switch", "C/0: LID 10+1 at 2/0 switch",
		"a/1: LID 4+2 at 0/1 cn", "b/1: LID 8+2 at 1/1 cn", "c/1: LID 12+2 at -1/0 cn", "d/1: LID 14+2 at -1/0 cn",
		"2 ports of CAs and routers are on no switch",
		"[4 5 8 9] [2 6 10] 15 3 -1 1 -1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	v := routingtest.Verified(t, routingtest.Computing(engines.Compute)(t, g, "minhop", engines.Options{}), verify.Options{})
	if v.Terminals != 4 || v.Pairs != 24 || v.Unreachable != 20 {
		t.Errorf("%+v", v)
	}
}

// TestGraphLIDs: ports that claim LIDs of others, or have none.
func TestGraphLIDs(t *testing.T) {
	b := fabric.NewBuilder()
	sw := b.AddNode(fabric.NodeSpec{Name: "S", Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 8, NodeGUID: 1}})
	b.SetPort(sw, 0, &mad.PortInfo{LID: 5})
	for i, info := range []mad.PortInfo{{LID: 5}, {LID: 6, LMC: 1}, {LID: 7}, {}, {LID: 0xffff}, {LID: mad.MaxUnicastLID, LMC: 3}, {LID: 9, PortState: mad.PortStateDown}} {
		h := b.AddNode(fabric.NodeSpec{Name: fmt.Sprint("h", i), Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(16 + i), LocalPortNum: 1}})
		b.SetPort(h, 1, &info)
		if err := b.Link(h, 1, sw, i+1); err != nil {
			t.Fatal(err)
		}
	}
	g, err := graph.New(b.Build(), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range g.Terminals() {
		got = append(got, fmt.Sprintf("%s %d+%d %d", x.Port.Name(), x.LID, x.Count, x.Switch))
	}
	got = append(got, slices.Concat(g.Notes(), g.LeftOut())...)
	want := []string{
		"S/0 5+1 0", "h0/1 5+0 0", "h1/1 6+2 0", "h2/1 7+0 0", "h3/1 0+0 0", "h4/1 65535+0 0", "h5/1 49151+1 0", "h6/1 9+1 -1",
		"ports without a LID: 1 of 8: nothing is routed there; a subnet manager must assign LIDs first",
		"1 port of CAs and routers is on no switch",
		`port 1 of "h3" (0x0000000000000013) has no LID: nothing is routed to it; a subnet manager must assign one first`,
		`LID 5 of port 1 of "h0" (0x0000000000000010) also belongs to port 0 of "S" (0x0000000000000001), which gets it`,
		`LID 7 of port 1 of "h2" (0x0000000000000012) also belongs to port 1 of "h1" (0x0000000000000011), which gets it`,
		`LID 65535 of port 1 of "h4" (0x0000000000000014) is beyond 49151, the highest unicast LID`,
		`LID 49151 of port 1 of "h5" (0x0000000000000015) is not a multiple of 8: with LMC 3 the port masks the low bits`,
		`LID 49158 of port 1 of "h5" (0x0000000000000015) is beyond 49151, the highest unicast LID`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestGraphErrors(t *testing.T) {
	f := routingtest.Topology(t, "ring:n=3")
	for _, x := range []struct {
		o    graph.BuildOptions
		want string
	}{
		{graph.BuildOptions{Weight: func(*fabric.Port) int { return 0 }}, `weight 0 of port 2 of "switch-1" (0x0002c90300100000): it must be from 1 to 125`},
		{graph.BuildOptions{Weight: func(*fabric.Port) int { return 126 }}, `weight 126 of port 2 of "switch-1" (0x0002c90300100000): it must be from 1 to 125`},
		{graph.BuildOptions{PortOrder: func(*fabric.Node) []int { return []int{4} }}, `port order of "switch-1" (0x0002c90300100000): no port 4`},
	} {
		if _, err := graph.New(f, x.o); err == nil || err.Error() != x.want {
			t.Errorf("got %v\nwant %s", err, x.want)
		}
	}
	far := routingtest.Graph(t, "ring:n=5", graph.BuildOptions{Weight: func(*fabric.Port) int { return 100 }})
	for _, name := range []string{"minhop", "updn", "ftree", "sssp", "nue", "dor"} {
		_, err := engines.Compute(t.Context(), far, name, engines.Options{})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDisguised: a file that calls switches CAs is no fabric without switches.
func TestDisguised(t *testing.T) {
	b := fabric.NewBuilder()
	node := func(name string, ports uint8, guid mad.GUID) int {
		return b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: ports, NodeGUID: guid, PortGUID: guid}})
	}
	spine := node("spine", 24, 1)
	for i := range 9 {
		if err := b.Link(spine, i+1, node("host", 2, mad.GUID(2+i)), 1); err != nil {
			t.Fatal(err)
		}
	}
	g, err := graph.New(b.Build(), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = engines.Compute(t.Context(), g, "minhop", engines.Options{})
	want := "minhop does not apply: the fabric has no switch; 1 CA with links at more than 8 ports, as \"spine\" (0x0000000000000001): these must be switches, but the source of the fabric calls them CAs (in a .lst file, replace CA by SW)"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

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
