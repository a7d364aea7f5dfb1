package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestTableRecords: the records of tables show what the agents have, one for each
// block, and any component selects.
func TestTableRecords(t *testing.T) {
	r := newRig(t, small)
	leaf, host := r.lid("leaf-1"), r.lid("node-0002 HCA-1")
	pattern := func(b byte) []byte { return bytes.Repeat([]byte{b}, state.SMPSize) }
	r.set(mad.AttrSLtoVLMappingTable, 2<<8|3, leaf1, pattern(0x11))
	r.set(mad.AttrVLArbitrationTable, 3<<16|4, leaf1, pattern(0x02))
	r.set(mad.AttrPKeyTable, 2<<16, leaf1, pattern(0x55))
	r.set(mad.AttrPKeyTable, 3, node2, pattern(0x66))
	r.set(mad.AttrGUIDInfo, 0, node2, pattern(0x77))
	r.set(mad.AttrMulticastForwardingTable, 9, leaf1, pattern(0x01))

	records := func(a *mad.Attribute, mask uint64, want state.Encoder) [][]byte {
		t.Helper()
		c := saCall(mad.MethodGetTable, a, 0, mask, encode(want), r.state.SM.LID)
		c.MAD[mad.SAKeyOffset+7] = agent.SMKey
		e := engine.New(r.attach("node-0001 HCA-1"), engine.Options{})
		defer e.Close()
		do(t, e, c)
		return split(c.Table, (a.Size+7)&^7)
	}
	mask := func(a *mad.Attribute, fields ...string) (m uint64) {
		for _, f := range fields {
			m |= a.Field(f).Mask()
		}
		return m
	}
	for _, test := range []struct {
		attr  *mad.Attribute
		mask  []string
		asked state.Encoder
		count int
		data  []byte // of the only one
	}{
		{mad.AttrSLtoVLMappingTableRecord, nil, &mad.SLtoVLMappingTableRecord{}, 6*25 + 8, nil},
		{mad.AttrSLtoVLMappingTableRecord, []string{"lid"}, &mad.SLtoVLMappingTableRecord{LID: leaf}, 25, nil},
		{mad.AttrSLtoVLMappingTableRecord, []string{"lid", "input_port_num", "output_port_num"}, &mad.SLtoVLMappingTableRecord{LID: leaf, InputPortNum: 2, OutputPortNum: 3}, 1, pattern(0x11)[:8]},
		{mad.AttrSLtoVLMappingTableRecord, []string{"input_port_num", "output_port_num"}, &mad.SLtoVLMappingTableRecord{OutputPortNum: 1}, 6 + 8, nil},
		{mad.AttrVLArbitrationTableRecord, nil, &mad.VLArbitrationTableRecord{}, (6*5 + 8) * 2, nil},
		{mad.AttrVLArbitrationTableRecord, []string{"lid", "output_port_num", "block_num"}, &mad.VLArbitrationTableRecord{LID: leaf, OutputPortNum: 4, BlockNum: 3}, 1, pattern(0x02)},
		{mad.AttrPKeyTableRecord, nil, &mad.PKeyTableRecord{}, 6*5 + 8*4, nil},
		{mad.AttrPKeyTableRecord, []string{"lid", "port_num"}, &mad.PKeyTableRecord{LID: leaf, PortNum: 2}, 1, pattern(0x55)},
		{mad.AttrPKeyTableRecord, []string{"lid", "block_num"}, &mad.PKeyTableRecord{LID: host, BlockNum: 3}, 1, pattern(0x66)},
		{mad.AttrGUIDInfoRecord, nil, &mad.GUIDInfoRecord{}, 6 + 8, nil},
		{mad.AttrGUIDInfoRecord, []string{"lid"}, &mad.GUIDInfoRecord{LID: host}, 1, append(binary.BigEndian.AppendUint64(nil, uint64(r.at("node-0002 HCA-1", 1).GUID)), pattern(0x77)[8:]...)},
		{mad.AttrMulticastForwardingTableRecord, nil, &mad.MulticastForwardingTableRecord{}, 1, pattern(0x01)},
		{mad.AttrMulticastForwardingTableRecord, []string{"block_num"}, &mad.MulticastForwardingTableRecord{BlockNum: 8}, 0, nil},
		{mad.AttrRandomForwardingTableRecord, nil, &mad.RandomForwardingTableRecord{}, 0, nil},
	} {
		got := records(test.attr, mask(test.attr, test.mask...), test.asked)
		if len(got) != test.count {
			t.Errorf("%s by %v: %d records, want %d", test.attr.Name, test.mask, len(got), test.count)
		} else if test.data != nil && !bytes.Equal(got[0][8:8+len(test.data)], test.data) {
			t.Errorf("%s by %v: % x", test.attr.Name, test.mask, got[0])
		}
	}
	c := saCall(mad.MethodGetTable, mad.AttrPKeyTableRecord, 0, 0, nil, r.state.SM.LID)
	if !r.conn.ask(t, c) || c.Header().Status != mad.StatusRequestInvalid {
		t.Errorf("partitions for everybody: %v", c.Header().Status)
	}
}

