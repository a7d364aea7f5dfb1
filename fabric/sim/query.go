package sim

import (
	"bytes"
	"encoding/binary"
	"iter"

	"fabsh/mad"
)

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
