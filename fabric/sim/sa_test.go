package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

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