// TestGUIDRecords: entries of a GUID table are asked for, and given back.
func TestGUIDRecords(t *testing.T) {
	r := newRig(t, small)
	host := r.lid("node-0002 HCA-1")
	own := r.at("node-0002 HCA-1", 1).GUID
	first := mad.AttrGUIDInfoRecord.Field("guid_block")
	change := func(m mad.Method, mask uint64, block uint8, guids ...mad.GUID) (mad.Status, [8]mad.GUID) {
		t.Helper()
		rec := mad.GUIDInfoRecord{LID: host, BlockNum: block}
		copy(rec.GUIDInfo.GUIDBlock[:], guids)
		c := saCall(m, mad.AttrGUIDInfoRecord, 0, mask, encode(&rec), r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		rec.Decode(c.Data())
		return c.Header().Status, rec.GUIDInfo.GUIDBlock
	}
	entry := func(e int) uint64 { return 1 << (first.Component + e) }
	for _, test := range []struct {
		name   string
		method mad.Method
		mask   uint64
		block  uint8
		guids  []mad.GUID
		status mad.Status
		want   [8]mad.GUID
	}{
		{"chosen, and named", mad.MethodSet, guidRecordMask | entry(1) | entry(2), 0, []mad.GUID{5, 0, 7, 8}, 0, [8]mad.GUID{own, firstGUID, 7}},
		{"its own is not changed", mad.MethodSet, guidRecordMask | entry(0), 0, []mad.GUID{5}, 0, [8]mad.GUID{own, firstGUID, 7}},
		{"given back", mad.MethodDelete, guidRecordMask | entry(1), 0, nil, 0, [8]mad.GUID{own, 0, 7}},
		{"which port?", mad.MethodSet, entry(1), 0, nil, mad.StatusInsufficient, [8]mad.GUID{}},
		{"no such block", mad.MethodSet, guidRecordMask | entry(1), 1, nil, mad.StatusRequestInvalid, [8]mad.GUID{}},
	} {
		status, got := change(test.method, test.mask, test.block, test.guids...)
		if status != test.status || status == 0 && got != test.want {
			t.Errorf("%s: %v %v", test.name, status, got)
		}
	}
	var table mad.GUIDInfo
	_, data := r.get(mad.AttrGUIDInfo, 0, node2)
	if table.Decode(data); table.GUIDBlock != [8]mad.GUID{own, 0, 7} {
		t.Errorf("the agent has %v", table.GUIDBlock)
	}
}

// mft lists the ports of each switch that packets to an MLID leave through.
func (r *rig) mft(mlid mad.LID) map[string][]int {
	r.t.Helper()
	tables := map[string][]int{}
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		for num := range n.Ports {
			entry := uint32(mlid - state.FirstMLID)
			block, offset := uint32(num/16)<<28|entry/mad.MFTBlock, int(entry%mad.MFTBlock)*2
			data := r.state.Block(state.MFTBlocks, &n.Ports[0], block)
			if binary.BigEndian.Uint16(data[offset:])>>(num%16)&1 != 0 {
				name := r.Fabric.Nodes()[i].Name()
				tables[name] = append(tables[name], num)
			}
		}
	}
	return tables
}

