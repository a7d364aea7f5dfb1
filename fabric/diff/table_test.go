package diff

import (
	"testing"

	"fabsh/fabric"
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
