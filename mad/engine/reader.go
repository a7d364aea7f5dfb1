package engine

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"fabsh/mad"
)

// readLoop is the reader goroutine: it reads, and completes calls that have ended.
func (e *Engine) readLoop() {
	s := &e.sender
	d := Datagram{MAD: make([]byte, mad.Size)}
	for n := 1; ; n++ {
		d = Datagram{MAD: d.MAD[:cap(d.MAD)]}
		var began time.Duration
		if !s.fastPath {
			began = e.calls.timers.now()
		}
		if err := e.transport.Recv(&d); err != nil {
			e.fail(err)
			return
		}
		e.mu.Lock()
		now := e.calls.timers.now()
		waited := now-began > time.Microsecond
		if s.fastPath {
			waited = s.reader == readerWaits
			s.reader = readerWorks
		}
		if waited {
			e.calls.flow.bursts++
		}
		e.receiver.receive(&d, now)
		e.unlock()
		if s.fastPath && n%readerBatch == 0 {
			e.sendFromReader(readerLooks)
		}
	}
}

// receiver matches received datagrams with the open calls, and decides the consequences.
// Engine.mu guards it.
type receiver struct {
	calls     *calls
	policy    policy
	whole     bool // Traits.RMPP: tables come as one datagram
	represses bool // Options.Write: traps may be answered
	lmcs      *lmcs
	listeners *listeners
}

// receive classifies d.
func (r *receiver) receive(d *Datagram, now time.Duration) {
	if len(d.MAD) < mad.HeaderSize {
		r.calls.counts.Foreign++
		return
	}
	tid := uint32(binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:]))
	c := r.calls.slots.lookup(tid)
	h := mad.ParseHeader(d.MAD)
	switch {
	case d.Undelivered: // before the response bit: the answer itself may have been lost
		r.undelivered(c, d, tid, now)
	case !h.IsAnswer():
		r.unsolicited(d, &h, now)
	case c == nil:
		r.stray(d, tid)
	case !r.answers(d, c):
		r.calls.counts.Foreign++
		if d.Took > 0 { // a recording has nothing else for this attempt
			r.undelivered(c, d, tid, now)
		}
	default:
		r.answer(c, d, tid, now)
	}
}

// answer handles a response to c.
func (r *receiver) answer(c *Call, d *Datagram, tid uint32, now time.Duration) {
	if d.Took > 0 {
		c.s.started = now - d.Took
	}
	if c.s.tx != nil {
		if mad.IsSegment(d.MAD) && rmppTypeOf(d.MAD) != mad.RMPPTypeData {
			if tid == c.s.tid {
				r.transferred(c, d.MAD, d.Address, now)
			}
			return
		}
		r.calls.outbox.dropSegments(c) // the answering agent has all, or does not want it
	}
	if c.s.rx == nil {
		switch {
		case tid == c.s.tid && c.s.phase == phaseSent:
			r.calls.flow.sample(c, c.s.silentSince, now)
		case tid&attemptMask == 0 && c.Attempts <= 1<<attemptBits:
			r.calls.flow.sample(c, c.s.firstSent, now)
		}
	}
	if mad.ParseHeader(d.MAD).Status&mad.StatusBusy != 0 && c.s.rx == nil {
		r.calls.counts.Busy++
		if r.policy.retriesBusy(c, now) {
			until := now + backOff(c.s.busy, c.s.timeout)
			c.s.busy++
			c.s.giveUp += until - c.s.silentSince // the agent answered meanwhile
			c.s.silentSince = until
			r.calls.pause(c, until)
			return
		}
	}
	if err := truncated(d.MAD); err != nil && !d.Cut {
		r.calls.counts.Answered++
		r.calls.end(c, now, err)
		return
	}
	if mad.IsSegment(d.MAD) && !r.whole {
		r.segment(c, d, tid, now)
		return
	}
	r.finish(c, d, now)
}

// finish ends c with the response in d.
func (r *receiver) finish(c *Call, d *Datagram, now time.Duration) {
	r.calls.counts.Answered++
	if to := redirection(c, d.MAD); to != nil {
		r.calls.end(c, now, to)
		return
	}
	clear(c.MAD[copy(c.MAD[:], d.MAD):])
	r.calls.keys.take(c.MAD[:], c.Guard)
	status := mad.ParseHeader(c.MAD[:]).Status
	var err error
	switch {
	case status != 0:
		err = statusError(status)
	case d.Cut:
		err = ErrCut
	case isTable(&c.MAD):
		c.Table, err = unsegmented(c, d)
	}
	r.calls.end(c, now, err)
}

// isTable reports whether m is an answer of any number of records.
func isTable(m *[mad.Size]byte) bool {
	return mad.Class(m[mad.ClassOffset]) == mad.ClassSubnAdm && mad.Method(m[mad.MethodOffset]).IsTable()
}

// unsegmented returns the data of a table that came in one datagram.
func unsegmented(c *Call, d *Datagram) ([]byte, error) {
	switch {
	case c.MAD[mad.ClassVersionOffset] == 1:
		table, ok := mad.SA1Table(c.MAD[:])
		if !ok {
			return nil, errors.New("the table comes in several datagrams in class version 1, whose transfers have no public specification; request less at once, or use version 2")
		}
		return table, nil
	case len(d.MAD) > mad.SADataOffset+c.maxTable():
		return nil, rmppTooLong(c.maxTable())
	case len(d.MAD) > mad.Size: // reassembled by the transport
		return slices.Clone(d.MAD[mad.SADataOffset:]), nil
	case mad.IsSegment(d.MAD):
		n := int64(binary.BigEndian.Uint32(c.MAD[mad.PayloadLengthOffset:])) - mad.SegmentHeader
		return c.MAD[mad.SADataOffset:][:min(max(n, 0), mad.SegmentData)], nil
	case len(d.MAD) < mad.Size:
		return c.MAD[mad.SADataOffset:max(mad.SADataOffset, len(d.MAD))], nil
	}
	return nil, errors.New("malformed table: it does not say how long it is")
}

// undelivered handles a datagram of ours that the transport returns, or the answer to
// it.
func (r *receiver) undelivered(c *Call, d *Datagram, tid uint32, now time.Duration) {
	r.calls.counts.Undelivered++
	// Not of an abandoned attempt, nor our ACK of a table that is coming.
	if c == nil || tid != c.s.tid || c.s.phase != phaseSent || d.MAD[mad.ClassOffset] != c.MAD[mad.ClassOffset] {
		return
	}
	loss := r.policy.undelivered(c, d, now)
	if loss != lossIgnored {
		r.calls.flow.leave(c)
	}
	switch loss {
	case lossBackOff:
		c.s.undelivered++
		r.calls.pause(c, min(now+backOff(c.s.undelivered-1, c.s.timeout), c.s.giveUp))
	case lossResent:
		r.calls.resend(c, now)
	case lossFinal:
		r.calls.timedOut(c, now)
	}
}

// stray counts a response that no open call waits for.
func (r *receiver) stray(d *Datagram, tid uint32) {
	known, answered := r.calls.slots.past(tid)
	switch {
	case answered:
		r.calls.counts.Duplicate++
	case known:
		r.calls.counts.Late++
	default:
		r.calls.counts.Foreign++
		return
	}
	r.straySegment(d, answered)
}