// TestMulticastTables: the tables follow who joins and leaves, and which links there
// are: they are trees that reach all members.
func TestMulticastTables(t *testing.T) {
	r := newRig(t, small)
	all := r.state.Groups[0]
	change := func(m mad.Method, name string) {
		t.Helper()
		rec := mad.MCMemberRecord{MGID: all.MGID, PortGID: r.at(name, 1).GID(), JoinState: mad.JoinStateFullMember}
		c := saCall(m, mad.AttrMCMemberRecord, 0, joinMask, encode(&rec), r.state.SM.LID)
		if !r.attach(name).ask(t, c) || c.Header().Status != 0 {
			t.Fatalf("%s: %v", name, c.Header().Status)
		}
	}
	want := func(what string, want map[string][]int) {
		t.Helper()
		if diff := cmp.Diff(want, r.mft(all.MLID)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	change(mad.MethodSet, "node-0001 HCA-1")
	want("one", map[string][]int{"leaf-1": {1}})
	var other mad.SwitchInfo
	if other.Decode(r.at("leaf-2", 0).Node.SwitchInfo[:]); other.MulticastFDBTop != uint16(all.MLID) {
		t.Errorf("MulticastFDBTop of another switch: %#x", other.MulticastFDBTop)
	}
	change(mad.MethodSet, "node-0002 HCA-1")
	want("two on a switch", map[string][]int{"leaf-1": {1, 2}})
	change(mad.MethodSet, "node-0008 HCA-1")
	want("three", map[string][]int{"leaf-1": {1, 2, 3}, "spine-1": {1, 4}, "leaf-4": {2, 3}})
	r.Cables.Unlink(r.named("leaf-1").GUID(), 3)
	want("by another way", map[string][]int{"leaf-1": {1, 2, 4}, "spine-2": {1, 4}, "leaf-4": {2, 4}})
	change(mad.MethodDelete, "node-0001 HCA-1")
	want("one left", map[string][]int{"leaf-1": {2, 4}, "spine-2": {1, 4}, "leaf-4": {2, 4}})
	r.Cables.Unlink(r.named("leaf-4").GUID(), 2)
	want("one pulled", map[string][]int{"leaf-1": {2}})
	if got := r.state.GroupOf(all.MGID); len(got.Members) != 1 {
		t.Errorf("members: %v", fmt.Sprint(len(got.Members)))
	}
	change(mad.MethodDelete, "node-0002 HCA-1")
	want("nobody", map[string][]int{})
	if !slices.ContainsFunc(r.state.Groups, func(g *state.Group) bool { return g.MLID == state.FirstMLID }) {
		t.Error("the broadcast group is gone")
	}
}

// TestVersion1: what is public of class version 1 is served: requests in one MAD, tables in any number.
func TestVersion1(t *testing.T) {
	r := newRig(t, "fattree:k=4,levels=2")
	e := r.engine(engine.Options{Write: true})
	ask := func(m mad.Method, a *mad.Attribute, mask uint64, record state.Encoder) *engine.Call {
		c := &engine.Call{}
		data := make([]byte, 192)
		record.Encode(data)
		c.PutMAD(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 1, Method: m, Attribute: a.ID}, data)
		mad.PutSA(c.MAD[:], mask, a.Size)
		c.SetLID(r.state.SM.LID)
		c.To.QP = 1
		e.Do(t.Context(), c)
		return c
	}
	for _, test := range []struct {
		name   string
		method mad.Method
		attr   *mad.Attribute
		mask   uint64
		lid    mad.LID
		status mad.Status
		size   int // of a table, in bytes
	}{
		{"a record", mad.MethodGet, mad.AttrNodeRecord, lidMask, 2, 0, 0},
		{"none", mad.MethodGet, mad.AttrNodeRecord, lidMask, 999, mad.StatusNoRecords, 0},
		{"too many", mad.MethodGet, mad.AttrNodeRecord, 0, 0, mad.StatusTooManyRecords, 0},
		{"a table of one", mad.MethodGetTable, mad.AttrNodeRecord, lidMask, 2, 0, 112},
		{"a table of none", mad.MethodGetTable, mad.AttrNodeRecord, lidMask, 999, 0, 0},
		{"a table of several MADs", mad.MethodGetTable, mad.AttrNodeRecord, 0, 0, 0, 112 * len(slices.Collect(state.EndPorts(r.state.LIDs)))},
		{"version 1 has no such Get", mad.MethodGet, mad.AttrLinearForwardingTableRecord, lidMask, 2, mad.StatusBadMethodAttribute, 0},
		{"no RangeRecord", mad.MethodGet, mad.AttrSubnAdm1RangeRecord, 0, 0, mad.StatusNoRecords, 0},
		{"a table of RangeRecords", mad.MethodGetTable, mad.AttrSubnAdm1RangeRecord, 0, 0, 0, 0},
		{"a table of NoticeRecords", mad.MethodGetTable, mad.AttrSubnAdm1NoticeRecord, 0, 0, 0, 0},
		{"a table of InformRecords", mad.MethodGetTable, mad.AttrInformInfoRecord, 0, 0, 0, 0},
		{"a layout that is not public", mad.MethodSet, mad.AttrSubnAdm1RangeRecord, 0, 0, mad.StatusBadMethodAttribute, 0},
		{"groups, whose layout is not public", mad.MethodGetTable, mad.AttrSubnAdm1MCGroupRecord, 0, 0, mad.StatusBadMethodAttribute, 0},
		{"all of it", mad.MethodGetBulk, mad.AttrNodeRecord, 0, 0, mad.StatusBadMethod, 0},
		{"a whole table", mad.MethodConfig, mad.AttrServiceRecord, 0, 0, mad.StatusBadValue, 0},
		{"a table that the subnet administrator alone makes", mad.MethodConfig, mad.AttrNodeRecord, 0, 0, mad.StatusBadMethodAttribute, 0},
		{"a join without components", mad.MethodSet, mad.AttrMCMemberRecord, 0, 0, mad.StatusInsufficient, 0},
	} {
		c := ask(test.method, test.attr, test.mask, &mad.NodeRecord{LID: test.lid})
		if h := mad.ParseHeader(c.MAD[:]); h.Status != test.status || h.ClassVersion != 1 || len(c.Table) != test.size {
			t.Errorf("%s: %v, %d bytes, %v", test.name, h, len(c.Table), c.Err)
		}
	}
	var got mad.NodeRecord
	got.Decode(ask(mad.MethodGet, mad.AttrNodeRecord, lidMask, &mad.NodeRecord{LID: 2}).MAD[mad.SAPlacesIn(1).Data:])
	if want := r.state.LIDs[2].EndPort().GUID; got.LID != 2 || got.NodeInfo.PortGUID != want {
		t.Errorf("%+v, want the port %v", got, want)
	}
	var info mad.ClassPortInfo
	info.Decode(ask(mad.MethodGet, mad.AttrSubnAdmClassPortInfo, 0, &mad.NodeRecord{}).MAD[mad.SAPlacesIn(1).Data:])
	if info.ClassVersion != 1 || info.CapabilityMask != 0 || info.CapabilityMask2 != 0 {
		t.Errorf("%+v", info)
	}

	// A Set and an Inform, and what becomes of them.
	self := r.conn.node.Ports[1].GID()
	service := mad.ServiceRecord{ServiceID: 7, ServiceGID: self, ServicePKey: mad.DefaultPKey}
	serviceMask := mad.AttrServiceRecord.Field("service_id").Mask() | mad.AttrServiceRecord.Field("service_gid").Mask()
	subscription := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.InformTypeAll, TrapNumber: 128, ProducerType: mad.ProducerTypeAll}
	group := r.state.Groups[0].MGID
	joined := mad.MCMemberRecord{MGID: group, PortGID: self, JoinState: mad.JoinStateFullMember}
	for _, test := range []struct {
		name   string
		method mad.Method
		answer mad.Method
		attr   *mad.Attribute
		mask   uint64
		record state.Encoder
	}{
		{"Set(ServiceRecord)", mad.MethodSet, mad.MethodGetResp, mad.AttrServiceRecord, serviceMask, &service},
		{"Set(MCMemberRecord)", mad.MethodSet, mad.MethodGetResp, mad.AttrMCMemberRecord, joinMask, &joined},
		{"Inform(InformInfo)", mad.MethodInform, mad.MethodInform | mad.Response, mad.AttrInformInfo, 0, &subscription},
		{"Set(InformRecord)", mad.MethodSet, mad.MethodGetResp, mad.AttrInformInfoRecord, 0, &mad.InformInfoRecord{SubscriberGID: self, InformInfo: everything()}},
	} {
		c := ask(test.method, test.attr, test.mask, test.record)
		if h := mad.ParseHeader(c.MAD[:]); h.Status != 0 || h.Method != test.answer || c.Err != nil {
			t.Errorf("%s: %v, %v", test.name, h, c.Err)
		}
	}
	if s := r.SA.Services; len(s) != 1 || s[0].ServiceID != 7 || len(r.state.GroupOf(group).Members) != 1 || len(r.Notices.Subscriptions) != 2 {
		t.Errorf("services %+v, members %v, subscriptions %+v", s, r.state.GroupOf(group).Members, r.Notices.Subscriptions)
	}
}

