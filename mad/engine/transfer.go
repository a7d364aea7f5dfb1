package engine

import (
	"encoding/binary"
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
	wait     time.Duration // for an ACK of what was sent
	least    time.Duration // what it begins with
}

// done: the receiver has all.
func (t *transfer) done() bool { return t.acked == t.segments }

// more: there is something to be sent that the receiver takes.
func (t *transfer) more() bool { return t.sent < min(t.window, t.segments) }

// transferTime is how long a transfer may last that goes on and on, at least;
// Linux takes 40 s too (mad_rmpp.c, start_rmpp).
const transferTime = 40 * time.Second

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
	case n > maxTable:
		return fmt.Errorf("a request of %d bytes, more than %d", n, maxTable)
	case n > segmentData && e.traits.NoACK && !e.traits.Recorded:
		return fmt.Errorf("a request of %d bytes, but to this fabric none is carried that does not fit in one MAD, %d bytes: ask for less at once", n, segmentData)
	}
	return nil
}

// takePayload puts c's request in d: the whole, if the transport cuts it, or
// its first segment.
func (e *Engine) takePayload(c *Call, d *Datagram, lostAfter time.Duration) {
	if e.traits.RMPP || e.traits.Recorded {
		d.MAD = append(d.MAD[:mad.SADataOffset], c.Payload...)
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: noRespTime, RMPPFlags: mad.RMPPFlagsActive}
		h.Encode(d.MAD[mad.RMPPOffset:])
		return
	}
	t := &transfer{segments: uint32(max(1, (len(c.Payload)+segmentData-1)/segmentData)), window: 1, wait: lostAfter, least: lostAfter}
	e.putSegment(c, t, d)
	if e.traits.NoACK {
		return // there is only this one, and the answer
	}
	c.s.tx = t
	c.s.due = min(c.s.silentSince+t.wait, c.s.giveUp)
	e.setTimer(c, c.s.due)
}

// putSegment puts c's next segment in d, which has the header.
func (e *Engine) putSegment(c *Call, t *transfer, d *Datagram) {
	t.sent++
	n := int(t.sent)
	data := c.Payload[(n-1)*segmentData : min(n*segmentData, len(c.Payload))]
	h := mad.RMPPHeader{
		RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: noRespTime,
		RMPPFlags: mad.RMPPFlagsActive, SegmentNumber: t.sent,
	}
	if n == 1 {
		h.RMPPFlags |= mad.RMPPFlagsFirst
		h.PayloadLength = t.segments*rmppClassHeader + uint32(len(c.Payload))
	}
	d.Timeout = 0
	if t.sent == t.segments {
		h.RMPPFlags |= mad.RMPPFlagsLast
		h.PayloadLength = rmppClassHeader + uint32(len(data))
		d.Timeout = c.s.timeout // the answer to all is the answer to the last
	}
	h.Encode(d.MAD[mad.RMPPOffset:])
	clear(d.MAD[mad.SADataOffset+copy(d.MAD[mad.SADataOffset:], data):])
}

// takeSegment puts the next segment of c's request in d.
func (e *Engine) takeSegment(c *Call, d *Datagram) {
	now := e.now()
	e.putHeader(c, d)
	e.putSegment(c, c.s.tx, d)
	if c.s.tx.more() {
		e.segments.push(c) // in turns with others' segments
	} else {
		c.s.phase = phaseSent
		c.s.due = min(now+c.s.tx.wait, c.s.giveUp)
		e.setTimer(c, c.s.due)
	}
	e.beginSend(now)
}

// sendMore queues c for what its receiver takes of its request.
func (e *Engine) sendMore(c *Call) {
	if c.s.phase == phaseSent {
		c.s.phase = phaseSegments
		e.segments.push(c)
	}
	e.setTimer(c, c.s.giveUp)
}

// sendNoMore ends the transfer of c's request: it has arrived, or another
// attempt begins, or the call ends.
func (e *Engine) sendNoMore(c *Call) {
	if c.s.phase == phaseSegments {
		e.segments.remove(c)
		c.s.phase = phaseSent
	}
	c.s.tx = nil
}

// sendAgain goes back to what was not acknowledged.
func (e *Engine) sendAgain(c *Call) {
	t := c.s.tx
	t.wait = min(2*t.wait, c.s.timeout)
	t.sent = t.acked
	e.sendMore(c)
}

