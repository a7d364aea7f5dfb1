package agent

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// query is a search for records by any of their components, whose positions are in the
// declaration of the attribute.
type query struct {
	mask       uint64      // ComponentMask
	want       []byte      // the attribute of the request
	compare    []mad.Field // the fields that the mask selects
	maskFields []string    // names of the fields that match if they have all the bits of want
	size       int         // of a record in a table: a multiple of 8 bytes
	records    []byte      // that were found
	record     []byte      // scratch
	trusted    bool        // the requester has the SM_Key
	limit      int         // bytes of records after which the search ends
}

func newQuery(a *mad.Attribute, mask uint64, want []byte) *query {
	q := &query{mask: mask, want: bytes.Clone(want), limit: maxTable}
	q.setRecord(a)
	return q
}

// setRecord makes q a query for records of a.
func (q *query) setRecord(a *mad.Attribute) {
	q.size = (a.Size + 7) &^ 7
	q.record = make([]byte, q.size)
	q.compare = nil
	for _, f := range a.Flat() {
		if f.Mask()&q.mask != 0 {
			q.compare = append(q.compare, f)
		}
	}
}

// add adds a record, if it matches.
func (q *query) add(e Encoder) {
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
	case slices.Contains(q.maskFields, f.Name):
		want := f.Uint(q.want)
		return f.Uint(q.record)&want == want
	}
	for e := range f.Count {
		// Of some arrays, each element is a component.
		if f.Components == f.Count && q.mask>>(f.Component+e)&1 == 0 {
			continue
		}
		if f.UintAt(q.record, e) != f.UintAt(q.want, e) {
			return false
		}
	}
	return true
}

// full reports whether the search may end.
func (q *query) full() bool { return len(q.records) >= q.limit }

// lidComponent is the component of the LID, the first one of the records of ports.
const lidComponent = 1 << 0

// endPorts are the end ports that match the query's LID, by LID.
func (q *query) endPorts(s *state.Subnet) iter.Seq[*state.Port] {
	lids := s.LIDs
	if q.mask&lidComponent != 0 {
		lid := min(int(binary.BigEndian.Uint16(q.want)), len(lids)-1)
		lids = lids[lid : lid+1]
	}
	return func(yield func(*state.Port) bool) {
		for p := range state.EndPorts(lids) {
			if q.full() || !yield(p) {
				return
			}
		}
	}
}

// mayMatch reports whether the fields of rec that are not of the table match.
func (q *query) mayMatch(rec Encoder) bool {
	clear(q.record)
	rec.Encode(q.record)
	for i := range q.compare {
		if f := &q.compare[i]; f.Offset < ridBits && !q.matches(f) {
			return false
		}
	}
	return true
}

// ridBits returns the size of the block number in a record, in bits.
const ridBits = 64
