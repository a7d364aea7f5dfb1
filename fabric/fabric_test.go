package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// small is a fabric with a node of every type, added in no order.
func small(t *testing.T) *Fabric {
	t.Helper()
	b := NewBuilder()
	info := func(typ mad.NodeType, guid mad.GUID, ports uint8) mad.NodeInfo {
		return mad.NodeInfo{NodeType: typ, NodeGUID: guid, PortGUID: guid + 1, NumPorts: ports, LocalPortNum: 1}
	}
	host := b.AddNode(NodeSpec{Info: info(mad.NodeTypeCA, 0x50, 2), Name: "host", Route: mad.DirectedRoute{0}})
	router := b.AddNode(NodeSpec{Info: info(mad.NodeTypeRouter, 0x10, 2), Name: "gate/1", Route: mad.DirectedRoute{0, 1, 3}})
	strange := b.AddNode(NodeSpec{Info: info(7, 0x20, 1)})
	leaf := b.AddNode(NodeSpec{Info: info(mad.NodeTypeSwitch, 0x90, 4), Name: "leaf", Switch: &mad.SwitchInfo{LinearFDBTop: 9}, Route: mad.DirectedRoute{0, 1}})
	twin := b.AddNode(NodeSpec{Info: info(mad.NodeTypeCA, 0x50, 1), Name: "host", Route: mad.DirectedRoute{0, 1, 4}})
	for _, l := range [][4]int{{host, 1, leaf, 2}, {leaf, 3, router, 2}, {twin, 1, leaf, 4}, {leaf, 1, leaf, 1}} {
		if err := b.Link(l[0], l[1], l[2], l[3]); err != nil {
			t.Fatal(err)
		}
	}
	b.SetPort(leaf, 0, &mad.PortInfo{LID: 3})
	b.SetPort(leaf, 2, &mad.PortInfo{PortState: mad.PortStateActive, LinkWidthActive: mad.LinkWidth4x, LinkSpeedActive: mad.LinkSpeedQDR})
	b.SetPort(host, 1, &mad.PortInfo{LID: 8, LMC: 2})
	b.SetPort(router, 2, &mad.PortInfo{LID: 5})
	b.SetPort(twin, 1, &mad.PortInfo{LID: 11})
	b.SetPort(strange, 9, &mad.PortInfo{})
	b.SetPortGUID(router, 2, 0x12)
	b.SetFDR10(leaf, 2, true)
	b.SetFrom(host, 1)
	return b.Build()
}

func TestModel(t *testing.T) {
	f := small(t)
	want := `fabric: 5 nodes (1 switch, 2 CAs, 1 router, 1 of unknown type), 4 links, complete
switch "leaf" (0x0000000000000090) lid 3 at 0,1
  1 - node 0 leaf/1
  2 - node 1 host/1
  3 - node 3 gate/1/2
  4 - node 2 host/1
CA "host" (0x0000000000000050) lid 8 at 0
  1 - node 0 leaf/2
CA "host" (0x0000000000000050) lid 11 at 0,1,4
  1 - node 0 leaf/4
router "gate/1" (0x0000000000000010) lid 5 at 0,1,3
  2 - node 0 leaf/3
unknown(7) 0x0000000000000020 lid 0 at 
duplicate guid: node GUID 0x0000000000000050 belongs to 2 nodes: CA "host" on route 0, CA "host" on route 0,1,4; change all but one with their vendor's tool: subnet managers treat them as one node
duplicate lid: LID 11 belongs to port 1 of "host" (0x0000000000000050) and to port 1 of "host" (0x0000000000000050); have the subnet manager assign LIDs again
loopback: port 1 of "leaf" (0x0000000000000090) is connected to itself
`
	if d := cmp.Diff(want, outline(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if n.ID() != i || n.Fabric() != f || !slices.Contains(f.NodeByGUID(n.GUID()), n) || !slices.Contains(f.NodeByName(n.Name()), n) {
			t.Errorf("%s is not found", n.Label())
		}
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if p.ID() != i || p.Node().Port(p.Num()) != p || p.Peer() != nil && p.Peer().Peer() != p {
			t.Errorf("%s is not itself", p.Label())
		}
	}
	leaf, host := &f.Nodes()[0], &f.Nodes()[1]
	got := fmt.Sprintln(
		f.From() == host.Port(1), f.PortByLID(8) == host.Port(1), f.PortByLID(10) == host.Port(1), f.PortByLID(3) == leaf.Port(0),
		f.PortByLID(0), f.PortByLID(4), f.PortByLID(0xffff), f.NodeByGUID(1), f.NodeByName("x"), f.PortByGUID(0), f.PortByGUID(0x90),
		f.PortByGUID(0x91)[0] == leaf.Port(0), f.PortByGUID(0x12)[0].Name(), len(f.PortByGUID(0x51)),
		host.Port(0), host.Port(3), leaf.Port(5), leaf.Port(-1), leaf.Port(2).Speed(), leaf.Port(2).Width(), leaf.Port(3).Speed(),
		leaf.Port(3).GUID(), leaf.Port(3).LID(), leaf.Port(3).Info(), leaf.Port(2).State(), leaf.Port(3).State(),
		f.Nodes()[3].Port(2).Route(), f.Nodes()[3].Port(1).Route(), host.Port(1).Route(), leaf.Port(4).Route(),
		leaf.SwitchInfo().LinearFDBTop, host.SwitchInfo())
	expect := "true true true true <nil> <nil> <nil> [] [] [] [] true gate/1/2 2 <nil> <nil> <nil> <nil> fdr10 4x  " +
		"0x0000000000000091 3 <nil> active no_change 0,1,3 0,1,3 0 0,1 9 <nil>\n"
	if d := cmp.Diff(expect, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLinkErrors(t *testing.T) {
	b := NewBuilder()
	s := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 1, NumPorts: 3}, Name: "s"})
	h := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: 2, NumPorts: 2}, Name: "h"})
	for _, test := range []struct {
		n, p, m, q int
		want       string
	}{
		{s, 1, h, 1, ""},
		{h, 1, s, 1, ""}, // the first link again
		{s, 0, h, 2, `"s" (0x0000000000000001) has no port 0`},
		{s, 4, h, 2, `"s" (0x0000000000000001) has no port 4`},
		{s, 2, h, 3, `"h" (0x0000000000000002) has no port 3`},
		{s, 2, h, -1, `"h" (0x0000000000000002) has no port -1`},
		{s, 1, h, 2, `port 1 of "s" (0x0000000000000001) is already connected to port 1 of "h" (0x0000000000000002)`},
		{s, 2, h, 1, `port 1 of "h" (0x0000000000000002) is already connected to port 1 of "s" (0x0000000000000001)`},
	} {
		err := b.Link(test.n, test.p, test.m, test.q)
		if got := fmt.Sprint(err); err != nil && got != test.want || err == nil && test.want != "" {
			t.Errorf("Link(%d,%d,%d,%d): got %v, want %s", test.n, test.p, test.m, test.q, err, test.want)
		}
	}
	if f := b.Build(); f.Links() != 1 || f.String() != "fabric: 2 nodes (1 switch, 1 CA), 1 link, complete" {
		t.Error(f)
	}
}

