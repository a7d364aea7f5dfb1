package engine

import (
	"errors"
	"fmt"
	"time"

	"fabsh/mad"
)

// transfer is how far a request of several segments has got (IBA 13.6.6; Linux
// mad_rmpp.c, process_rmpp_ack).
type transfer struct {
	segments uint32        // in all
	acked    uint32        // the last one that the receiver has, with all before it
	sent     uint32        // the last one sent
	window   uint32        // the receiver takes them up to this one
	rto      time.Duration // for an ACK of what was sent
	minRTO   time.Duration // what it begins with
}

// done: the receiver has all.
func (t *transfer) done() bool { return t.acked == t.segments }

// more: there is something to be sent that the receiver takes.
func (t *transfer) more() bool { return t.sent < min(t.window, t.segments) }

// checkPayload says why c's payload cannot be sent.
func (e *Engine) checkPayload(c *Call) error {
	n := len(c.Payload)
	switch {
	case c.Payload == nil:
		return nil
	case mad.Class(c.MAD[mad.ClassOffset]) != mad.ClassSubnAdm:
		return errors.New("only requests to subnet administration may be longer than one MAD")
	case !c.isAnswered():
		return errors.New("only requests that are answered may be longer than one MAD")
	case n > maxRequest:
		return fmt.Errorf("a request of %d bytes, more than %d", n, maxRequest)
	case n > mad.SegmentData && e.traits.NoACK && !e.policy.wholeRequests():
		return fmt.Errorf("a request of %d bytes, but to this fabric none is carried that does not fit in one MAD, %d bytes: ask for less at once", n, mad.SegmentData)
	}
	return nil
}

// takePayload puts c's request in d, which has the header: the whole, if the
// transport cuts it, or its first segment.
func (e *Engine) takePayload(c *Call, d *Datagram, rto time.Duration) {
	if e.policy.wholeRequests() {
		d.MAD = append(d.MAD[:mad.SADataOffset], c.Payload...)
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime, RMPPFlags: mad.RMPPFlagsActive}
		h.Encode(d.MAD[mad.RMPPOffset:])
		return
	}
	t := &transfer{segments: uint32(max(1, (len(c.Payload)+mad.SegmentData-1)/mad.SegmentData)), window: 1, rto: rto, minRTO: rto}
	t.putSegment(c, d)
	if e.traits.NoACK {
		return // there is only this one, and the answer
	}
	c.s.tx = t
	c.s.due = min(c.s.silentSince+t.rto, c.s.giveUp)
	e.timers.set(c, c.s.due)
}

// putSegment puts the next segment of c's request in d, which has the header.
func (t *transfer) putSegment(c *Call, d *Datagram) {
	t.sent++
	n := int(t.sent)
	data := c.Payload[(n-1)*mad.SegmentData : min(n*mad.SegmentData, len(c.Payload))]
	h := mad.RMPPHeader{
		RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime,
		RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: t.sent,
	}
	if n == 1 {
		h.RMPPFlags |= mad.RMPPFlagsFirst
		h.PayloadLength = t.segments*mad.SegmentHeader + uint32(len(c.Payload))
	}
	d.Timeout = 0
	if t.sent == t.segments {
		h.RMPPFlags |= mad.RMPPFlagsLast
		h.PayloadLength = mad.SegmentHeader + uint32(len(data))
		d.Timeout = c.s.timeout // the answer to all is the answer to the last
	}
	h.Encode(d.MAD[mad.RMPPOffset:])
	clear(d.MAD[mad.SADataOffset+copy(d.MAD[mad.SADataOffset:], data):])
}

// takeSegment puts the next segment of c's request in writer.out.
func (e *Engine) takeSegment(c *Call) {
	now := e.now()
	e.putHeader(c, &e.writer.out)
	c.s.tx.putSegment(c, &e.writer.out)
	if c.s.tx.more() {
		e.writer.segments.push(c) // in turns with others' segments
	} else {
		c.s.phase = phaseSent
		c.s.due = min(now+c.s.tx.rto, c.s.giveUp)
		e.timers.set(c, c.s.due)
	}
	e.beginSend(now)
}

// sendMore queues c for what its receiver takes of its request.
func (e *Engine) sendMore(c *Call) {
	if c.s.phase == phaseSent {
		c.s.phase = phaseSegments
		e.writer.segments.push(c)
	}
	e.timers.set(c, c.s.giveUp)
}

// sendAgain goes back to what was not acknowledged.
func (e *Engine) sendAgain(c *Call) {
	t := c.s.tx
	t.rto = min(2*t.rto, c.s.timeout)
	t.sent = t.acked
	e.sendMore(c)
}

// transferred takes in m, what the receiver says of the segments of c's request.
func (e *Engine) transferred(c *Call, m []byte, to Address, now time.Duration, ended *callList) {
	t := c.s.tx
	h := rmppHeader(m)
	segment, window := h.SegmentNumber, h.PayloadLength // which is NewWindowLast
	if overtaken, err := t.check(&h); err != nil {
		e.stats.Answered++
		e.end(c, now, err, ended)
		return
	} else if overtaken {
		e.stats.Duplicate++
		return
	}
	was := t.acked
	t.acked, t.window, t.sent = segment, window, max(t.sent, segment)
	if t.acked > was {
		t.rto = min(max(t.minRTO, respTime(&h)), c.s.timeout)
		c.s.giveUp = max(c.s.giveUp, min(c.s.giveUp+now-c.s.silentSince, c.s.lastEnd))
		c.s.silentSince = now
	}
	switch {
	case t.done():
		// The transfer turns round: the ACK of nothing says how many segments
		// of the answer we take (IBA 13.6.6.3; Linux mad_rmpp.c, ack_ds_ack).
		e.queueACK(m, to, 0, 1)
		if was == t.segments {
			e.stats.Duplicate++
			return
		}
		if c.s.phase == phaseSegments {
			e.writer.segments.remove(c)
			c.s.phase = phaseSent
		}
		c.s.due = min(now+c.s.timeout, c.s.giveUp)
		e.timers.set(c, c.s.due)
	case t.more():
		e.sendMore(c)
	case t.acked > was && c.s.phase == phaseSent:
		c.s.due = min(now+t.rto, c.s.giveUp)
		e.timers.set(c, c.s.due)
	}
}

// check says whether h, of what the receiver of t says, was overtaken by a later
// one, or ends the transfer.
func (t *transfer) check(h *mad.RMPPHeader) (overtaken bool, err error) {
	segment, window := h.SegmentNumber, h.PayloadLength
	switch {
	case h.RMPPVersion != 1:
		err = badACK(mad.RMPPStatusUnsupportedVersion, "RMPP version %d", h.RMPPVersion)
	case h.RMPPType == mad.RMPPTypeStop, h.RMPPType == mad.RMPPTypeAbort:
		err = peerErrorOf("receiver", "request", h)
	case h.RMPPType != mad.RMPPTypeACK:
		err = badACK(mad.RMPPStatusBadRMPPType, "RMPP type %d", uint8(h.RMPPType))
	case h.RMPPStatus != 0:
		err = badACK(mad.RMPPStatusIllegalStatus, "RMPP status %d", uint8(h.RMPPStatus))
	case window < segment:
		err = badACK(mad.RMPPStatusNewWindowLastTooSmall, "of segment %d, but the window ends with %d", segment, window)
	case segment > min(t.window, t.segments):
		err = badACK(mad.RMPPStatusSegmentNumberTooBig, "of segment %d, but %d were allowed of %d", segment, t.window, t.segments)
	default:
		overtaken = segment < t.acked || window < t.window && segment < t.segments
	}
	return overtaken, err
}
