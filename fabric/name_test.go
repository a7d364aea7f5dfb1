package fabric_test

import (
	"fmt"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestFindNode: exact names come first, then hosts; errors list what a name could mean.
func TestFindNode(t *testing.T) {
	b := fabric.NewBuilder()
	guid := mad.GUID(0)
	add := func(typ mad.NodeType, names ...string) {
		for _, name := range names {
			guid++
			b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: typ, NodeGUID: guid, NumPorts: 2}, Name: name})
		}
	}
	add(mad.NodeTypeCA, "one HCA-1", "two HCA-2", "two HCA-1", "same HCA-1", "same HCA-1", "leaf-1 HCA-1", "exact", "exact HCA-1", "\x1b[31m HCA-1", "e\x1bvil",
		"MT4123 ConnectX6 Mellanox Technologies", "wide  mlx5_0", "bare ", strings.Repeat("n", 64))
	add(mad.NodeTypeSwitch, "leaf-1", "spine-1 core", "twin", "twin")
	for i := range 12 {
		add(mad.NodeTypeCA, fmt.Sprintf("many HCA-%02d", i))
	}
	f := b.Build()
	for _, test := range []struct{ name, want string }{
		{"one", "one HCA-1"},
		{"one HCA-1", "one HCA-1"},
		{"wide", "wide  mlx5_0"},
		{"bare", "bare "},
		{"leaf-1", "leaf-1"}, // exact, although a host has it too
		{"exact", "exact"},
		{"two", `node "two": has 2 adapters: "two HCA-1", "two HCA-2"; use one of these, or f.select("two *")`},
		{"same", `node "same": has 2 adapters: 0x0000000000000004, 0x0000000000000005; use one of these, or f.select("same *")`},
		{"same HCA-1", `2 nodes are named "same HCA-1"; use a GUID, one of 0x0000000000000004, 0x0000000000000005`},
		{"many", `node "many": has 12 adapters: "many HCA-00", "many HCA-01", "many HCA-02", "many HCA-03", "many HCA-04", "many HCA-05", "many HCA-06", "many HCA-07" and 4 more; use one of these, or f.select("many *")`},
		{"twin", `2 nodes are named "twin"; use a GUID, one of 0x0000000000000011, 0x0000000000000012`},
		{"spine-1", `unknown node "spine-1"`}, // a switch is not a host
		{"MT4123", `unknown node "MT4123"`},   // nor is what vendors ship
		{"", `unknown node ""`},
		{" ", `unknown node " "`},
		{"one ", `unknown node "one "`},
		{"on", `unknown node "on"`},
		{"onne", `unknown node "onne" (did you mean one?)`},
		{"\x1b[31m", `unknown node "\x1b[31m"`},
		{"evil", `unknown node "evil" (did you mean "e\x1bvil"?)`},
		{"two*", `unknown node "two*"; a target is one node: f.select("two*") returns all nodes that match`},
	} {
		n, err := f.FindNode(test.name)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = n.Name()
		}
		if got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// BenchmarkFindHost finds a host among 48,000 adapters.
func BenchmarkFindHost(b *testing.B) {
	builder := fabric.NewBuilder()
	for i := range 48000 {
		builder.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: mad.GUID(i + 1), NumPorts: 1}, Name: fmt.Sprintf("node-%d HCA-1", i)})
	}
	f := builder.Build()
	for b.Loop() {
		if _, err := f.FindNode("node-30000"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, test := range []struct{ name, candidates, want string }{
		{"NodeInof", "NodeInfo PortInfo", "NodeInfo"},
		{"portinfo", "NodeInfo PortInfo", "PortInfo"},
		{"nodedsc", "nodes node_desc", "node_desc"},
		{"lit", "lid gid", "lid"}, // one edit of three
		{"gti", "lid gid", ""},    // two
		{"ab", "ba", ""},
		{"tsak", "task", "task"}, // one edit of four: two neighbours changed places
		{"zwölf", "zwolf elf", "zwolf"},
		{"", "lid", ""},
		{"lid", "", ""},
	} {
		candidates := strings.Fields(test.candidates)
		if got := fabric.Nearest(test.name, candidates); got != test.want {
			t.Errorf("%q of %q: got %q, want %q", test.name, candidates, got, test.want)
		}
		hint := ""
		if test.want != "" {
			hint = " (did you mean " + test.want + "?)"
		}
		if got := fabric.DidYouMean(test.name, candidates); got != hint {
			t.Errorf("%q of %q: got %q, want %q", test.name, candidates, got, hint)
		}
	}
}

// TestPanel: ports of switches with two in a cage have the label of their panel.
func TestPanel(t *testing.T) {
	for _, test := range []struct {
		info mad.NodeInfo
		num  int
		want string
	}{
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 1, "cage 1/1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 2, "cage 1/2"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 31, "cage 16/1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 64, "cage 32/2"},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 65, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f2}, 0, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x2c9, DeviceID: 0xd2f0}, 1, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch, VendorID: 0x1, DeviceID: 0xd2f2}, 1, ""},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA, VendorID: 0x2c9, DeviceID: 0xd2f2}, 1, ""},
	} {
		test.info.NodeGUID, test.info.NumPorts = 1, 65
		b := fabric.NewBuilder()
		b.AddNode(fabric.NodeSpec{Info: test.info, Name: "sw"})
		if p := b.Build().Nodes()[0].Port(test.num); p == nil || p.Panel() != test.want {
			t.Errorf("%v of %+v: %v, want %q", test.num, test.info, p, test.want)
		}
	}
}

// TestClip: a line that may hold a key is not shown in messages, whatever the file is.
func TestClip(t *testing.T) {
	const hidden = "(not shown: it may hold a key)"
	for text, want := range map[string]string{
		"m_key 0x5ec2e7": hidden, "x; M_Key=77": hidden, `"sa_key": "0x1"`: hidden, "mkey = 5": hidden, "0x0002c90300001000 0x5ec2e7": hidden, "b_key 1 {": hidden, "key 0x1": hidden,
		"0x0002c90300001000 5 1": "0x0002c90300001000 5 1", "0x0001 001 : (x)": "0x0001 001 : (x)", "m_key_lease_period 60": "m_key_lease_period 60", "monkey 5": "monkey 5", "key of a car": "key of a car",
		strings.Repeat("a", 61):   strings.Repeat("a", 60) + "...",
		strings.Repeat("(", 5000): strings.Repeat("(", 60) + "...", strings.Repeat("(", 5000) + "key": hidden, "\t0X1\t0x2": hidden,
	} {
		if got := fabric.Clip(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
