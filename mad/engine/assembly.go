package engine

import (
	"encoding/binary"

	"fabsh/mad"
)

// rmppAssembly puts the segments of one answer together (IBA 13.6.6.2).
type rmppAssembly struct {
	tid        uint32
	head       [mad.SADataOffset]byte // of segment 1, or of the first that came
	next       uint32                 // all segments before it are here
	ahead      uint64                 // bit i: segment next+i is here; bit 0 never stays set
	last       uint32                 // number of the last segment; 0: not seen yet
	lastLength int                    // bytes of the table in the last segment
	announced  uint32                 // PayloadLength of segment 1; 0: unknown
	acked      uint32                 // segments acknowledged
	granted    uint32                 // the sender may send up to this one
	most       int                    // bytes that there may be
	data       []byte
}

// newRMPPAssembly returns an assembly of an answer of which m is a segment, and which may
// have most bytes.
func newRMPPAssembly(m []byte, most int) rmppAssembly {
	a := rmppAssembly{most: most, next: 1, granted: 1, tid: uint32(binary.BigEndian.Uint64(m[mad.TIDOffset:]))}
	copy(a.head[:], m)
	return a
}

// TID returns the low half of the transaction ID of the segments.
func (a *rmppAssembly) TID() uint32 { return a.tid }

// Next returns the number of the first segment that is missing.
func (a *rmppAssembly) Next() uint32 { return a.next }

// Head returns the headers of segment 1, or of the first that came.
func (a *rmppAssembly) Head() []byte { return a.head[:] }

// Acknowledge returns the content of an ACK: which segments have come, and the last one
// that the sender may send.
func (a *rmppAssembly) Acknowledge() (segment, newWindowLast uint32) {
	a.acked = a.next - 1
	return a.acked, max(a.granted, a.acked)
}

// Add adds a DATA segment; m has mad.Size bytes. It reports whether the segment was new,
// and whether an ACK is due. The error is an *abortError.
func (a *rmppAssembly) Add(m []byte) (progress, ack bool, err error) {
	h := rmppHeaderOf(m)
	n := h.SegmentNumber
	last := h.RMPPFlags&mad.RMPPFlagsLast != 0
	switch {
	case h.RMPPVersion != 1:
		return false, false, badTable(mad.RMPPStatusUnsupportedVersion, "RMPP version %d", h.RMPPVersion)
	case h.RMPPStatus != 0:
		return false, false, badTable(mad.RMPPStatusIllegalStatus, "segment %d has RMPP status %d", n, uint8(h.RMPPStatus))
	case n == 0 || n == 1 != (h.RMPPFlags&mad.RMPPFlagsFirst != 0):
		return false, false, badTable(mad.RMPPStatusInconsistentFirstAndSegmentNumber, "segment number %d does not go with the flag of the first segment", n)
	case last && (h.PayloadLength < mad.SegmentHeader || h.PayloadLength > mad.SegmentHeader+mad.SegmentData):
		return false, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "last segment with payload length %d", h.PayloadLength)
	case a.last != 0 && (n > a.last || last != (n == a.last)):
		return false, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "segment %d, but the last was %d", n, a.last)
	case n < a.next:
		// A segment we have acknowledged comes again: the ACK was lost.
		return false, n <= a.acked, nil
	case n-a.next >= rmppWindow || a.ahead>>(n-a.next)&1 != 0:
		return false, false, nil
	case (int64(n)-1)*mad.SegmentData >= int64(a.most):
		return false, false, rmppTooLong(a.most)
	}
	if n == 1 {
		copy(a.head[:], m)
		if !last {
			a.announced = h.PayloadLength
		}
	}
	if last {
		if a.ahead>>(n-a.next) != 0 {
			return false, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "segment %d is the last, but there are later ones", n)
		}
		a.last, a.lastLength = n, int(h.PayloadLength)-mad.SegmentHeader
	}
	a.grow(int(n))
	copy(a.data[(int(n)-1)*mad.SegmentData:], m[mad.SADataOffset:mad.Size])
	for a.ahead |= 1 << (n - a.next); a.ahead&1 != 0; a.ahead >>= 1 {
		a.next++
	}
	switch {
	case a.Done():
		if most := uint64(a.last) * (mad.SegmentData + mad.SegmentHeader); uint64(a.announced) > most {
			return true, false, badTable(mad.RMPPStatusInconsistentLastAndPayloadLength, "%d bytes at most have come, of %d that the first segment announced", most, a.announced)
		}
		ack = true
	case a.next > a.granted:
		a.granted = a.next - 1 + rmppWindow
		ack = true
	}
	return true, ack, nil
}

// grow makes room for n segments. Memory grows with what has come, twofold at
// most, whatever the first segment announces.
func (a *rmppAssembly) grow(n int) {
	need := n * mad.SegmentData
	if need > cap(a.data) {
		announced := int(a.announced / (mad.SegmentData + mad.SegmentHeader) * mad.SegmentData)
		size := max(need, min(2*need, announced+mad.SegmentData))
		if announced < need {
			size = 2 * need // it announced nothing
		}
		a.data = append(make([]byte, 0, size), a.data...)
	}
	if need > len(a.data) {
		a.data = a.data[:need]
	}
}

// Done reports whether all segments have come.
func (a *rmppAssembly) Done() bool { return a.last != 0 && a.next > a.last }

// Table returns the data of all segments. The caller owns it.
func (a *rmppAssembly) Table() []byte { return a.data[:int(a.last-1)*mad.SegmentData+a.lastLength] }
