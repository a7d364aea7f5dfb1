package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

func saCall(m mad.Method, a *mad.Attribute, modifier uint32, mask uint64, record []byte, lid mad.LID) *engine.Call {
	c := &engine.Call{}
	c.PutSA(m, a.ID, modifier, mask, record)
	c.SetLID(lid)
	return c
}

// records runs a GetTable.
func (r *rig) records(e *engine.Engine, a *mad.Attribute, modifier uint32, mask uint64, record []byte) [][]byte {
	r.t.Helper()
	c := saCall(mad.MethodGetTable, a, modifier, mask, record, r.state.SM.LID)
	do(r.t, e, c)
	if offset := int(binary.BigEndian.Uint16(c.MAD[mad.SAAttrOffsetOffset:])) * 8; offset != (a.Size+7)&^7 {
		r.t.Fatalf("%s: AttributeOffset %d", a.Name, offset)
	}
	return split(c.Table, (a.Size+7)&^7)
}

func split(table []byte, size int) (records [][]byte) {
	for ; len(table) >= size; table = table[size:] {
		records = append(records, table[:size])
	}
	return records
}

var recordAttributes = []*mad.Attribute{
	mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSwitchInfoRecord,
	mad.AttrLinearForwardingTableRecord, mad.AttrLinkRecord, mad.AttrSMInfoRecord, mad.AttrPathRecord,
}

