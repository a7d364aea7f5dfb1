package fabric_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// encoded is the attribute as bytes.
func encoded(x interface{ Encode([]byte) }) []byte {
	data := make([]byte, 64)
	x.Encode(data)
	return data
}

// planar is two hosts of two planes, two switches a plane, a management link between the
// planes, a host of one plane, and a router.
func planar(t *testing.T) (*fabric.Builder, map[string]int) {
	t.Helper()
	b := fabric.NewBuilder()
	nodes := map[string]int{}
	add := func(name string, kind mad.NodeType, ports uint8) {
		nodes[name] = b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: kind, NumPorts: ports, NodeGUID: mad.GUID(len(nodes) + 1), LocalPortNum: 1}})
	}
	for _, name := range []string{"a1", "b1", "a2", "b2"} {
		add(name, mad.NodeTypeSwitch, 8)
	}
	add("h1", mad.NodeTypeCA, 2)
	add("h2", mad.NodeTypeCA, 2)
	add("router", mad.NodeTypeRouter, 1)
	for _, h := range []string{"h1", "h2"} {
		for num := 1; num <= 2; num++ {
			b.SetPortGUID(nodes[h], num, mad.GUID(100+nodes[h]))
		}
	}
	link := func(x string, p int, y string, q int) {
		if err := b.Link(nodes[x], p, nodes[y], q); err != nil {
			t.Fatal(err)
		}
	}
	link("h1", 1, "a1", 1)
	link("h1", 2, "a2", 1)
	link("h2", 1, "b1", 1)
	link("h2", 2, "b2", 1)
	link("a1", 2, "b1", 2)
	link("a2", 2, "b2", 2)
	link("a1", 8, "a2", 8)
	link("router", 1, "a1", 3)
	return b, nodes
}

// TestPlanes: the planes of adapters, and of the switches that lead to them, except for the links
// between planes; without knowledge of these, of no switch.
func TestPlanes(t *testing.T) {
	planes := func(f *fabric.Fabric) string {
		var list []string
		for i := range f.Ports() {
			if p := &f.Ports()[i]; p.Peer() != nil {
				list = append(list, fmt.Sprintf("%s %d", p.Name(), p.Plane()))
			}
		}
		return strings.Join(list, ", ")
	}
	b, nodes := planar(t)
	for _, name := range []string{"a1", "a2"} {
		b.AddAnswer(fabric.Answer{Node: int32(nodes[name]), Port: 8, Class: mad.ClassSubn, ID: mad.AttrExtendedPortInfo.ID, Modifier: 8, Data: encoded(&mad.ExtendedPortInfo{IsFNMPort: true, UnhealthyReason: mad.UnhealthyReasonRawBER})})
	}
	f := b.Build()
	if got, want := planes(f), "a1/1 1, a1/2 1, a1/3 1, a1/8 0, b1/1 1, b1/2 1, a2/1 2, a2/2 2, a2/8 0, b2/1 2, b2/2 2, h1/1 1, h1/2 2, h2/1 1, h2/2 2, router/1 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p := f.NodeByName("a1")[0]; p.Port(8).ExtendedInfo().UnhealthyReason != mad.UnhealthyReasonRawBER || p.Port(1).ExtendedInfo() != nil {
		t.Errorf("port 8 %+v, port 1 %+v", p.Port(8).ExtendedInfo(), p.Port(1).ExtendedInfo())
	}
	b, _ = planar(t)
	if got, want := planes(b.Build()), "a1/1 0, a1/2 0, a1/3 0, a1/8 0, b1/1 0, b1/2 0, a2/1 0, a2/2 0, a2/8 0, b2/1 0, b2/2 0, h1/1 1, h1/2 2, h2/1 1, h2/2 2, router/1 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestVirtualPorts: virtual ports up to the last in use, and virtual ports read by
