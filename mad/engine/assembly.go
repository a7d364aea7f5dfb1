package engine

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// assembly puts the segments of one answer together (IBA 13.6.6.2).
type assembly struct {
	tid        uint32
	to         Address                // the sender
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

func newAssembly(m []byte, from Address, most int) *assembly {
	a := &assembly{to: from, most: most, next: 1, granted: 1, tid: uint32(binary.BigEndian.Uint64(m[mad.TIDOffset:]))}
	copy(a.head[:], m)
	return a
}

// add takes in a DATA segment: m has Size bytes. progress: it was new;
// ack: the sender is to be told how far we are.
func (a *assembly) add(m []byte) (progress, ack bool, err error) {
	h := rmppHeader(m)
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
		return false, false, tooLong(a.most)
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
	case a.done():
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
func (a *assembly) grow(n int) {
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

// done: all segments are here.
func (a *assembly) done() bool { return a.last != 0 && a.next > a.last }

// table is the data of all segments.
func (a *assembly) table() []byte { return a.data[:int(a.last-1)*mad.SegmentData+a.lastLength] }

// segment takes in a part of the answer to c.
func (e *Engine) segment(c *Call, d *Datagram, tid uint32, now time.Duration, ended *callList) {
	var m [mad.Size]byte
	copy(m[:], d.MAD)
	h := rmppHeader(m[:])
	if h.RMPPType != mad.RMPPTypeData || d.Cut {
		e.endOfSegments(c, m[:], &h, d.Address, now, ended)
		return
	}
	if c.s.rx == nil {
		// Of the latest attempt segments may overtake the first one; of an
		// earlier attempt, they are the rest of what was given up.
		if n := h.SegmentNumber; n != 1 && (tid != c.s.tid || n > rmppWindow) {
			e.stats.Duplicate++
			return
		}
		c.s.rx = newAssembly(m[:], d.Address, c.maxTable())
	}
	a := c.s.rx
	if a.tid != tid {
		// The answer to another attempt: one is enough.
		e.stats.Duplicate++
		e.queueAbort(m[:], d.Address, mad.RMPPStatusUnspecified)
		return
	}
	progress, ack, err := a.add(m[:])
	if ack {
		e.acknowledge(a)
	}
	switch {
	case err != nil:
		e.stats.Answered++
		e.end(c, now, err, ended)
	case !progress:
		e.stats.Duplicate++
	case a.done():
		e.finishTable(c, a, now, ended)
	default:
		if e.traits.NoACK { // a lost segment will need all of them again
			c.s.giveUp += now - c.s.silentSince
		} else {
			c.s.giveUp = max(c.s.giveUp, min(now+c.s.totalTimeout(), c.s.lastEnd))
		}
		c.s.silentSince = now
		e.expectSegment(c, now)
	}
}

// expectSegment gives the next segment of the answer to c a timeout.
func (e *Engine) expectSegment(c *Call, now time.Duration) {
	c.s.due = min(now+c.s.timeout, c.s.giveUp)
	e.timers.set(c, c.s.due)
}

// endOfSegments ends c, of whose answer there will be no more: m, with header h,
// is a STOP or an ABORT, or data that the transport has cut.
func (e *Engine) endOfSegments(c *Call, m []byte, h *mad.RMPPHeader, from Address, now time.Duration, ended *callList) {
	var err error = ErrCut
	switch h.RMPPType {
	case mad.RMPPTypeData:
		e.queueAbort(m, from, mad.RMPPStatusUnspecified)
	case mad.RMPPTypeStop, mad.RMPPTypeAbort:
		err = peerErrorOf("sender", "table", h)
		if c.Payload != nil && c.s.rx == nil {
			err = peerErrorOf("receiver", "request", h)
		}
	default:
		e.stats.Foreign++
		return
	}
	e.stats.Answered++
	c.s.rx = nil // nothing to abort any more
	e.end(c, now, err, ended)
}

// finishTable ends c with all segments of its answer.
func (e *Engine) finishTable(c *Call, a *assembly, now time.Duration, ended *callList) {
	e.stats.Answered++
	copy(c.MAD[:], a.head[:])
	clear(c.MAD[mad.SADataOffset+copy(c.MAD[mad.SADataOffset:], a.table()):])
	status := mad.ParseHeader(c.MAD[:]).Status
	var err error
	if status != 0 {
		err = statusError(status)
	} else if isTable(&c.MAD) {
		c.Table = a.table()
	}
	c.s.rx = nil // nothing to abort any more
	e.end(c, now, err, ended)
}