// transferred takes in what the receiver says of the segments of c's request.
func (e *Engine) transferred(c *Call, m []byte, to Address, now time.Duration, ended *callList) {
	t := c.s.tx
	segment, window := binary.BigEndian.Uint32(m[mad.SegmentNumberOffset:]), binary.BigEndian.Uint32(m[mad.NewWindowLastOffset:])
	var err error
	switch kind := m[mad.RMPPTypeOffset]; {
	case m[mad.RMPPVersionOffset] != 1:
		err = &abortError{125, fmt.Sprintf("malformed ACK: RMPP version %d", m[mad.RMPPVersionOffset])}
	case kind == rmppStop, kind == rmppAbort:
		err = &peerError{"receiver", "request", kind, m[mad.RMPPStatusOffset]}
	case kind != rmppACK:
		err = &abortError{rmppUnknownType, fmt.Sprintf("malformed ACK: RMPP type %d", kind)}
	case m[mad.RMPPStatusOffset] != 0:
		err = &abortError{124, fmt.Sprintf("malformed ACK: RMPP status %d", m[mad.RMPPStatusOffset])}
	case window < segment:
		err = &abortError{122, fmt.Sprintf("malformed ACK: of segment %d, but the window ends with %d", segment, window)}
	case segment > min(t.window, t.segments):
		err = &abortError{123, fmt.Sprintf("malformed ACK: of segment %d, but %d were allowed of %d", segment, t.window, t.segments)}
	case segment < t.acked, window < t.window && segment < t.segments: // overtaken by a later one
		e.stats.Duplicate++
		return
	}
	if err != nil {
		e.stats.Answered++
		e.end(c, now, err, ended)
		return
	}
	was := t.acked
	t.acked, t.window, t.sent = segment, window, max(t.sent, segment)
	if t.acked > was {
		t.wait = min(max(t.least, respTime(m)), c.s.timeout)
		c.s.giveUp = max(c.s.giveUp, min(c.s.giveUp+now-c.s.silentSince, c.s.lastEnd()))
		c.s.silentSince = now
	}
	switch {
	case t.done():
		// The transfer turns round: the ACK of nothing says how many segments
		// of the answer we take (IBA 13.6.6.3; Linux mad_rmpp.c, ack_ds_ack).
		e.reply(m, to, rmppACK, 0, 0, 1)
		if was == t.segments {
			e.stats.Duplicate++
			return
		}
		if c.s.phase == phaseSegments {
			e.segments.remove(c)
			c.s.phase = phaseSent
		}
		c.s.due = min(now+c.s.timeout, c.s.giveUp)
		e.setTimer(c, c.s.due)
	case t.more():
		e.sendMore(c)
	case t.acked > was && c.s.phase == phaseSent:
		c.s.due = min(now+t.wait, c.s.giveUp)
		e.setTimer(c, c.s.due)
	}
}

// lastEnd is when a transfer must be complete, however well it goes.
func (s *callState) lastEnd() time.Duration {
	return s.firstSent + max(transferTime, 10*s.patience())
}

// tooLong: that is when it is given up, for segments and ACKs came and came.
func (s *callState) tooLong() bool { return s.giveUp >= s.lastEnd() && s.wait < recordedTimeout }

// noRespTime in RRespTime says nothing.
const noRespTime = 31

// respTime is how long the sender of m says it takes to answer (IBA 13.6.2.1);
// 0 if it does not.
func respTime(m []byte) time.Duration {
	code := m[mad.RMPPFlagsOffset] >> 3
	if code == noRespTime {
		return 0
	}
	return 4096 * time.Nanosecond << code
}

// breakTransfer tells the other end why the transfer of c's request or answer
// ends in the middle, as c does, with err.
func (e *Engine) breakTransfer(c *Call, err error) {
	var theirs *peerError
	if err == nil || e.err != nil || errors.As(err, &theirs) {
		return
	}
	var ours *abortError
	status, timeout := uint8(rmppUnspecified), errors.Is(err, ErrTimeout)
	switch {
	case errors.As(err, &ours):
		status = ours.status
	case timeout && c.s.rx == nil && !c.s.tooLong():
		status = rmppTooMany
	case timeout:
		status = rmppTooLong
	}
	switch {
	case c.s.rx != nil:
		e.abort(c.s.rx.head[:], c.s.rx.to, status)
	case c.s.tx != nil && !c.s.tx.done():
		var d Datagram
		e.putHeader(c, &d)
		d.MAD[mad.RMPPFlagsOffset] = noRespTime << 3
		e.putControl(d.MAD, c.s.to, rmppAbort, status, 0, 0)
	}
}

// peerError is that the other end of a transfer broke it off.
type peerError struct {
	who, what string // "the receiver ... the request"
	kind      uint8  // STOP or ABORT
	status    uint8
}

func (e *peerError) Error() string {
	did, words := "stopped", rmppWords[e.status]
	if e.kind == rmppAbort {
		did = "aborted"
	}
	switch {
	case e.status >= 192:
		words = "a reason of the vendor's"
	case e.status >= 128:
		words = "a reason of the class's"
	case words == "":
		words = "unknown"
	}
	return fmt.Sprintf("the %s %s the %s: RMPP status %d, %s: %s", e.who, did, e.what, e.status, words, e.remedy())
}

// remedy is what to try.
func (e *peerError) remedy() string {
	switch e.status {
	case 1:
		return "ask again later, or for less at once"
	case rmppTooLong:
		return "ask again, with a longer timeout or for less at once"
	case rmppTooMany:
		return "datagrams are lost on the way: look for errors on its links, or ask again"
	case rmppBadLength, rmppBadFirst, rmppUnknownType, 122, 123, 124, 125:
		return "one end does not keep to the protocol: a recording shows which"
	}
	return "ask again"
}
