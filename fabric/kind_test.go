package fabric_test

import (
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestKind: NodeInfo decides, and the description; a name map does not.
func TestKind(t *testing.T) {
	b := fabric.NewBuilder()
	for i, n := range []struct {
		info mad.NodeInfo
		name string
	}{
		{mad.NodeInfo{NodeType: mad.NodeTypeSwitch}, "MF0;gateway-1:MQM8700/U1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA, VendorID: 0x2c9, DeviceID: 0x101b}, "node-1 HCA-1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA, VendorID: 0x2c9, DeviceID: 0xcf09}, "sharp-1"},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA, VendorID: 0x119f, DeviceID: 0xcf09}, "bull"},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA}, "Mellanox Technologies Aggregation Node"},
		{mad.NodeInfo{NodeType: mad.NodeTypeCA}, "MF0;Skyway-1:MGA100/GW"},
		{mad.NodeInfo{NodeType: mad.NodeTypeRouter}, "Mellanox Technologies Aggregation Node"},
		{mad.NodeInfo{NodeType: 9}, "x"},
	} {
		n.info.NumPorts, n.info.NodeGUID = 1, mad.GUID(i+1)
		b.AddNode(fabric.NodeSpec{Name: n.name, Info: n.info})
	}
	f := b.Build()
	const want = "1 switch, 2 host, 3 aggregation_node, 4 host, 5 aggregation_node, 6 gateway, 7 router, 8 unknown, "
	for _, f := range []*fabric.Fabric{f, f.Renamed(map[mad.GUID]string{3: "host", 5: "host", 2: "gateway"})} {
		got, edges := "", 0
		for i := range f.Nodes() {
			n := &f.Nodes()[i]
			got += n.GUID().String()[17:] + " " + n.Kind().String() + ", "
			if n.IsEdge() {
				edges++
			}
		}
		if got != want || edges != 5 {
			t.Errorf("%d edges\n got %s\nwant %s", edges, got, want)
		}
	}
}

// TestTiersAggregation: an aggregation node makes no leaf of its switch, and has no tier.
func TestTiersAggregation(t *testing.T) {
	b := fabric.NewBuilder()
	add := func(k mad.NodeType, name string, g mad.GUID) int {
		return b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: k, NumPorts: 4, NodeGUID: g}})
	}
	leaf, spine := add(mad.NodeTypeSwitch, "leaf", 1), add(mad.NodeTypeSwitch, "spine", 2)
	host, an := add(mad.NodeTypeCA, "node-1 HCA-1", 3), add(mad.NodeTypeCA, "Mellanox Technologies Aggregation Node", 4)
	for _, l := range [][4]int{{leaf, 1, spine, 1}, {leaf, 2, host, 1}, {spine, 2, an, 1}} {
		if err := b.Link(l[0], l[1], l[2], l[3]); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for _, tier := range b.Build().Tiers() {
		got += string(rune('0'+tier)) + " "
	}
	if want := "1 2 0 / "; got != want { // '/' is before '0': -1
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAlikeLinks: links are alike by models and rates of both ends.
func TestAlikeLinks(t *testing.T) {
	b := fabric.NewBuilder()
	var ids []int
	for i, device := range []uint16{1, 1, 2} {
		ids = append(ids, b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 4, NodeGUID: mad.GUID(i + 1), DeviceID: device}}))
	}
	wide, narrow := mad.PortInfo{LinkWidthActive: mad.LinkWidth4x}, mad.PortInfo{LinkWidthActive: mad.LinkWidth1x}
	for _, l := range []struct {
		a, ap, b, bp int
		info         *mad.PortInfo
	}{{0, 1, 1, 1, &wide}, {0, 2, 1, 2, &wide}, {0, 3, 1, 3, &narrow}, {0, 4, 2, 4, &wide}} {
		b.SetPort(ids[l.a], l.ap, l.info)
		b.SetPort(ids[l.b], l.bp, &wide)
		if err := b.Link(ids[l.a], l.ap, ids[l.b], l.bp); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []int
	for _, group := range b.Build().AlikeLinks() {
		sizes = append(sizes, len(group))
	}
	if len(sizes) != 3 || sizes[0] != 2 || sizes[1] != 1 || sizes[2] != 1 {
		t.Errorf("sizes of groups: %v", sizes)
	}
}
