package device

import (
	"bytes"
	"encoding/binary"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// StoredRecords are the records of the subnet administrator in a file that has its
// ClassPortInfo: a kind without records in the file was read, and was empty.
var StoredRecords = []*mad.Attribute{mad.AttrNodeRecord, mad.AttrLinkRecord, mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord, mad.AttrSMInfoRecord}

// records makes the answer of the subnet administrator to a request with header h.
func (t *StoredTransport) records(h *mad.Header, m []byte) ([]byte, error) {
	attr := mad.Lookup(mad.ClassSubnAdm, h.Attribute)
	if attr == nil || h.Method != mad.MethodGet && h.Method != mad.MethodGetTable {
		return nil, ErrNotInFile
	}
	places := mad.SAPlacesIn(m[mad.ClassVersionOffset])
	mask := binary.BigEndian.Uint64(m[places.Mask:])
	want := m[h.Class.DataOffset():]
	var found [][]byte
	known := h.Attribute != mad.AttrSubnAdmClassPortInfo.ID && slices.Contains(StoredRecords, attr) && t.answer(fabric.Answer{Node: fabric.NoNode, Port: anyPort, Class: mad.ClassSubnAdm, ID: mad.AttrSubnAdmClassPortInfo.ID}) != nil
	for _, a := range t.f.AnswersOf(fabric.NoNode) {
		switch {
		case a.Class != mad.ClassSubnAdm || a.ID != h.Attribute:
			continue
		case len(a.Data) == 0:
			return nil, engine.ErrTimeout
		}
		known = true
		record := make([]byte, attr.Size)
		copy(record, a.Data)
		if matches(attr, mask, record, want) {
			found = append(found, record)
		}
	}
	if !known {
		return nil, ErrNotInFile
	}
	if h.Method == mad.MethodGet {
		switch len(found) {
		case 0:
			h.Status = mad.StatusNoRecords
		case 1:
			clear(want[:mad.Size-h.Class.DataOffset()])
			copy(want, found[0])
		default:
			h.Status = mad.StatusTooManyRecords
		}
		return m, nil
	}
	step := (attr.Size + 7) &^ 7
	size := step * len(found)
	out := make([]byte, max(mad.Size, h.Class.DataOffset()+size))
	copy(out, m[:h.Class.DataOffset()])
	binary.BigEndian.PutUint16(out[places.AttrOffset:], uint16(step/8))
	if len(out) == mad.Size { // which says how much of it are records
		out[mad.RMPPVersionOffset], out[mad.RMPPTypeOffset] = 1, byte(mad.RMPPTypeData)
		out[mad.RMPPFlagsOffset] = byte(mad.RMPPFlagsActive | mad.RMPPFlagsFirst | mad.RMPPFlagsLast)
		binary.BigEndian.PutUint32(out[mad.PayloadLengthOffset:], uint32(mad.SegmentHeader+size))
	}
	for i, record := range found {
		copy(out[h.Class.DataOffset()+i*step:], record)
	}
	return out, nil
}

// matches reports whether the record has the components that mask chooses. A selector that is not
// "exactly" matches nothing.
func matches(attr *mad.Attribute, mask uint64, record, want []byte) bool {
	for i := range attr.Flat() {
		f := &attr.Flat()[i]
		if f.Mask()&mask == 0 {
			continue
		}
		if f.Bits > 64 {
			if !bytes.Equal(f.Bytes(record), f.Bytes(want)) {
				return false
			}
			continue
		}
		for e := range f.Count {
			if f.Components == f.Count && mask>>(f.Component+e)&1 == 0 {
				continue
			}
			if f.UintAt(record, e) != f.UintAt(want, e) {
				return false
			}
		}
	}
	return true
}
