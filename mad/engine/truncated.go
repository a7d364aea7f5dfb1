package engine

import (
	"encoding/binary"
	"fmt"

	"fabsh/mad"
)

// truncated returns an error if m, a received MAD, ends before its required content:
// zeros in place of the rest would be read as values. Some transports report the lengths
// of MADs. A refusal needs only its header.
func truncated(m []byte) error {
	if len(m) >= mad.Size {
		return nil
	}
	h := mad.ParseHeader(m)
	if need, what := minSize(&h, m); len(m) < need {
		return fmt.Errorf("truncated answer: %d bytes; %s needs %d", len(m), what, need)
	}
	return nil
}

// minSize returns the required length of a MAD with header h, in bytes, and the content
// that requires it.
// A record of the subnet administrator may be shorter than its attribute: AttributeOffset
// is then its length, in units of 8 bytes (IBA 15.2.1.1).
func minSize(h *mad.Header, m []byte) (n int, what string) {
	a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute)
	data := h.DataOffset()
	switch {
	case h.Status != 0:
		return mad.HeaderSize, "a refusal"
	case mad.IsSegment(m):
		return segmentSize(m), "its segment"
	case a == nil, h.Class == mad.ClassSubnAdm && h.Method.IsTable():
		return data, "its header"
	}
	size := a.Size
	if offset := mad.SAPlacesIn(h.ClassVersion).AttrOffset; h.Class == mad.ClassSubnAdm && len(m) >= data {
		if record := 8 * int(binary.BigEndian.Uint16(m[offset:])); record > 0 {
			size = min(size, record)
		}
	}
	return min(data+size, mad.Size), a.Name
}

// segmentSize returns the required length of m, a segment of a table: only the last may
// end earlier, with its data.
func segmentSize(m []byte) int {
	h := rmppHeaderOf(m)
	switch {
	case h.RMPPType != mad.RMPPTypeData:
		return mad.SADataOffset
	case h.RMPPFlags&mad.RMPPFlagsLast == 0:
		return mad.Size
	}
	n := min(int64(h.PayloadLength), mad.SegmentHeader+mad.SegmentData)
	return mad.SAKeyOffset + int(max(n, mad.SegmentHeader))
}