// TestTableSizes: all records, once, in order.
func TestTableSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("43,264 records: with the race detector the receiver falls behind their sender")
	}
	r := newRig(t, "fattree:k=8,levels=3")
	e := r.engine(engine.Options{})
	want := map[string]int{
		"NodeRecord": 208, "PortInfoRecord": 80*9 + 128, "SwitchInfoRecord": 80,
		"LinearForwardingTableRecord": 80 * 4, "LinkRecord": 2 * 384, "SMInfoRecord": 1, "PathRecord": 208 * 208,
	}
	got := map[string]int{}
	for _, a := range recordAttributes {
		records := r.records(e, a, 0, 0, nil)
		got[a.Name] = len(records)
		seen := map[string]bool{}
		for i, rec := range records {
			if seen[string(rec)] {
				t.Fatalf("%s: record %d is there twice", a.Name, i)
			}
			seen[string(rec)] = true
			if i > 0 && a != mad.AttrPathRecord && a != mad.AttrSMInfoRecord && bytes.Compare(records[i-1][:2], rec[:2]) > 0 {
				t.Fatalf("%s: record %d is not in order", a.Name, i)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAdminStatuses(t *testing.T) {
	r := newRig(t, small)
	lid := func(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }
	path := func(p mad.PathRecord) []byte { return encode(&p) }
	unknownGID := mad.MakeGID(state.GIDPrefix, 0x77)
	for _, test := range []struct {
		name   string
		method mad.Method
		attr   *mad.Attribute
		mask   uint64
		record []byte
		want   mad.Status
	}{
		{"one record", mad.MethodGet, mad.AttrNodeRecord, 1, lid(3), 0},
		{"no record", mad.MethodGet, mad.AttrNodeRecord, 1, lid(300), mad.StatusNoRecords},
		{"LID of nobody", mad.MethodGet, mad.AttrNodeRecord, 1, lid(0xffff), mad.StatusNoRecords},
		{"LID 0", mad.MethodGet, mad.AttrNodeRecord, 1, lid(0), mad.StatusNoRecords},
		{"many records", mad.MethodGet, mad.AttrNodeRecord, 0, nil, mad.StatusTooManyRecords},
		{"many ports", mad.MethodGet, mad.AttrPortInfoRecord, 1, lid(1), mad.StatusTooManyRecords},
		{"the subnet manager", mad.MethodGet, mad.AttrSMInfoRecord, 0, nil, 0},
		{"ClassPortInfo", mad.MethodGet, mad.AttrSubnAdmClassPortInfo, 0, nil, 0},
		{"GetTable(ClassPortInfo)", mad.MethodGetTable, mad.AttrSubnAdmClassPortInfo, 0, nil, mad.StatusBadMethodAttribute},
		{"unknown record", mad.MethodGetTable, &mad.Attribute{ID: 0x3f}, 0, nil, mad.StatusBadMethodAttribute},
		{"Set", mad.MethodSet, mad.AttrNodeRecord, 0, nil, mad.StatusBadMethodAttribute},
		{"Delete", mad.MethodDelete, mad.AttrNodeRecord, 0, nil, mad.StatusBadMethodAttribute},
		{"an unknown method", 0x16, mad.AttrNodeRecord, 0, nil, mad.StatusBadMethod},
		{"any path", mad.MethodGet, mad.AttrPathRecord, 0, nil, mad.StatusInsufficient},
		{"paths from one", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask, path(mad.PathRecord{SLID: 1}), mad.StatusTooManyRecords},
		{"a path", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDLIDMask, path(mad.PathRecord{SLID: 1, DLID: 2}), 0},
		{"a path to itself", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDLIDMask, path(mad.PathRecord{SLID: 9, DLID: 9}), 0},
		{"a path to nobody", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDLIDMask, path(mad.PathRecord{SLID: 1, DLID: 200}), mad.StatusNoRecords},
		{"unknown GID", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDGIDMask, path(mad.PathRecord{SLID: 1, DGID: unknownGID}), mad.StatusInvalidGID},
		{"unknown prefix", mad.MethodGet, mad.AttrPathRecord, pathSGIDMask | pathDLIDMask, path(mad.PathRecord{DLID: 1, SGID: mad.MakeGID(1, r.state.SM.GUID)}), mad.StatusInvalidGID},
		{"LID and GID of two", mad.MethodGet, mad.AttrPathRecord, pathSGIDMask | pathSLIDMask | pathDLIDMask,
			path(mad.PathRecord{DLID: 1, SLID: 1, SGID: mad.MakeGID(state.GIDPrefix, r.state.SM.GUID)}), mad.StatusNoRecords},
		{"another partition", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDLIDMask | pathPKeyMask,
			path(mad.PathRecord{SLID: 1, DLID: 2, PKey: 0x8001}), mad.StatusNoRecords},
		{"a limited member", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDLIDMask | pathPKeyMask,
			path(mad.PathRecord{SLID: 1, DLID: 2, PKey: 0x7fff}), 0},
		{"another SL", mad.MethodGet, mad.AttrPathRecord, pathSLIDMask | pathDLIDMask | mad.AttrPathRecord.Field("sl").Mask(),
			path(mad.PathRecord{SLID: 1, DLID: 2, SL: 1}), mad.StatusNoRecords},
	} {
		c := saCall(test.method, test.attr, 0, test.mask, test.record, r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Errorf("%s: no answer", test.name)
		} else if got := c.Header().Status; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	// Elsewhere there is no subnet administration.
	c := saCall(mad.MethodGet, mad.AttrNodeRecord, 0, 1, lid(3), r.lid("leaf-1"))
	if !r.conn.ask(t, c) || c.Header().Status != mad.StatusBadMethodAttribute {
		t.Errorf("on a switch: %v", c.Header().Status)
	}
	c = saCall(mad.MethodGet, mad.AttrNodeRecord, 0, 1, lid(3), r.state.SM.LID)
	c.MAD[2] = 3
	if !r.conn.ask(t, c) || c.Header().Status != mad.StatusBadVersion {
		t.Errorf("class version 3: %v", c.Header().Status)
	}
}

// TestCapabilityMatch: with bit 31 of the modifier, ports that have more match too.
func TestCapabilityMatch(t *testing.T) {
	r := newRig(t, small)
	e := r.engine(engine.Options{})
	query := encode(&mad.PortInfoRecord{PortInfo: mad.PortInfo{CapabilityMask: mad.CapabilityMaskIsSM}})
	mask := mad.AttrPortInfoRecord.Field("capability_mask").Mask()
	if got := r.records(e, mad.AttrPortInfoRecord, 0, mask, query); len(got) != 0 {
		t.Errorf("exactly IsSM: %d ports", len(got))
	}
	got := r.records(e, mad.AttrPortInfoRecord, 1<<31, mask, query)
	if len(got) != 1 || mad.LID(binary.BigEndian.Uint16(got[0])) != r.state.SM.LID {
		t.Errorf("at least IsSM: %d ports", len(got))
	}
}

// TestKeysHidden: the subnet administration gives no M_Key away.
func TestKeysHidden(t *testing.T) {
	r := newRig(t, small+",mkey=0x1234")
	for _, rec := range r.records(r.engine(engine.Options{}), mad.AttrPortInfoRecord, 0, 0, nil) {
		if key := mad.AttrPortInfoRecord.Field("m_key").Uint(rec); key != 0 {
			t.Fatalf("M_Key %#x", key)
		}
	}
}

// TestNodeRecords: a CA with two ports has a record for each.
func TestNodeRecords(t *testing.T) {
	r := newRig(t, "pgft:m=2,w=1,p=2")
	e := r.engine(engine.Options{})
	var got []string
	for _, data := range r.records(e, mad.AttrNodeRecord, 0, 0, nil) {
		var rec mad.NodeRecord
		rec.Decode(data)
		got = append(got, fmt.Sprintf("LID %d: %v port %d of %v, %v", rec.LID, rec.NodeInfo.NodeType,
			rec.NodeInfo.LocalPortNum, rec.NodeInfo.NodeGUID, rec.NodeInfo.PortGUID))
	}
	want := []string{
		"LID 1: switch port 0 of 0x0002c90300100000, 0x0002c90300100000",
		"LID 2: ca port 1 of 0x0002c90310000000, 0x0002c90310000001",
		"LID 3: ca port 2 of 0x0002c90310000000, 0x0002c90310000002",
		"LID 4: ca port 1 of 0x0002c90310000010, 0x0002c90310000011",
		"LID 5: ca port 2 of 0x0002c90310000010, 0x0002c90310000012",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestPathSelectors: node-0002's link is slower and has a smaller MTU.
func TestPathSelectors(t *testing.T) {
	r := newRig(t, small)
	e := r.engine(engine.Options{})
	slow := r.at("node-0002 HCA-1", 1)
	for _, p := range []*state.Port{slow, slow.Peer} {
		var info mad.PortInfo
		info.Decode(p.Info[:])
		info.NeighborMTU, info.LinkSpeedExtActive = mad.MTU2048, mad.LinkSpeedExtEDR
		p.SetInfo(&info)
	}
	from := pathSLIDMask
	base := mad.PathRecord{SLID: r.state.SM.LID}
	count := func(mask uint64, change func(p *mad.PathRecord)) int {
		q := base
		change(&q)
		return len(r.records(e, mad.AttrPathRecord, 0, from|mask, encode(&q)))
	}
	want := mad.PathRecord{
		SGID: mad.MakeGID(state.GIDPrefix, r.state.SM.GUID), DGID: mad.MakeGID(state.GIDPrefix, slow.GUID), SLID: r.state.SM.LID, DLID: slow.LID,
		Reversible: true, NumbPath: 1, PKey: 0xffff,
		MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, RateSelector: mad.SelectorExactly, Rate: mad.Rate100,
		PacketLifeTimeSelector: mad.LifeTimeSelectorExactly, PacketLifeTime: 18,
	}
	var got mad.PathRecord
	got.Decode(r.records(e, mad.AttrPathRecord, 0, from|pathDGIDMask, encode(&want))[0])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	mtu := func(s mad.Selector, m mad.MTU) func(p *mad.PathRecord) {
		return func(p *mad.PathRecord) { p.MTUSelector, p.MTU = s, m }
	}
	rate := func(s mad.Selector, m mad.Rate) func(p *mad.PathRecord) {
		return func(p *mad.PathRecord) { p.RateSelector, p.Rate = s, m }
	}
	life := func(s mad.LifeTimeSelector, m uint8) func(p *mad.PathRecord) {
		return func(p *mad.PathRecord) { p.PacketLifeTimeSelector, p.PacketLifeTime = s, m }
	}
	const all = 14
	for i, test := range []struct {
		mask   uint64
		change func(p *mad.PathRecord)
		want   int
	}{
		{pathMTUMask | pathSelectMTUMask, mtu(mad.SelectorGreaterThan, mad.MTU1024), all},
		{pathMTUMask | pathSelectMTUMask, mtu(mad.SelectorGreaterThan, mad.MTU2048), all - 1},
		{pathMTUMask | pathSelectMTUMask, mtu(mad.SelectorLessThan, mad.MTU4096), 1},
		{pathMTUMask | pathSelectMTUMask, mtu(mad.SelectorExactly, mad.MTU2048), 1},
		{pathMTUMask, mtu(mad.SelectorGreaterThan, mad.MTU4096), all - 1}, // without a selector: exactly
		{pathSelectMTUMask, mtu(mad.SelectorExactly, mad.MTU256), all},    // without a value: any
		{pathMTUMask | pathSelectMTUMask, mtu(mad.SelectorLargestAvailable, 0), all},
		{pathRateMask | pathSelectRateMask, rate(mad.SelectorGreaterThan, mad.Rate100), all - 1},
		{pathRateMask | pathSelectRateMask, rate(mad.SelectorLessThan, mad.Rate200), 1},
		{pathRateMask | pathSelectRateMask, rate(mad.SelectorExactly, mad.Rate100), 1},
		{pathRateMask | pathSelectRateMask, rate(mad.SelectorGreaterThan, mad.Rate120), all - 1}, // whose code is smaller
		{pathLifeMask | pathSelectLifeMask, life(mad.LifeTimeSelectorLessThan, 19), all},
		{pathLifeMask | pathSelectLifeMask, life(mad.LifeTimeSelectorLessThan, 18), 0},
		{pathReversibleMask, func(p *mad.PathRecord) { p.Reversible = true }, all},
		{pathReversibleMask, func(p *mad.PathRecord) {}, all},
		{pathNumbPathMask, func(p *mad.PathRecord) { p.NumbPath = 1 }, all},
		{pathServiceIDMask, func(p *mad.PathRecord) { p.ServiceID = 5 }, all},
	} {
		if got := count(test.mask, test.change); got != test.want {
			t.Errorf("%d: %d paths, want %d", i, got, test.want)
		}
	}
	// A path that no answer can take back.
	r.at("leaf-4", 0).Node.LFT[r.state.SM.LID] = mad.NoPort
	if n := count(pathReversibleMask, func(p *mad.PathRecord) { p.Reversible = true }); n != all-3 {
		t.Errorf("%d reversible paths, want %d: to leaf-4 and its two hosts there is none", n, all-3)
	}
	if n := count(0, func(p *mad.PathRecord) {}); n != all {
		t.Errorf("%d paths, want %d", n, all)
	}
	// One over a link that is not active.
	slow.SetDown(mad.PortPhysicalStatePolling)
	slow.Peer.SetDown(mad.PortPhysicalStatePolling)
	slow.Train()
	if n := count(0, func(p *mad.PathRecord) {}); n != all-1 {
		t.Errorf("%d paths, want %d: node-0002's link is in Initialize", n, all-1)
	}
	// And one that does not lead there.
	r.at("leaf-1", 0).Node.LFT[r.lid("node-0008 HCA-1")] = 2
	if n := count(0, func(p *mad.PathRecord) {}); n != all-2 {
		t.Errorf("%d paths, want %d", n, all-2)
	}
}

// TestPathLMC: two ports with several LIDs have a path for each.
func TestPathLMC(t *testing.T) {
	r := newRig(t, small)
	e := r.engine(engine.Options{})
	p := r.at("node-0002 HCA-1", 1)
	r.state.SetLID(p, 32, 2)
	var info mad.PortInfo
	info.Decode(p.Info[:])
	info.LID, info.LMC = 32, 2
	p.SetInfo(&info)
	r.state.InvalidateTables()
	q := mad.PathRecord{SLID: r.state.SM.LID, DGID: mad.MakeGID(state.GIDPrefix, p.GUID)}
	paths := func(mask uint64) (dlids []mad.LID) {
		for _, data := range r.records(e, mad.AttrPathRecord, 0, pathSLIDMask|mask, encode(&q)) {
			var rec mad.PathRecord
			rec.Decode(data)
			dlids = append(dlids, rec.DLID)
		}
		return dlids
	}
	if diff := cmp.Diff([]mad.LID{32, 33, 34, 35}, paths(pathDGIDMask)); diff != "" {
		t.Error(diff)
	}
	q.NumbPath = 2
	if diff := cmp.Diff([]mad.LID{32, 33}, paths(pathDGIDMask|pathNumbPathMask)); diff != "" {
		t.Error(diff)
	}
	q.DLID = 34
	if diff := cmp.Diff([]mad.LID{34}, paths(pathDLIDMask)); diff != "" {
		t.Error(diff)
	}
	q = mad.PathRecord{SLID: 33, DLID: r.state.SM.LID, SGID: q.DGID}
	if diff := cmp.Diff([]mad.LID{r.state.SM.LID}, paths(pathDLIDMask)); diff != "" {
		t.Error(diff)
	}
	q.DGID, q.SLID = mad.MakeGID(state.GIDPrefix, r.state.SM.GUID), 33
	if diff := cmp.Diff([]mad.LID{r.state.SM.LID}, paths(pathDGIDMask)); diff != "" {
		t.Error(diff)
	}
	q = mad.PathRecord{SLID: r.state.SM.LID, DGID: q.SGID}
	get := saCall(mad.MethodGet, mad.AttrPathRecord, 0, pathSLIDMask|pathDGIDMask, encode(&q), r.state.SM.LID)
	do(t, e, get) // one of them
}

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

// TestServiceLease: a ServiceRecord is there until its lease ends, by the clock of the
// subnet. A Set renews the lease.
func TestServiceLease(t *testing.T) {
	r := newRig(t, small)
	now := time.Unix(0, 0)
	r.SetClock(func() time.Time { return now })
	component := func(name string) uint64 { return mad.AttrServiceRecord.Field(name).Mask() }
	mask := component("service_id") | component("service_gid") | component("service_p_key")
	change := func(m mad.Method, id uint64, lease uint32, withLease bool) mad.Status {
		t.Helper()
		rec := mad.ServiceRecord{ServiceID: id, ServiceGID: r.conn.node.Ports[1].GID(), ServicePKey: mad.DefaultPKey, ServiceLease: lease}
		mask := mask
		if withLease {
			mask |= component("service_lease")
		}
		c := saCall(m, mad.AttrServiceRecord, 0, mask, encode(&rec), r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		return c.Header().Status
	}
	found := func(id uint64) string {
		t.Helper()
		c := saCall(mad.MethodGet, mad.AttrServiceRecord, 0, component("service_id"), encode(&mad.ServiceRecord{ServiceID: id}), r.state.SM.LID)
		if !r.conn.ask(t, c) {
			t.Fatal("no answer")
		}
		if c.Header().Status != 0 {
			return "-"
		}
		var rec mad.ServiceRecord
		rec.Decode(c.Data())
		return fmt.Sprint(rec.ServiceLease)
	}
	for id, lease := range map[uint64]uint32{1: 10, 2: 20, 3: 1<<32 - 1, 4: 0} {
		if s := change(mad.MethodSet, id, lease, true); s != 0 {
			t.Fatalf("service %d: %v", id, s)
		}
	}
	if s := change(mad.MethodSet, 5, 77, false); s != 0 {
		t.Fatal(s)
	}
	var lines []string
	look := func(what string) {
		lines = append(lines, fmt.Sprintf("%-10s%s %s %s %s %s", what, found(1), found(2), found(3), found(4), found(5)))
	}
	look("at once")
	now = now.Add(9999 * time.Millisecond)
	look("9.999 s")
	change(mad.MethodSet, 2, 20, true)
	now = now.Add(time.Millisecond)
	look("10 s")
	if s := change(mad.MethodDelete, 1, 0, false); s != mad.StatusNoRecords {
		t.Errorf("Delete of an expired service: %v", s)
	}
	now = now.Add(19 * time.Second)
	look("29 s")
	now = now.Add(time.Second)
	look("30 s")
	now = now.Add(1000 * time.Hour)
	look("later")
	want := `at once   10 20 4294967295 - 4294967295
9.999 s   10 20 4294967295 - 4294967295
10 s      - 20 4294967295 - 4294967295
29 s      - 20 4294967295 - 4294967295
30 s      - - 4294967295 - 4294967295
later     - - 4294967295 - 4294967295`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLeaseClocks: leases of M_Keys and services last their time when the session's clock is
// set back meanwhile, end at once when it is set forward, and last while it stands still.
func TestLeaseClocks(t *testing.T) {
	const lease = 10 * time.Second
	for _, x := range []struct {
		what    string
		by      time.Duration
		still   bool
		expired string // by the second, of 5, 9 and 10
	}{
		{"no jump", 0, false, "false false true"},
		{"an hour back", -time.Hour, false, "false false true"},
		{"a day forward", 24 * time.Hour, false, "true true true"},
		{"standing still", 0, true, "false false false"},
	} {
		now := time.Unix(1e9, 0)
		r := newRig(t, small+",mkey=0x1234,mkey_level=2")
		r.SetClock(func() time.Time { return now })
		start := r.state.Uptime()
		p := r.at("node-0002 HCA-1", 1)
		portInfoLeaseField.SetUint(p.Info[:], uint64(lease/time.Second))
		locked := func() bool {
			c := smp(mad.MethodGet, mad.AttrPortInfo, 1, node2, nil)
			binary.BigEndian.PutUint64(c.MAD[mad.SMPKeyOffset:], 7)
			return !r.conn.ask(t, c)
		}
		service := func(m mad.Method) mad.Status {
			mask := mad.AttrServiceRecord.Field("service_id").Mask()
			if m == mad.MethodSet {
				mask = 1<<7 - 1 // ServiceID to ServiceName, the lease among them
			}
			rec := mad.ServiceRecord{ServiceID: 1, ServiceGID: r.conn.node.Ports[1].GID(), ServicePKey: mad.DefaultPKey, ServiceLease: uint32(lease / time.Second)}
			c := saCall(m, mad.AttrServiceRecord, 0, mask, encode(&rec), r.state.SM.LID)
			if !r.conn.ask(t, c) {
				t.Fatal("no answer")
			}
			return c.Header().Status
		}
		if s := service(mad.MethodSet); s != 0 {
			t.Fatal(s)
		}
		if !locked() { // a wrong key, with which the lease begins
			t.Fatal("a wrong key was right")
		}
		now = now.Add(x.by)
		r.state.Now() // goes on from where it was
		var keys, services [3]bool
		for i, passed := range []time.Duration{5 * time.Second, 4 * time.Second, time.Second} {
			if !x.still {
				now = now.Add(passed)
			}
			keys[i], services[i] = !locked(), service(mad.MethodGet) != 0
		}
		if got := fmt.Sprint(keys); got != "["+x.expired+"]" {
			t.Errorf("%s: M_Keys are free: %s, want %s", x.what, got, x.expired)
		}
		if got := fmt.Sprint(services); got != "["+x.expired+"]" {
			t.Errorf("%s: services have expired: %s, want %s", x.what, got, x.expired)
		}
		if up := r.state.Uptime() - start; up < 0 || x.by == 0 && up > lease {
			t.Errorf("%s: devices have run for %v more", x.what, up)
		}
	}
}

// TestForeignMember: only the port itself may end its membership, but the membership of a
// proxy join may be ended by others too.
func TestForeignMember(t *testing.T) {
	r := newRig(t, small)
	const one, two = "node-0001 HCA-1", "node-0002 HCA-1"
	ask := func(from string, m mad.Method, member string) mad.Status {
		record := make([]byte, mad.AttrMCMemberRecord.Size)
		rec := mad.MCMemberRecord{MGID: mad.MakeGID(0xff12000100000000, 7), PortGID: r.at(member, 1).GID(), JoinState: mad.JoinStateFullMember, PKey: mad.DefaultPKey}
		rec.Encode(record)
		c := saCall(m, mad.AttrMCMemberRecord, 0, createMask, record, r.state.SM.LID)
		if !r.attach(from).ask(t, c) {
			t.Fatal("no answer")
		}
		return c.Header().Status
	}
	for i, step := range []struct {
		from   string
		method mad.Method
		member string
		want   mad.Status
	}{
		{one, mad.MethodSet, one, 0},
		{two, mad.MethodDelete, one, mad.StatusRequestInvalid},
		{two, mad.MethodSet, one, mad.StatusRequestInvalid},
		{one, mad.MethodSet, two, 0},
		{two, mad.MethodDelete, two, 0},
		{one, mad.MethodDelete, one, 0},
		{one, mad.MethodDelete, one, mad.StatusRequestInvalid},
	} {
		if got := ask(step.from, step.method, step.member); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