// modifiers of the caller.
func TestVirtualPorts(t *testing.T) {
	b, nodes := planar(t)
	h := int32(nodes["h1"])
	answer := func(port int16, attr *mad.Attribute, modifier uint32, x interface{ Encode([]byte) }) {
		b.AddAnswer(fabric.Answer{Node: h, Port: port, Class: mad.ClassSubn, ID: attr.ID, Modifier: modifier, Data: encoded(x)})
	}
	var states mad.VPortState
	states.State[0], states.State[1], states.State[2], states.State[9] = mad.PortStateActive, 0, mad.PortStateDown, mad.PortStateActive
	answer(1, mad.AttrVirtualizationInfo, 1, &mad.VirtualizationInfo{VirtualizationEnable: true, VPortCap: 127, VPortIndexTop: 5})
	answer(1, mad.AttrVPortState, 0, &states)
	answer(1, mad.AttrVPortInfo, 0x77, &mad.VPortInfo{State: mad.PortStateActive, LIDRequired: true, LID: 40, PortGUID: 0x99})
	answer(1, mad.AttrVPortInfo, 0x78, &mad.VPortInfo{State: mad.PortStateActive, LID: 41, PortGUID: 0x98})
	answer(2, mad.AttrVPortState, 0, &states)                                                                    // without VirtualizationInfo nothing is known
	b.AddAnswer(fabric.Answer{Node: h, Port: 1, Class: mad.ClassSubn, ID: mad.AttrVPortInfo.ID, Modifier: 0x79}) // no answer
	f := b.Build()
	var got []string
	for i := range f.VirtualPorts() {
		v := &f.VirtualPorts()[i]
		got = append(got, fmt.Sprintf("%s %d %s LID %d GUID %#x", v.Port.Name(), v.Index, v.State, v.LID(), uint64(v.GUID())))
	}
	want := []string{"h1/1 0 active LID 0 GUID 0x0", "h1/1 2 down LID 0 GUID 0x0", "h1/1 -1 active LID 40 GUID 0x99", "h1/1 -1 active LID 0 GUID 0x98"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestRouter: the entries of a router's tables that are in use, over several blocks.
func TestRouter(t *testing.T) {
	b, nodes := planar(t)
	answer := func(attr *mad.Attribute, modifier uint32, x interface{ Encode([]byte) }) {
		b.AddAnswer(fabric.Answer{Node: int32(nodes["router"]), Port: 1, Class: mad.ClassSubn, ID: attr.ID, Modifier: modifier, Data: encoded(x)})
	}
	answer(mad.AttrRouterInfo, 0, &mad.RouterInfo{NextHopTop: 5, AdjSubnetsTop: 1, AdjLIDInfoTop: 2, GlobalLIDStart: 0xc000})
	var hops [2]mad.NextHopTable
	for i := range 8 {
		hops[i/4].Record[i%4] = mad.NextHop{SubnetPrefix: uint64(i + 1), Weight: 3}
	}
	answer(mad.AttrNextHopTable, 0, &hops[0])
	answer(mad.AttrNextHopTable, 1, &hops[1])
	answer(mad.AttrAdjSiteLocalSubnetsTable, 0, &mad.AdjSiteLocalSubnetsTable{Record: [8]mad.AdjSubnet{{PKey: 0x8001, SubnetPrefixID: 7, MasterSMLID: 9}, {PKey: 5}}})
	answer(mad.AttrAdjSubnetsRouterLIDInfo, 0, &mad.AdjSubnetsRouterLIDInfo{Record: [8]mad.AdjSubnetLIDs{{SubnetPrefixID: 7, LocalLIDStart: 0xc000, LocalLIDEnd: 0xc0ff}, {SubnetPrefixID: 8}}})
	f := b.Build()
	r := f.NodeByName("router")[0].Router()
	if r == nil || r.Info.GlobalLIDStart != 0xc000 {
		t.Fatalf("%+v", r)
	}
	got := fmt.Sprint(len(r.NextHops), r.NextHops[4].SubnetPrefix, r.Adjacent, r.LIDs)
	if want := "5 5 [{32769 7 0 9}] [{7 49152 0 49407} {8 0 0 0}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if f.NodeByName("h1")[0].Router() != nil || fabric.RouterBlocks(mad.AttrNextHopTable, 5) != 2 {
		t.Error("a host has tables of a router, or 5 entries are not 2 blocks")
	}
}
