package sim

import (
	"bytes"
	"slices"
	"testing"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
