package sim

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestEditTables: what is edited is what a Get reads; what is not there is an
// error.
func TestEditTables(t *testing.T) {
	fab, o, err := Parse("fattree")
	if err != nil {
		t.Fatal(err)
	}
	s := New(fab, o)
	ca, leaf := &fab.OfType(mad.NodeTypeCA)[0], &fab.OfType(mad.NodeTypeSwitch)[0]
	none := func([]byte) {}
	const leaf1 = `"leaf-1" (0x0002c90300100000) `
	for _, test := range []struct{ want, got string }{
		{"", text(s.Edit.PKeys(ca.GUID(), 1, 0xffff, 0, 0x8001))},
		{"the simulated fabric has no node with GUID 0x0000000000000001", text(s.Edit.PKeys(1, 1))},
		{`"node-0001 HCA-1" (0x0002c90310000000) has ports up to 1, no port 2`, text(s.Edit.PKeys(ca.GUID(), 2))},
		{"33 P_Keys: a block has 32", text(s.Edit.PKeys(ca.GUID(), 1, make([]uint16, 33)...))},
		{leaf1 + "has no block 0x99 of VLArbitrationTable", text(s.Edit.Table(mad.AttrVLArbitrationTable, leaf.GUID(), 1, 0x99, none))},
		{"NodeInfo is not a table that can be edited", text(s.Edit.Table(mad.AttrNodeInfo, leaf.GUID(), 1, 0, none))},
		{`"node-0001 HCA-1" (0x0002c90310000000) has no entry for multicast LID 0xc000`, text(s.Edit.Multicast(ca.GUID(), 0xc000, 1, true))},
		{leaf1 + "has no entry for multicast LID 0x5", text(s.Edit.Multicast(leaf.GUID(), 5, 1, true))},
		{leaf1 + "has no block 0x180 of MulticastForwardingTable", text(s.Edit.Multicast(leaf.GUID(), 0xf000, 1, true))},
		{"the simulated fabric has no node with GUID 0x0000000000000001", text(s.Edit.AddGroup(mad.MCMemberRecord{}, 1, Cable{Node: 1, Num: 1}))},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	var block [state.SMPSize]byte
	s.state.ReadBlock(state.PKeyBlocks, &s.state.Nodes[ca.ID()].Ports[1], 0, block[:])
	if got := binary.BigEndian.Uint64(block[:]); got != 0xffff_0000_8001_0000 {
		t.Errorf("P_Keys are %#x", got)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAddGroup: the tables carry a group to its members along a tree, and to
// nobody else; who only sends gets nothing.
func TestAddGroup(t *testing.T) {
	fab, o, err := Parse("fattree")
	if err != nil {
		t.Fatal(err)
	}
	s := New(fab, o)
	cas := fab.OfType(mad.NodeTypeCA)
	at := func(i int) Cable { return Cable{Node: cas[i].GUID(), Num: 1} }
	rec := mad.MCMemberRecord{MGID: mad.MakeGID(0xff12a01bfe800000, 7), MLID: 0xc007}
	if err := s.Edit.AddGroup(rec, mad.JoinStateFullMember, at(9), at(0), at(1)); err != nil {
		t.Fatal(err)
	}
	rec.MGID[15], rec.MLID = 8, 0xc008
	if err := s.Edit.AddGroup(rec, mad.JoinStateSendOnlyNonMember, at(20)); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint16{}
	switches := fab.OfType(mad.NodeTypeSwitch)
	for i := range switches {
		n := &s.state.Nodes[switches[i].ID()]
		for row := 7; row <= 8; row++ {
			var block [state.SMPSize]byte
			s.state.ReadBlock(state.MFTBlocks, &n.Ports[0], 0, block[:])
			if mask := binary.BigEndian.Uint16(block[2*row:]); mask != 0 {
				got[switches[i].Name()] |= mask
			}
		}
	}
	// node-0001 and node-0002 are at leaf-1, node-0010 at leaf-3.
	want := map[string]uint16{"leaf-1": 1<<1 | 1<<2 | 1<<5, "spine-1": 1<<1 | 1<<3, "leaf-3": 1<<2 | 1<<5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestThresholds: where a counter of exceeded thresholds grows, the port says so; not
// where it is cleared, or another one grows.
func TestThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small)
		c := r.traps()
		leaf := r.named("leaf-4").GUID()
		const integrity, overrun = "local_link_integrity_errors", "excessive_buffer_overrun_errors"
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		do(r.Counters.Set(leaf, 2, map[string]uint64{integrity: 3}))
		do(r.Counters.Set(leaf, 2, map[string]uint64{integrity: 0, "symbol_error_counter": 9}))
		do(r.Counters.Add(leaf, 1, "ExcessiveBufferOverrunErrors", 2))
		do(r.Counters.SetRates(leaf, 2, map[string]float64{integrity: 0.5, "symbol_error_counter": 9}))
		do(r.Counters.SetRates(leaf, 2, map[string]float64{integrity: 0, overrun: 0}))
		if _, err := r.Counters.SetByName(state.End{Node: r.named("leaf-4").ID(), Num: 3}, "PortCounters", "ExcessiveBufferOverrunErrors", 5); err != nil {
			t.Fatal(err)
		}
		const watchdog = "port_vl_xmit_flow_ctl_update_errors1"
		do(r.Counters.Set(leaf, 2, map[string]uint64{watchdog: 1}))
		do(r.Counters.Set(r.named("node-0001 HCA-1").GUID(), 1, map[string]uint64{watchdog: 1}))
		want := []string{
			"Trap 1 4: trap 129 of LID 4, ", "Trap 2 4: trap 130 of LID 4, ", "Trap 3 4: trap 129 of LID 4, ", "Trap 4 4: trap 130 of LID 4, ",
			"Trap 5 4: trap 131 of LID 4, ",
		}
		if diff := cmp.Diff(want, r.events(c)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for range 8 { // of several counters in one call, too
			do(r.Counters.Set(leaf, 1, map[string]uint64{integrity: 0, overrun: 0}))
			r.state.Lock()
			r.Notices.LastTrap = 0
			r.state.Unlock()
			do(r.Counters.Set(leaf, 1, map[string]uint64{integrity: 1, overrun: 1}))
			if diff := cmp.Diff([]string{"Trap 1 4: trap 130 of LID 4, ", "Trap 2 4: trap 129 of LID 4, "}, r.events(c)); diff != "" {
				t.Errorf("of two counters (-want +got)\n%s", diff)
			}
		}
		r.Notices.StopTraps()
	})
}