// TestComponents asks by each component of each record: the answer has all records
// with the value, and no others.
func TestComponents(t *testing.T) {
	r := newRig(t, "fattree:k=4,levels=3")
	// Some variety.
	r.set(mad.AttrNodeDescription, 0, leaf1, []byte("another name"))
	r.at("node-0005 HCA-1", 1).SetDown(mad.PortPhysicalStatePolling)
	r.at("node-0005 HCA-1", 1).Train()
	r.set(mad.AttrSLtoVLMappingTable, 2<<8|3, leaf1, bytes.Repeat([]byte{0x11}, 8))
	r.set(mad.AttrVLArbitrationTable, 3<<16|4, leaf1, bytes.Repeat([]byte{0x02}, 64))
	r.set(mad.AttrPKeyTable, 2<<16, leaf1, bytes.Repeat([]byte{0x85}, 64))
	r.set(mad.AttrGUIDInfo, 0, leaf1, bytes.Repeat([]byte{0x77}, 64))
	r.set(mad.AttrMulticastForwardingTable, 9, leaf1, bytes.Repeat([]byte{0x01}, 64))
	r.set(mad.AttrMulticastForwardingTable, 2, leaf1, bytes.Repeat([]byte{0x03}, 64))
	for i := range uint64(3) {
		info := everything()
		info.TrapNumber = uint16(128 + i)
		r.inform(r.conn, info, 0)
		c := saCall(mad.MethodSet, mad.AttrServiceRecord, 0, 1<<64-1, encode(&mad.ServiceRecord{
			ServiceID: 7 + i, ServiceGID: r.state.SM.GID(), ServicePKey: mad.DefaultPKey, ServiceName: [64]byte{'a' + byte(i)}, ServiceLease: 3600,
			ServiceData8: [16]uint8{9: uint8(i)}, ServiceData32: [4]uint32{uint32(i), 1},
		}), r.state.SM.LID)
		if !r.conn.ask(t, c) || c.Header().Status != 0 {
			t.Fatal(c.Header().Status)
		}
	}
	e := r.engine(engine.Options{})
	records := func(a *mad.Attribute, mask uint64, query []byte) [][]byte {
		c := saCall(mad.MethodGetTable, a, 0, mask, query[:min(len(query), a.Size)], r.state.SM.LID)
		c.MAD[mad.SAKeyOffset+7] = agent.SMKey
		do(t, e, c)
		return split(c.Table, (a.Size+7)&^7)
	}
	special := map[string]bool{"ServiceID": true, "NumbPath": true, "Reversible": true,
		"MTUSelector": true, "RateSelector": true, "PacketLifeTimeSelector": true}
	for _, a := range append(slices.Clip(recordAttributes), mad.AttrSLtoVLMappingTableRecord, mad.AttrVLArbitrationTableRecord, mad.AttrPKeyTableRecord,
		mad.AttrGUIDInfoRecord, mad.AttrMulticastForwardingTableRecord, mad.AttrInformInfoRecord, mad.AttrServiceRecord) {
		all := records(a, 0, nil)
		first := &a.Flat()[0]
		check := func(query []byte, fields ...*mad.Field) {
			t.Helper()
			var want [][]byte
			mask := uint64(0)
			for _, f := range fields {
				mask |= f.Mask()
			}
			for _, rec := range all {
				if !slices.ContainsFunc(fields, func(f *mad.Field) bool { return !same(f, rec, query) }) {
					want = append(want, rec)
				}
			}
			if got := records(a, mask, query); !slices.EqualFunc(want, got, bytes.Equal) {
				t.Errorf("%s by mask %#x of % x: %d records, want %d", a.Name, mask, query, len(got), len(want))
			}
		}
		for _, f := range a.Flat() {
			if f.Component < 0 || a == mad.AttrPathRecord && special[f.Name] || f.Name == "ServiceLease" {
				continue
			}
			for _, sample := range [][]byte{all[0], all[len(all)/2], all[len(all)-1]} {
				// Only the component asked for counts: the others are rubbish.
				query := bytes.Repeat([]byte{0xa5}, 200)
				overwrite(&f, query, sample)
				check(query, &f)
				if a != mad.AttrPathRecord { // and with a LID beside it
					overwrite(first, query, sample)
					check(query, &f, first)
				}
				if f.Type != mad.FieldTypeGID && f.Name != "P_Key" { // and a value that few records have, or none
					flip(&f, query)
					check(query, &f)
				}
			}
		}
	}
}

