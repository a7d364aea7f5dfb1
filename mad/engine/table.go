package engine

import (
	"time"

	"fabsh/mad"
)

// maxTestTable is the default limit of an answer, in bytes: far above the records of a
// full subnet's ports, but it stops a sender that never ends.
const maxTable = 64 << 20

// table is an answer of many segments that is coming.
type table struct {
	rmppAssembly
	from Address
}

// segment handles a part of the answer to c.
func (r *receiver) segment(c *Call, d *Datagram, tid uint32, now time.Duration) {
	var m [mad.Size]byte
	copy(m[:], d.MAD)
	h := rmppHeaderOf(m[:])
	if h.RMPPType != mad.RMPPTypeData || d.Cut {
		r.endOfSegments(c, m[:], &h, d.Address, now)
		return
	}
	if c.s.rx == nil {
		// Segments of the latest attempt may overtake the first one; those of an
		// earlier attempt are the rest of an abandoned answer.
		if n := h.SegmentNumber; n != 1 && (tid != c.s.tid || n > rmppWindow) {
			r.calls.counts.Duplicate++
			return
		}
		c.s.rx = &table{newRMPPAssembly(m[:], c.maxTable()), d.Address}
	}
	a := c.s.rx
	if a.TID() != tid {
		// The answer to another attempt: one is enough.
		r.calls.counts.Duplicate++
		r.calls.outbox.answer(m[:], d.Address, rmppAbort(mad.RMPPStatusUnspecified))
		return
	}
	progress, ack, err := a.Add(m[:])
	if ack {
		r.calls.outbox.acknowledge(a)
	}
	switch {
	case err != nil:
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
	case !progress:
		r.calls.counts.Duplicate++
	case a.Done():
		r.finishTable(c, a, now)
	default:
		if r.calls.outbox.noACK { // a lost segment will need all of them again
			c.s.giveUp += now - c.s.silentSince
		} else {
			c.s.giveUp = max(c.s.giveUp, min(now+c.s.totalTimeout(), c.s.lastEnd))
		}
		c.s.silentSince = now
		r.calls.await(c, now, c.s.timeout)
	}
}

// endOfSegments ends c, whose answer will not continue: m, with header h, is a STOP or
// an ABORT, or data that the transport has truncated.
func (r *receiver) endOfSegments(c *Call, m []byte, h *mad.RMPPHeader, from Address, now time.Duration) {
	var err error = ErrCut
	switch h.RMPPType {
	case mad.RMPPTypeData:
		r.calls.outbox.answer(m, from, rmppAbort(mad.RMPPStatusUnspecified))
	case mad.RMPPTypeStop, mad.RMPPTypeAbort:
		err = newPeerError("sender", "table", h)
		if c.Payload != nil && c.s.rx == nil {
			err = newPeerError("receiver", "request", h)
		}
	default:
		r.calls.counts.Foreign++
		return
	}
	r.calls.counts.Answered++
	c.s.rx = nil // nothing left to abort
	r.calls.end(c, now, err)
}

// finishTable ends c with all segments of its answer.
func (r *receiver) finishTable(c *Call, a *table, now time.Duration) {
	r.calls.counts.Answered++
	copy(c.MAD[:], a.Head())
	clear(c.MAD[mad.SADataOffset+copy(c.MAD[mad.SADataOffset:], a.Table()):])
	status := mad.ParseHeader(c.MAD[:]).Status
	var err error
	if status != 0 {
		err = statusError(status)
	} else if isTable(&c.MAD) {
		c.Table = a.Table()
	}
	c.s.rx = nil // nothing left to abort
	r.calls.end(c, now, err)
}

// straySegment answers a segment that no open call waits for: otherwise its sender
// would continue for long. If the call had all, our last ACK was lost.
func (r *receiver) straySegment(d *Datagram, answered bool) {
	if r.whole || !mad.IsSegment(d.MAD) || rmppTypeOf(d.MAD) != mad.RMPPTypeData {
		return
	}
	if h := rmppHeaderOf(d.MAD); !answered {
		r.calls.outbox.answer(d.MAD, d.Address, rmppAbort(mad.RMPPStatusTotalTimeTooLong))
	} else if h.RMPPFlags&mad.RMPPFlagsLast != 0 {
		r.calls.outbox.answer(d.MAD, d.Address, rmppACK(h.SegmentNumber, h.SegmentNumber+rmppWindow))
	}
}

// transferred handles m, the receiver's reply to the segments of c's request.
func (r *receiver) transferred(c *Call, m []byte, to Address, now time.Duration) {
	t := c.s.tx
	reply, err := t.Receive(m, c.s.timeout)
	if err != nil {
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
		return
	}
	if reply == replyProgress {
		c.s.giveUp = max(c.s.giveUp, min(c.s.giveUp+now-c.s.silentSince, c.s.lastEnd))
		c.s.silentSince = now
	}
	switch {
	case reply == replyOvertaken:
		r.calls.counts.Duplicate++
	case t.Done():
		// The transfer turns round: the ACK of nothing says how many segments
		// of the answer we take (IBA 13.6.6.3; Linux mad_rmpp.c, ack_ds_ack).
		r.calls.outbox.answer(m, to, rmppACK(0, 1))
		if reply == replyNoNews {
			r.calls.counts.Duplicate++
			return
		}
		r.calls.outbox.stopSegments(c)
		r.calls.await(c, now, c.s.timeout)
	case t.More():
		r.calls.sendMore(c)
	case reply == replyProgress && c.s.phase == phaseSent:
		r.calls.await(c, now, t.RTO())
	}
}
