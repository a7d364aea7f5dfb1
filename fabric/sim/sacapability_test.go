package sim

import (
	"slices"
	"testing"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// saProbes are a request for each capability of a subnet administrator, which only one that
// has it serves.
var saProbes = map[string]func(r *rig, e *engine.Engine) bool{
	"is_ud_multicast_supported": func(r *rig, e *engine.Engine) bool {
		return len(r.records(e, mad.AttrMCMemberRecord, 0, 0, nil)) == 1
	},
	"is_multi_path_supported": func(r *rig, e *engine.Engine) bool {
		c := r.multi(3)
		e.Do(r.t.Context(), c)
		return c.Err == nil && len(c.Table) == 3*mad.AttrPathRecord.Size
	},
	"is_port_info_capability_mask_match_supported": func(r *rig, e *engine.Engine) bool {
		return r.matchesMask(e, "capability_mask")
	},
	"is_port_info_capability_mask2_match_supported": func(r *rig, e *engine.Engine) bool {
		return r.matchesMask(e, "capability_mask2")
	},
	"is_additional_guid_supported": func(r *rig, e *engine.Engine) bool { // an alias GUID that is set is a GID of the port
		lid := r.lid("node-0002 HCA-1")
		field := func(name string) uint64 { return mad.AttrGUIDInfoRecord.Field(name).Mask() }
		rec := mad.GUIDInfoRecord{LID: lid}
		rec.GUIDInfo.GUIDBlock[1] = 0x1234
		guid := field("guid_block")
		mask := field("lid") | field("block_num") | (guid&-guid)<<1
		c := saCall(mad.MethodSet, mad.AttrGUIDInfoRecord, 0, mask, encode(&rec), r.state.SM.LID)
		if !r.attach("node-0002 HCA-1").ask(r.t, c) || c.Header().Status != 0 {
			return false
		}
		records := r.records(e, mad.AttrGUIDInfoRecord, 0, field("lid"), encode(&rec))
		var got mad.GUIDInfoRecord
		got.Decode(records[0])
		return got.GUIDInfo.GUIDBlock[1] == 0x1234
	},
	"is_full_port_info_record_supported": func(r *rig, e *engine.Engine) bool { // up to the last field
		var rec mad.PortInfoRecord
		rec.Decode(r.records(e, mad.AttrPortInfoRecord, 0, 0, nil)[0])
		return rec.PortInfo.CapabilityMask2 != 0
	},
	"is_extended_speeds_supported": func(r *rig, e *engine.Engine) bool {
		var rec mad.PortInfoRecord
		rec.Decode(r.records(e, mad.AttrPortInfoRecord, 0, 0, nil)[0])
		return rec.Options == 0x80 && rec.PortInfo.LinkSpeedExtActive != 0
	},
	"is_multicast_service_record_supported": func(r *rig, e *engine.Engine) bool {
		field := func(name string) uint64 { return mad.AttrServiceRecord.Field(name).Mask() }
		rec := encode(&mad.ServiceRecord{ServiceID: 9, ServiceGID: r.state.Groups[0].MGID, ServicePKey: mad.DefaultPKey})
		c := saCall(mad.MethodSet, mad.AttrServiceRecord, 0, field("service_id")|field("service_gid")|field("service_p_key"), rec, r.state.SM.LID)
		do(r.t, e, c)
		return len(r.records(e, mad.AttrServiceRecord, 0, field("service_gid"), rec)) == 1
	},
	"is_send_only_full_member_supported": func(r *rig, e *engine.Engine) bool {
		rec := mad.MCMemberRecord{MGID: r.state.Groups[0].MGID, PortGID: r.conn.node.Ports[1].GID(), JoinState: mad.JoinStateSendOnlyFullMember}
		c := saCall(mad.MethodSet, mad.AttrMCMemberRecord, 0, joinMask, encode(&rec), r.state.SM.LID)
		do(r.t, e, c)
		return r.state.Groups[0].FullMembers() == 1
	},
	// The rates of paths: 2x of HDR and 4x of HDR.
	"is_link_width2x_supported":   func(r *rig, e *engine.Engine) bool { return r.rateOver(e, mad.LinkWidth2x) == mad.Rate100 },
	"is_link_speed_hdr_supported": func(r *rig, e *engine.Engine) bool { return r.rateOver(e, mad.LinkWidth4x) == mad.Rate200 },
}

// matchesMask: with bit 31 of the modifier a mask of PortInfoRecord need not be equal.
func (r *rig) matchesMask(e *engine.Engine, field string) bool {
	f := mad.AttrPortInfoRecord.Field(field)
	all := r.records(e, mad.AttrPortInfoRecord, 0, 0, nil)
	record := make([]byte, mad.AttrPortInfoRecord.Size)
	bit := f.Uint(all[0])
	bit &= -bit
	f.SetUint(record, bit)
	want := 0
	for _, rec := range all {
		if f.Uint(rec)&bit != 0 {
			want++
		}
	}
	return len(r.records(e, mad.AttrPortInfoRecord, 1<<31, f.Mask(), record)) == want
}

// rateOver is the rate of a path over a link at HDR of a width.
func (r *rig) rateOver(e *engine.Engine, width mad.LinkWidth) mad.Rate {
	for _, p := range []*state.Port{r.at("node-0001 HCA-1", 1), r.at("node-0001 HCA-1", 1).Peer} {
		p.EditInfo(func(i *mad.PortInfo) {
			i.LinkWidthActive, i.LinkSpeedExtActive = width, mad.LinkSpeedExtHDR
		})
	}
	rec := encode(&mad.PathRecord{SLID: r.lid("node-0001 HCA-1"), DLID: r.lid("node-0002 HCA-1")})
	c := saCall(mad.MethodGet, mad.AttrPathRecord, 0, pathSLIDMask|pathDLIDMask, rec, r.state.SM.LID)
	do(r.t, e, c)
	var path mad.PathRecord
	path.Decode(c.Data())
	return path.Rate
}

// TestSACapabilities: each bit that the subnet administrator announces it serves.
func TestSACapabilities(t *testing.T) {
	r := newRig(t, small)
	var info mad.ClassPortInfo
	c := saCall(mad.MethodGet, mad.AttrSubnAdmClassPortInfo, 0, 0, nil, r.state.SM.LID)
	do(t, r.engine(engine.Options{}), c)
	info.Decode(c.Data())
	if info.CapabilityMask != 0x2600 || info.CapabilityMask2 != 0xb5e0 {
		t.Errorf("CapabilityMask %#x, CapabilityMask2 %#x; want 0x2600 and 0xb5e0", info.CapabilityMask, info.CapabilityMask2)
	}
	words := slices.Concat(mad.AttrSubnAdmClassPortInfo.Field("capability_mask").Words.Split(uint64(info.CapabilityMask)),
		mad.AttrSubnAdmClassPortInfo.Field("capability_mask2").Words.Split(uint64(info.CapabilityMask2)))
	for _, word := range words {
		probe := saProbes[word]
		if probe == nil {
			t.Errorf("%s is announced, and has no test", word)
			continue
		}
		r := newRig(t, small)
		if !probe(r, r.engine(engine.Options{Write: true})) {
			t.Errorf("%s is announced, and not served", word)
		}
	}
	if len(words) != len(saProbes) {
		t.Errorf("%d capabilities are announced, %d have a test", len(words), len(saProbes))
	}
}
