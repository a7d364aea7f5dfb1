package sim

import (
	"bytes"
	"encoding/binary"
	"iter"

	"fabsh/mad"
)

// saKey is the SM_Key that shows a request to be trusted: OpenSM's default
// (opensm osm_base.h OSM_DEFAULT_SA_KEY).
const saKey = 1

// admin executes a request to the subnet administration. Of a table, m becomes
// the header of its segments.
func (r *request) admin(m []byte) (table []byte, status mad.Status, v verdict) {
	key := binary.BigEndian.Uint64(m[mad.SAKeyOffset:])
	if key != 0 && key != saKey {
		return nil, mad.StatusOK, silent
	}
	if info, ok := mad.MethodOf(r.Class, r.ClassVersion, r.Method); !ok || !info.Answered || r.Method == mad.MethodReport {
		return nil, mad.StatusBadMethod, single
	}
	a := mad.Lookup(mad.ClassSubnAdm, r.Attribute)
	if !allows(a, r.Method) {
		return nil, mad.StatusBadMethodAttribute, single
	}
	if a == mad.AttrSubnAdmClassPortInfo {
		return nil, r.saClassPortInfo(), single
	}
	mask := binary.BigEndian.Uint64(m[mad.SAMaskOffset:])
	if r.Method == mad.MethodSet || r.Method == mad.MethodDelete {
		return nil, r.change(a, mask, key != 0), single
	}
	want := r.data
	if len(r.payload) > len(want) {
		want = r.payload
	}
	q := newQuery(a, mask, want)
	q.trusted = key != 0
	if r.Method == mad.MethodGet {
		q.limit = 2 * q.size // one too many
	}
	const capabilityMaskMatch = 1 << 31 // IBA 15.2.5.3
	if a == mad.AttrPortInfoRecord && r.Modifier&capabilityMaskMatch != 0 {
		q.maskField = a.Field("capability_mask")
	}
	if r.Method == mad.MethodGetMulti && r.payload == nil { // as opensm osm_mpr_rcv_process
		return nil, mad.StatusRequestInvalid, single
	}
	status = r.collect(q)
	switch n := len(q.records) / q.size; {
	case status != mad.StatusOK:
	case r.Method != mad.MethodGet && q.full():
		status = mad.StatusNoResources
	case r.Method == mad.MethodGet && n == 0:
		status = mad.StatusNoRecords
	case r.Method == mad.MethodGet && n > 1:
		status = mad.StatusTooManyRecords
	}
	clear(r.data)
	clear(m[mad.RMPPOffset:mad.SAKeyOffset])
	if status != mad.StatusOK {
		return nil, status, single
	}
	binary.BigEndian.PutUint16(m[mad.SAAttrOffsetOffset:], uint16(q.size/8))
	if r.Method == mad.MethodGet {
		copy(r.data, q.records)
		return nil, status, single
	}
	if a.Answer != nil { // opensm osm_sa_multipath_record.c osm_mpr_rcv_process
		binary.BigEndian.PutUint16(m[attributeByte:], uint16(a.Answer.ID))
	}
	return q.records, status, tabular
}

// change executes a Set or Delete. What fails has the question in the answer.
func (r *request) change(a *mad.Attribute, mask uint64, trusted bool) mad.Status {
	switch a {
	case mad.AttrMCMemberRecord:
		return r.changeGroup(mask)
	case mad.AttrServiceRecord:
		return r.changeService(mask, trusted)
	case mad.AttrInformInfo:
		return r.changeSubscription(trusted)
	}
	return mad.StatusBadMethodAttribute
}

func (r *request) saClassPortInfo() mad.Status {
	clear(r.data)
	info := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: mad.ClassSubnAdm.Version(), RespTimeValue: lifeTime,
		CapabilityMask: uint16(mad.SubnAdmCapabilityMaskIsPortInfoCapabilityMaskMatchSupported),
		CapabilityMask2: uint32(mad.SubnAdmCapabilityMask2IsFullPortInfoRecordSupported |
			mad.SubnAdmCapabilityMask2IsExtendedSpeedsSupported),
	}
	info.Encode(r.data)
	return r.modifierIs0()
}

// query is a search for records. Any component of a record can be asked for;
// the declaration of the attribute says where it stands.
type query struct {
	mask      uint64
	want      []byte
	compare   []mad.Field // the fields that the mask chooses
	maskField *mad.Field  // of the fields compared, the one of which more bits may be set
	size      int         // of a record in a table: a multiple of 8 bytes
	records   []byte      // that were found
	record    []byte      // scratch
	trusted   bool        // the asker showed the SM_Key
	limit     int         // bytes of records after which the rest does not matter
}

func newQuery(a *mad.Attribute, mask uint64, want []byte) *query {
	q := &query{mask: mask, want: bytes.Clone(want), limit: maxTable}
	q.layout(a)
	return q
}

// layout makes q a query for records of a.
func (q *query) layout(a *mad.Attribute) {
	q.size = (a.Size + 7) &^ 7
	q.record = make([]byte, q.size)
	q.compare = nil
	for _, f := range a.Flat() {
		if f.Mask()&q.mask != 0 {
			q.compare = append(q.compare, f)
		}
	}
}

// encoder is what the attributes' structs have in common.
type encoder interface{ Encode([]byte) }

// add takes a record in, if it is one that was asked for.
func (q *query) add(e encoder) {
	clear(q.record)
	e.Encode(q.record)
	for i := range q.compare {
		if !q.matches(&q.compare[i]) {
			return
		}
	}
	q.records = append(q.records, q.record...)
}

func (q *query) matches(f *mad.Field) bool {
	switch {
	case f.Bits > 64:
		return bytes.Equal(f.Bytes(q.record), f.Bytes(q.want))
	case q.maskField != nil && f.Name == q.maskField.Name:
		want := f.Uint(q.want)
		return f.Uint(q.record)&want == want
	}
	for e := range f.Count {
		// Of some arrays each element is a component.
		if f.Components == f.Count && q.mask>>(f.Component+e)&1 == 0 {
			continue
		}
		if f.UintAt(q.record, e) != f.UintAt(q.want, e) {
			return false
		}
	}
	return true
}

// full: more records would change nothing.
func (q *query) full() bool { return len(q.records) >= q.limit }

// lidComponent is the bit of the LID, with which all records but PathRecord begin.
const lidComponent = 1 << 0

// endPorts are the ports with LIDs that the query may mean, in the order of their LIDs.
func (q *query) endPorts(s *Subnet) iter.Seq[*port] {
	return func(yield func(*port) bool) {
		lids := s.lids
		if q.mask&lidComponent != 0 {
			lid := min(int(binary.BigEndian.Uint16(q.want)), len(lids)-1)
			lids = lids[lid : lid+1]
		}
		var before *port
		for _, p := range lids {
			if p != nil && p != before && (q.full() || !yield(p)) {
				return
			}
			before = p
		}
	}
}
