package routing

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// draw makes a fabric of lines such as "a 1 b 2": a cable. Nodes in capitals are
// switches, others CAs; both have 4 ports. LIDs are by node, lids more of a CA.
func draw(t testing.TB, lmc int, cables ...[4]any) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	handles := map[string]int{}
	node := func(name string) int {
		h, ok := handles[name]
		if ok {
			return h
		}
		n := len(handles) + 1
		spec := fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 4, NodeGUID: mad.GUID(n), PortGUID: mad.GUID(0x100 + n), LocalPortNum: 1}}
		info := &mad.PortInfo{LID: mad.LID(n << lmc), LMC: uint8(lmc), PortState: mad.PortStateActive}
		if name[0] < 'a' {
			spec.Info.NodeType, info.LMC = mad.NodeTypeSwitch, 0
			h = b.AddNode(spec)
			b.SetPort(h, 0, info)
		} else {
			h = b.AddNode(spec)
			b.SetPort(h, 1, info)
		}
		handles[name] = h
		return h
	}
	for _, c := range cables {
		if err := b.Link(node(c[0].(string)), c[1].(int), node(c[2].(string)), c[3].(int)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func TestGraph(t *testing.T) {
	f := draw(t, 1, [4]any{"A", 1, "a", 1}, [4]any{"B", 1, "b", 1}, [4]any{"A", 3, "B", 2}, [4]any{"A", 2, "B", 4}, [4]any{"C", 1, "C", 2}, [4]any{"c", 1, "d", 1}, [4]any{"B", 3, "C", 3})
	g, err := NewGraph(f, GraphOptions{})
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
	got = append(got, g.Notes()...)
	got = append(got, fmt.Sprint(g.LIDs(ClassCN), g.LIDs(ClassSwitch), g.Top(), g.TerminalByLID(5), g.TerminalByLID(99), g.SwitchByGUID(3), g.SwitchByGUID(9)))
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
	v := verify(t, compute(t, g, "minhop", Options{}), VerifyOptions{})
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
	g, err := NewGraph(b.Build(), GraphOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range g.Terminals() {
		got = append(got, fmt.Sprintf("%s %d+%d %d", x.Port.Name(), x.LID, x.Count, x.Switch))
	}
	got = append(got, g.Notes()...)
	want := []string{
		"S/0 5+1 0", "h0/1 5+0 0", "h1/1 6+2 0", "h2/1 7+0 0", "h3/1 0+0 0", "h4/1 65535+0 0", "h5/1 49151+1 0", "h6/1 9+1 -1",
		"1 of 8 ports have no LID: nothing is routed to them",
		"1 ports of CAs and routers are on no switch",
		`LID 5 of port 1 of "h0" (0x0000000000000010) is that of port 0 of "S" (0x0000000000000001) too, which gets it`,
		`LID 7 of port 1 of "h2" (0x0000000000000012) is that of port 1 of "h1" (0x0000000000000011) too, which gets it`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestGraphErrors(t *testing.T) {
	f := topology(t, "ring:n=3")
	for _, x := range []struct {
		o    GraphOptions
		want string
	}{
		{GraphOptions{Weight: func(*fabric.Port) int { return 0 }}, `weight 0 of port 2 of "switch-1" (0x0002c90300100000): it must be from 1 to 125`},
		{GraphOptions{Weight: func(*fabric.Port) int { return 126 }}, `weight 126 of port 2 of "switch-1" (0x0002c90300100000): it must be from 1 to 125`},
		{GraphOptions{PortOrder: func(*fabric.Node) []int { return []int{4} }}, `port order of "switch-1" (0x0002c90300100000): it has no port 4`},
	} {
		if _, err := NewGraph(f, x.o); err == nil || err.Error() != x.want {
			t.Errorf("got %v\nwant %s", err, x.want)
		}
	}
	far := graph(t, "ring:n=5", GraphOptions{Weight: func(*fabric.Port) int { return 100 }})
	for _, engine := range []string{"minhop", "updn", "ftree", "sssp", "nue", "dor"} {
		_, err := Compute(t.Context(), far, engine, Options{})
		if err == nil {
			t.Errorf("%s: no error", engine)
		}
	}
}

func TestClasses(t *testing.T) {
	b := fabric.NewBuilder()
	for i, n := range []struct {
		kind mad.NodeType
		name string
		caps mad.CapabilityMask
	}{
		{mad.NodeTypeCA, "node-1 HCA-1", 0},
		{mad.NodeTypeCA, "node-2 HCA-1", mad.CapabilityMaskIsSM},
		{mad.NodeTypeCA, "Mellanox Technologies Aggregation Node", 0},
		{mad.NodeTypeCA, "rack3/Storage-7", mad.CapabilityMaskIsSM},
		{mad.NodeTypeCA, "MF0;skyway-1:MGA100/GW", 0},
		{mad.NodeTypeRouter, "router", 0},
		{mad.NodeTypeCA, "", 0},
	} {
		h := b.AddNode(fabric.NodeSpec{Name: n.name, Info: mad.NodeInfo{NodeType: n.kind, NumPorts: 1, NodeGUID: mad.GUID(i + 1), PortGUID: mad.GUID(0x100 + i), LocalPortNum: 1, DeviceID: uint16(i)}})
		b.SetPort(h, 1, &mad.PortInfo{CapabilityMask: n.caps})
	}
	f := b.Build()
	for _, x := range []struct {
		name  string
		rules []Rule
		want  string
	}{
		{"default", DefaultRules(), "cn cn+sm an io+sm gateway cn gateway"},
		{"own", []Rule{{Class: ClassIO, Device: 6}, {Class: ClassAN, Name: "N?DE*1"}, {Class: ClassSM, SM: true}}, "an an  sm  io "},
	} {
		var got string
		for i := range f.Ports() {
			if i > 0 {
				got += " "
			}
			got += Classify(x.rules, &f.Ports()[i]).String()
		}
		if got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.want)
		}
	}
	for _, x := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"a*b*c", "aXbXbXc", true}, {"a*b*c", "aXbXbX", false}, {"*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
		{"MF0;*/U?", "mf0;sw-1:MQM8700/u1", true}, {"?", "", false}, {"a?", "ab", true}, {"**", "x", true},
	} {
		if got := Glob(x.pattern, x.s); got != x.want {
			t.Errorf("glob(%q, %q) = %v", x.pattern, x.s, got)
		}
	}
	if c, err := ParseClass("cn+an"); c != ClassCN|ClassAN || err != nil {
		t.Error(c, err)
	}
	if _, err := ParseClass("sharp"); err == nil || err.Error() != `no class "sharp"; there are cn, io, an, gateway, sm, switch` {
		t.Error(err)
	}
}

func TestTree(t *testing.T) {
	for spec, want := range map[string]string{
		"fattree:k=4,levels=3":          "3 [2 2 4] [1 2 2] [1 1 1] true ",
		"pgft:m=3/4/2,w=1/2/3,p=1/1/2":  "3 [3 4 2] [1 2 3] [1 1 2] true ",
		"fattree:k=6,levels=1":          "1 [6] [1] [1] true ",
		"pgft:m=4/4,w=1/2,p=1/3":        "2 [4 4] [1 2] [1 3] true ",
		"fattree:k=4,remove_links=1":    `2 [2 4] [1 2] [1 1] false "leaf-3" (0x0002c90300100020) has 1 of 2 parents`,
		"fattree:k=4,remove_switches=1": `2 [2 3] [1 2] [1 1] true `,
	} {
		tree, err := graph(t, spec, GraphOptions{}).Tree()
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := fmt.Sprint(tree.Height, tree.M, tree.W, tree.P, tree.Regular, " ", tree.Missing); got != want {
			t.Errorf("%s:\n got %s\nwant %s", spec, got, want)
		}
	}
	g := graph(t, "fattree:k=4,levels=3", GraphOptions{})
	tree, err := g.Tree()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for s, n := range g.switches {
		got = append(got, fmt.Sprint(n.Name(), " ", tree.Level[s], " ", tree.Digits[s]))
	}
	want := []string{
		"leaf-1 0 [0 0]", "leaf-2 0 [0 1]", "leaf-3 0 [1 0]", "leaf-4 0 [1 1]", "leaf-5 0 [2 0]", "leaf-6 0 [2 1]", "leaf-7 0 [3 0]", "leaf-8 0 [3 1]",
		"spine-1 1 [0 0]", "spine-2 1 [0 1]", "spine-3 1 [1 0]", "spine-4 1 [1 1]", "spine-5 1 [2 0]", "spine-6 1 [2 1]", "spine-7 1 [3 0]", "spine-8 1 [3 1]",
		"core-1 2 [0 0]", "core-2 2 [1 0]", "core-3 2 [0 1]", "core-4 2 [1 1]",
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for spec, want := range map[string]string{
		"ring:n=3,hosts=0": "no fat tree: no switch has a compute node",
		"ring:n=3":         `no fat tree: port 3 of "switch-1" (0x0002c90300100000) and port 2 of "switch-2" (0x0002c90300100010) are linked, but both on switches with compute nodes; if there is a host that should not count, give it another class than cn`,
	} {
		if _, err := graph(t, spec, GraphOptions{}).Tree(); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", spec, err, want)
		}
	}
}

// TestTreeShuffled: digits do not depend on the order of GUIDs or ports, so
// neither does it that shifts meet no contention.
func TestTreeShuffled(t *testing.T) {
	for seed := range uint64(3) {
		g, err := NewGraph(shuffled(t, topology(t, "pgft:m=4/3/5,w=1/4/3,p=1/1/1"), seed), GraphOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"ftree", "minhop", "updn"} {
			c, err := compute(t, g, engine, Options{}).Congestion(t.Context(), CongestionOptions{Pattern: Shift})
			if err != nil {
				t.Fatal(err)
			}
			if c.Max != 1 || c.Bandwidth != 1 || c.Samples != 59 {
				t.Errorf("seed %d, %s: %+v", seed, engine, c)
			}
		}
	}
}

func TestRoots(t *testing.T) {
	for _, x := range []struct{ spec, method, want string }{
		{"fattree:k=4", "color", "spine-1 spine-2 "},
		{"fattree:k=4", "farthest", "spine-1 spine-2 "},
		{"fattree:k=4", "histogram", "spine-1 spine-2 "},
		{"fattree:k=4", "center", "spine-1 "},
		{"fattree:k=4,levels=3", "histogram", "core-1 core-2 core-3 core-4 "},
		{"mesh:dims=5,hosts=1", "center", "switch-3 "},
		{"mesh:dims=5,hosts=1", "histogram", `roots by histogram: no switch has more than 90% of the 5 CA ports at one distance and no other 5%`},
		{"ring:n=3,hosts=0", "color", "roots by color: no fat tree: no switch has a compute node"},
		{"ring:n=3", "magic", `no way "magic" to find roots; there are color, farthest, histogram, center`},
	} {
		g := graph(t, x.spec, GraphOptions{})
		roots, err := g.FindRoots(t.Context(), x.method)
		got := ""
		for _, s := range roots {
			got += g.switches[s].Name() + " "
		}
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", x.spec, x.method, got, x.want)
		}
	}
}

// TestHistogramRoots: 94 of 100 hosts at one distance and the others at another
// are no root's view; 96 are.
func TestHistogramRoots(t *testing.T) {
	for near, want := range map[int]string{6: "[]", 4: "[0 1]"} {
		b := fabric.NewBuilder()
		add := func(kind mad.NodeType, ports, i int) int {
			return b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: kind, NumPorts: uint8(ports), NodeGUID: mad.GUID(i + 1), PortGUID: mad.GUID(i + 1)}})
		}
		hub, leaf := add(mad.NodeTypeSwitch, 120, 0), add(mad.NodeTypeSwitch, 120, 1)
		err := b.Link(hub, 120, leaf, 120)
		for i := range 100 {
			on := leaf
			if i < near {
				on = hub
			}
			err = errors.Join(err, b.Link(add(mad.NodeTypeCA, 1, 2+i), 1, on, 1+i))
		}
		g, bad := NewGraph(b.Build(), GraphOptions{})
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		if roots, _ := g.FindRoots(t.Context(), "histogram"); fmt.Sprint(roots) != want {
			t.Errorf("%d hosts on the hub: %v, want %s", near, roots, want)
		}
	}
}
