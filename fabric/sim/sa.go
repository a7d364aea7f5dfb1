package sim

import (
	"bytes"
	"encoding/binary"
	"iter"

	"fabsh/mad"
)

// admin executes a request to the subnet administration. Of a table, m becomes
// the header of its segments.
func (r *request) admin(from *port, m []byte) (table []byte, status mad.Status, v verdict) {
	if r.Method == mad.MethodSet && r.Attribute == mad.AttrInformInfo.ID {
		return nil, r.setInform(from, binary.BigEndian.Uint64(m[mad.SAKeyOffset:])), single
	}
	if r.Method != mad.MethodGet && r.Method != mad.MethodGetTable {
		return nil, mad.StatusBadMethod, single
	}
	a := mad.Lookup(mad.ClassSubnAdm, r.Attribute)
	if !allows(a, r.Method) {
		return nil, mad.StatusBadMethodAttribute, single
	}
	if a == mad.AttrSubnAdmClassPortInfo {
		return nil, r.adminClassPortInfo(), single
	}
	q := newQuery(r, a, binary.BigEndian.Uint64(m[mad.SAMaskOffset:]))
	status = r.collect(q)
	switch n := len(q.records) / q.size; {
	case status != mad.StatusOK:
	case r.Method == mad.MethodGetTable && q.full():
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
	return q.records, status, tabular
}

func (r *request) adminClassPortInfo() mad.Status {
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
	mask    uint64
	want    []byte
	compare []mad.Field // the fields that the mask chooses
	atLeast *mad.Field  // of the fields compared, the one of which more bits may be set
	size    int         // of a record in a table: a multiple of 8 bytes
	records []byte      // that were found
	record  []byte      // scratch
	enough  int         // bytes of records after which the rest does not matter
}

func newQuery(r *request, a *mad.Attribute, mask uint64) *query {
	q := &query{mask: mask, want: bytes.Clone(r.data), size: (a.Size + 7) &^ 7, enough: maxTable}
	q.record = make([]byte, q.size)
	if r.Method == mad.MethodGet {
		q.enough = 2 * q.size // one too many
	}
	for _, f := range a.Flat() {
		if f.Mask()&mask != 0 {
			q.compare = append(q.compare, f)
		}
	}
	const capabilityMaskMatch = 1 << 31 // IBA 15.2.5.3
	if a == mad.AttrPortInfoRecord && r.Modifier&capabilityMaskMatch != 0 {
		q.atLeast = a.Field("capability_mask")
	}
	return q
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
	case q.atLeast != nil && f.Name == q.atLeast.Name:
		want := f.Uint(q.want)
		return f.Uint(q.record)&want == want
	}
	for e := range f.Count {
		if f.UintAt(q.record, e) != f.UintAt(q.want, e) {
			return false
		}
	}
	return true
}

// full: more records would change nothing.
func (q *query) full() bool { return len(q.records) >= q.enough }

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
