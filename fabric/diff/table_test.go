package diff

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// TestTables: tables are compared by rows, P_Keys as sets; what a side did not read is
// no change, and counters are not compared.
func TestTables(t *testing.T) {
	answer := func(node, port int, attr *mad.Attribute, modifier uint32, data ...byte) fabric.Answer {
		return fabric.Answer{Node: int32(node), Port: int16(port), Class: attr.Class, ID: attr.ID, Modifier: modifier, Data: data}
	}
	f := tree(t)
	with := func(list ...fabric.Answer) *fabric.Fabric { return f.With(fabric.Reading{Answers: list}) }
	old := with(
		answer(-1, -1, mad.AttrMCMemberRecord, 0, 1), answer(-1, -1, mad.AttrMCMemberRecord, 0, 2),
		answer(0, 0, mad.AttrPKeyTable, 0, 0xff, 0xff), answer(0, 1, mad.AttrPKeyTable, 1<<16, 0xff, 0xff, 0x80, 1),
		answer(0, -1, mad.AttrSLtoVLMappingTable, 0x0102, 0, 0, 0, 0, 0, 0, 0, 0), answer(0, -1, mad.AttrSLtoVLMappingTable, 0x0103, 0, 0, 0, 0, 0, 0, 0, 0),
		answer(0, -1, mad.AttrMulticastForwardingTable, 0, 0, 1, 0, 2), answer(0, 1, mad.AttrVLArbitrationTable, 1<<16|1, 0, 4),
		answer(0, 1, mad.AttrPortCounters, 0, 1))
	check(t, old, old, "")
	check(t, old, with(
		answer(-1, -1, mad.AttrMCMemberRecord, 0, 2), answer(-1, -1, mad.AttrMCMemberRecord, 0, 3),
		answer(0, 0, mad.AttrPKeyTable, 0, 0xff, 0xff), answer(0, 1, mad.AttrPKeyTable, 1<<16, 0x80, 2, 0xff, 0xff),
		answer(0, -1, mad.AttrSLtoVLMappingTable, 0x0102, 0, 0, 0, 0, 0, 0, 0, 1), answer(0, -1, mad.AttrSLtoVLMappingTable, 0x0103, 0, 0, 0, 0, 0, 0, 0, 0),
		answer(0, -1, mad.AttrMulticastForwardingTable, 0, 0, 1, 0, 3), answer(0, -1, mad.AttrMulticastForwardingTable, 1, 0, 9),
		answer(0, 1, mad.AttrVLArbitrationTable, 1<<16|1, 0, 4, 1, 0),
		answer(0, 1, mad.AttrPortCounters, 0, 7)), ""+
		"table.pkeys leaf-1/1 [0x8001 > 0x8002] 2 entries differ\n"+
		"table.sl2vl leaf-1 1 row differs\n"+
		"table.vlarb leaf-1/1 1 entry differs\n"+
		"table.mft leaf-1 2 port masks differ\n"+
		"sa.mc_member_record MCMemberRecord [2 records > 2 records] 1 gone, 1 new\n")
	check(t, old, with(answer(0, 0, mad.AttrPKeyTable, 0, 0xff, 0xff)), ""+
		"not compared: SLtoVLMappingTable: missing in the newer fabric\n"+
		"not compared: VLArbitrationTable: missing in the newer fabric\n"+
		"not compared: MulticastForwardingTable: missing in the newer fabric\n"+
		"not compared: records of the subnet administrator: missing in the newer fabric\n"+
		"unread: P_KeyTable of leaf-1/1: missing in the newer fabric\n")
}

// TestAdaptive: of switches that route adaptively the settings and the ports by LID are
// compared, whatever the numbers of their groups.
func TestAdaptive(t *testing.T) {
	f := routed(t, tree(t))
	with := func(edit func(list map[string]*adaptive.Switch)) *fabric.Fabric {
		list := map[string]*adaptive.Switch{}
		read := fabric.Reading{Adaptive: make([]*adaptive.Switch, len(f.Nodes()))}
		for i := range f.OfType(mad.NodeTypeSwitch) {
			n := &f.Nodes()[i]
			groups := adaptive.NewGroups(1)
			groups.Set(1, 0, adaptive.PortSet(1, 2))
			groups.Set(2, 0, adaptive.PortSet(3))
			table := adaptive.NewTable(14, groups)
			for lid := range mad.LID(15) {
				table.Set(lid, adaptive.Entry{State: adaptive.Bounded, Port: n.LFT()[lid], Group: 1})
			}
			list[n.Name()] = &adaptive.Switch{Enabled: true, SLs: adaptive.AllSLs, Tables: []*adaptive.Table{table}}
		}
		edit(list)
		for i := range f.OfType(mad.NodeTypeSwitch) {
			read.Adaptive[i] = list[f.Nodes()[i].Name()]
		}
		return f.With(read)
	}
	set := func(s *adaptive.Switch, lid mad.LID, state adaptive.State, group uint16) {
		e := s.Tables[0].Entry(lid)
		e.State, e.Group = state, group
		s.Tables[0].Set(lid, e)
	}
	for _, test := range []struct {
		name string
		edit func(list map[string]*adaptive.Switch)
		want string
	}{
		{"nothing", func(map[string]*adaptive.Switch) {}, ""},
		{"another group", func(l map[string]*adaptive.Switch) {
			set(l["leaf-1"], 3, adaptive.Bounded, 2)
			set(l["leaf-1"], 4, adaptive.Static, 1)
		}, "routes forwarding tables of 1 switch\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0xffff] 2 LIDs have other ports\n"},
		{"a member less", func(l map[string]*adaptive.Switch) { l["leaf-1"].Tables[0].Groups.Set(1, 0, adaptive.PortSet(1)) },
			"routes forwarding tables of 1 switch 14 pairs rerouted, of which 13 do not arrive, max load +0\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0xffff] 15 LIDs have other ports\n"},
		{"groups renumbered", func(l map[string]*adaptive.Switch) {
			l["leaf-1"].Tables[0].Groups.Set(3, 0, adaptive.PortSet(1, 2))
			set(l["leaf-1"], 3, adaptive.Bounded, 3)
		}, "routes forwarding tables of 1 switch\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0xffff] settings, or ports of groups that no LID uses, differ\n"},
		{"settings", func(l map[string]*adaptive.Switch) {
			l["leaf-1"].SLs = 1
			*l["leaf-2"] = adaptive.Switch{}
			l["leaf-3"].Enabled, l["leaf-3"].HBF, l["leaf-3"].Unknown = false, true, "why"
		}, "routes forwarding tables of 3 switches 42 pairs rerouted, of which 38 do not arrive, max load +0\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0x0001]\n  table.ar leaf-2 [on, SLs 0xffff > off]\n  table.ar leaf-3 [on, SLs 0xffff > hashes only, unknown: why]\n"},
		{"not read", func(l map[string]*adaptive.Switch) { delete(l, "leaf-1") }, "unread: adaptive routing of leaf-1: missing in the newer fabric\n"},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, with(func(map[string]*adaptive.Switch) {}), with(test.edit), test.want) })
	}
	check(t, with(func(map[string]*adaptive.Switch) {}), f, "not compared: adaptive routing: missing in the newer fabric\n")
}
