package fabric

import (
	"fmt"
	"testing"

	"fabsh/mad"
)

// alikeFabric is a switch with three CAs of two models; the third one differs in one setting.
func alikeFabric(change func(i *mad.PortInfo)) *Fabric {
	b := NewBuilder()
	active := func(lid mad.LID, num int) *mad.PortInfo {
		return &mad.PortInfo{LID: lid, LocalPortNum: uint8(num), MKey: uint64(lid), PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysicalStateLinkUp, PKeyViolations: uint16(lid)}
	}
	sw := b.AddNode(NodeSpec{Name: "sw", Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 3, NodeGUID: 1}})
	b.SetPort(sw, 0, active(1, 0))
	for i := 1; i <= 3; i++ {
		n := b.AddNode(NodeSpec{Name: fmt.Sprint("ca", i), Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(10 + i), DeviceID: uint16(i / 3)}})
		info := active(mad.LID(1+i), 1)
		if i == 2 {
			change(info)
		}
		b.SetPort(n, 1, info)
		b.SetPort(sw, i, active(0, i))
		b.Link(sw, i, n, 1)
	}
	return b.Build()
}

// TestAlike: ports are alike whatever identifies them and counts their events, and unlike by each
// setting that audits compare.
func TestAlike(t *testing.T) {
	for _, test := range []struct {
		name        string
		change      func(i *mad.PortInfo)
		links, ends int
	}{
		{"nothing", func(i *mad.PortInfo) {}, 2, 3},
		{"identity and counters", func(i *mad.PortInfo) { i.LID, i.MKey, i.QKeyViolations, i.OverrunErrors = 77, 78, 79, 3 }, 2, 3},
		{"no LID", func(i *mad.PortInfo) { i.LID = 0 }, 2, 4},
		{"no M_Key", func(i *mad.PortInfo) { i.MKey = 0 }, 2, 4},
		{"M_Key violations", func(i *mad.PortInfo) { i.MKeyViolations = 1 }, 2, 4},
		{"MTU", func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU2048 }, 3, 4},
		{"largest MTU", func(i *mad.PortInfo) { i.MTUCap = mad.MTU2048 }, 3, 4},
		{"lanes", func(i *mad.PortInfo) { i.OperationalVLs = 2 }, 3, 4},
		{"HOQLife", func(i *mad.PortInfo) { i.HOQLife = 3 }, 3, 4},
		{"VLStallCount", func(i *mad.PortInfo) { i.VLStallCount = 3 }, 3, 4},
		{"state", func(i *mad.PortInfo) { i.PortState = mad.PortStateInitialize }, 3, 4},
		{"SubnetTimeOut", func(i *mad.PortInfo) { i.SubnetTimeOut = 3 }, 2, 4},
	} {
		f := alikeFabric(test.change)
		links, ends, nodes := f.AlikeLinks(), f.AlikeEndPorts(), f.AlikeNodes()
		if len(links) != test.links || len(ends) != test.ends || len(nodes) != 3 {
			t.Errorf("%s: %d groups of links, %d of end ports, %d of nodes; want %d, %d, 3", test.name, len(links), len(ends), len(nodes), test.links, test.ends)
		}
		n := 0
		for _, g := range links {
			n += len(g)
		}
		if n != 3 || len(f.EndPorts()) != 4 {
			t.Errorf("%s: %d links and %d end ports in all", test.name, n, len(f.EndPorts()))
		}
	}
}