func TestEmpty(t *testing.T) {
	f := NewBuilder().Build()
	if got := f.String(); got != "fabric: 0 nodes (0 switches, 0 CAs), 0 links, complete" || f.From() != nil || f.PortByLID(1) != nil {
		t.Error(got)
	}
}

// outline is the nodes and links of f.
func outline(f *Fabric) string {
	var b strings.Builder
	fmt.Fprintln(&b, f)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		fmt.Fprintf(&b, "%s %s lid %d at %s\n", typeWord(n.Type()), n.Label(), n.LID(), n.Route())
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				fmt.Fprintf(&b, "  %d - node %d %s\n", p.Num(), q.Node().ID(), q.Name())
			}
		}
	}
	for _, p := range f.Problems() {
		fmt.Fprintf(&b, "%s: %s\n", p.Kind, p.Text)
	}
	return b.String()
}

// TestPlanes: the planes of a port (XDR) have one GUID and one LID, which is no
// error, and the port is found by them once.
func TestPlanes(t *testing.T) {
	var b Builder
	sw := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 0x90, NumPorts: 4}, Name: "leaf", Switch: &mad.SwitchInfo{}})
	host := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: 0x50, NumPorts: 4}, Name: "host"})
	other := b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: 0x60, NumPorts: 1}, Name: "other"})
	for num := 1; num <= 3; num++ {
		if err := b.Link(host, num, sw, num); err != nil {
			t.Fatal(err)
		}
		b.SetPort(host, num, &mad.PortInfo{LID: 8})
		b.SetPortGUID(host, num, 0x51)
	}
	b.SetPort(other, 1, &mad.PortInfo{LID: 9})
	b.SetPortGUID(other, 1, 0x51) // this one is another's
	f := b.Build()
	if got := f.Problems(); len(got) != 0 {
		t.Errorf("problems: %v", got)
	}
	var found []string
	for _, p := range f.PortByGUID(0x51) {
		found = append(found, p.Label())
	}
	if want := []string{f.Nodes()[1].Port(1).Label(), f.Nodes()[2].Port(1).Label()}; !slices.Equal(found, want) {
		t.Errorf("by GUID %v, want %v", found, want)
	}
}

// TestSame: identities across snapshots, and what has none of its own.
func TestSame(t *testing.T) {
	f, g := small(t), small(t)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		unique := n.GUID() != 0x50 // two nodes have it
		for j := range g.Nodes() {
			if m := &g.Nodes()[j]; n.Same(m) != (i == j && unique) || n.Same(m) != m.Same(n) {
				t.Errorf("%s and %s: %v", n.Label(), m.Label(), n.Same(m))
			}
			if m := &f.Nodes()[j]; n.Same(m) != (i == j) {
				t.Errorf("%s and %s of one snapshot: %v", n.Label(), m.Label(), n.Same(m))
			}
		}
	}
	leaf, again := f.Nodes()[0].Port(2), g.Nodes()[0].Port(2)
	if !leaf.Same(again) || leaf.Same(g.Nodes()[0].Port(3)) || leaf.Same(g.Nodes()[1].Port(2)) {
		t.Error("ports are the same by node and number")
	}
	b := NewBuilder()
	b.AddNode(NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1}})
	if x, y := b.Build(), b.Build(); x.Nodes()[0].Same(&y.Nodes()[0]) {
		t.Error("nodes without a GUID are the same")
	}
}