func same(f *mad.Field, a, b []byte) bool {
	if f.Bits > 64 {
		return bytes.Equal(f.Bytes(a), f.Bytes(b))
	}
	for i := range f.Count {
		if f.UintAt(a, i) != f.UintAt(b, i) {
			return false
		}
	}
	return true
}

func overwrite(f *mad.Field, to, from []byte) {
	if f.Bits > 64 {
		f.SetBytes(to, f.Bytes(from))
		return
	}
	for i := range f.Count {
		f.SetUintAt(to, i, f.UintAt(from, i))
	}
}

func flip(f *mad.Field, data []byte) {
	if f.Bits > 64 {
		f.Bytes(data)[0] ^= 0x55
		return
	}
	f.SetUint(data, f.Uint(data)^f.Max())
}

// Components of records, by their bits in a ComponentMask.
var (
	pathDGIDMask       = components(mad.AttrPathRecord, "dgid")
	pathDLIDMask       = components(mad.AttrPathRecord, "dlid")
	pathLifeMask       = components(mad.AttrPathRecord, "packet_life_time")
	pathMTUMask        = components(mad.AttrPathRecord, "mtu")
	pathNumbPathMask   = components(mad.AttrPathRecord, "numb_path")
	pathPKeyMask       = components(mad.AttrPathRecord, "p_key")
	pathRateMask       = components(mad.AttrPathRecord, "rate")
	pathReversibleMask = components(mad.AttrPathRecord, "reversible")
	pathSGIDMask       = components(mad.AttrPathRecord, "sgid")
	pathSLIDMask       = components(mad.AttrPathRecord, "slid")
	pathSelectLifeMask = components(mad.AttrPathRecord, "packet_life_time_selector")
	pathSelectMTUMask  = components(mad.AttrPathRecord, "mtu_selector")
	pathSelectRateMask = components(mad.AttrPathRecord, "rate_selector")
	pathServiceIDMask  = components(mad.AttrPathRecord, "service_id")

	joinMask       = components(mad.AttrMCMemberRecord, "mgid", "port_gid", "join_state")
	createMask     = joinMask | components(mad.AttrMCMemberRecord, "q_key", "tclass", "p_key", "flow_label", "sl")
	guidRecordMask = components(mad.AttrGUIDInfoRecord, "lid", "block_num")
	lidMask        = components(mad.AttrNodeRecord, "lid")
)

func components(a *mad.Attribute, scripts ...string) (mask uint64) {
	for _, s := range scripts {
		mask |= a.Field(s).Mask()
	}
	return mask
}

func multiPathMask(script string) uint64 { return components(mad.AttrMultiPathRecord, script) }

// firstGUID is the first GUID that the subnet administrator chooses.
const firstGUID = mad.GUID(0x0014_0500_0000_0001)

// Fields of PortInfo and SwitchInfo.
var (
	portInfoKeyField           = mad.AttrPortInfo.Field("m_key")
	portInfoLeaseField         = mad.AttrPortInfo.Field("m_key_lease_period")
	portInfoProtectField       = mad.AttrPortInfo.Field("m_key_protect_bits")
	portInfoSMLIDField         = mad.AttrPortInfo.Field("master_sm_lid")
	portInfoViolationsField    = mad.AttrPortInfo.Field("m_key_violations")
	switchInfoStateChangeField = mad.AttrSwitchInfo.Field("port_state_change")
)
