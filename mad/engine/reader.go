package engine

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"fabsh/mad"
)

// readLoop is the reader goroutine: it reads, matches and completes.
func (e *Engine) readLoop() {
	d := Datagram{MAD: make([]byte, mad.Size)}
	for n := 1; ; n++ {
		d = Datagram{MAD: d.MAD[:cap(d.MAD)]}
		var began time.Duration
		if !e.writer.fastPath {
			began = e.now()
		}
		if err := e.transport.Recv(&d); err != nil {
			e.fail(err)
			return
		}
		var ended callList
		e.mu.Lock()
		e.writer.reading = e.writer.fastPath
		now := e.now()
		if e.writer.waited || !e.writer.fastPath && now-began > time.Microsecond {
			e.flow.heaps++
		}
		e.writer.waited = false
		e.receive(&d, now, &ended)
		e.unlock()
		ended.complete()
		if e.writer.fastPath && n%readerBatch == 0 {
			e.sendFromReader()
		}
	}
}

// receive decides what d is.
func (e *Engine) receive(d *Datagram, now time.Duration, ended *callList) {
	if len(d.MAD) < mad.HeaderSize {
		e.stats.Foreign++
		return
	}
	tid := uint32(binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:]))
	c := e.flow.slots.lookup(tid)
	h := mad.ParseHeader(d.MAD)
	switch {
	case d.Undelivered: // before the response bit: the answer itself may have been lost
		e.undelivered(c, d, tid, now, ended)
	case !h.IsAnswer():
		e.unsolicited(d, now)
	case c == nil:
		e.stray(d, tid)
	case !e.answers(d, c):
		e.stats.Foreign++
	default:
		e.answer(c, d, tid, now, ended)
	}
}

// answer takes in a response to c.
func (e *Engine) answer(c *Call, d *Datagram, tid uint32, now time.Duration, ended *callList) {
	if d.Took > 0 {
		c.s.started = now - d.Took
	}
	if c.s.tx != nil {
		if mad.IsSegment(d.MAD) && rmppType(d.MAD) != mad.RMPPTypeData {
			if tid == c.s.tid {
				e.transferred(c, d.MAD, d.Address, now, ended)
			}
			return
		}
		e.writer.dropSegments(c) // who answers has got all, or does not want it
	}
	if c.s.rx == nil {
		switch {
		case tid == c.s.tid && c.s.phase == phaseSent:
			e.flow.sample(c, c.s.silentSince, now)
		case tid&attemptMask == 0 && c.Attempts <= 1<<attemptBits:
			e.flow.sample(c, c.s.firstSent, now)
		}
	}
	if mad.ParseHeader(d.MAD).Status&mad.StatusBusy != 0 && c.s.rx == nil {
		e.stats.Busy++
		if e.policy.retriesBusy(c, now) {
			until := now + backOff(c.s.busy, c.s.timeout)
			c.s.busy++
			c.s.giveUp += until - c.s.silentSince // that was no silence
			c.s.silentSince = until
			e.pause(c, until)
			return
		}
	}
	if mad.IsSegment(d.MAD) && !e.traits.RMPP {
		e.segment(c, d, tid, now, ended)
		return
	}
	e.finish(c, d, now, ended)
}

// finish ends c with the response in d.
func (e *Engine) finish(c *Call, d *Datagram, now time.Duration, ended *callList) {
	e.stats.Answered++
	if r := redirection(c, d.MAD); r != nil {
		e.end(c, now, r, ended)
		return
	}
	clear(c.MAD[copy(c.MAD[:], d.MAD):])
	e.options.Keys.take(c.MAD[:], c.Guard)
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
	e.end(c, now, err, ended)
}

// isTable: m is an answer of any number of records.
func isTable(m *[mad.Size]byte) bool {
	return mad.Class(m[mad.ClassOffset]) == mad.ClassSubnAdm && mad.Method(m[mad.MethodOffset]).IsTable()
}

// unsegmented is the data of a table that came in one datagram.
func unsegmented(c *Call, d *Datagram) ([]byte, error) {
	switch {
	case c.MAD[mad.ClassVersionOffset] == 1:
		table, ok := mad.SA1Table(c.MAD[:])
		if !ok {
			return nil, errors.New("the table comes in several datagrams by the transfer of class version 1, whose rules are not public: ask for less at once, or in version 2")
		}
		return table, nil
	case len(d.MAD) > mad.SADataOffset+c.maxTable():
		return nil, tooLong(c.maxTable())
	case len(d.MAD) > mad.Size: // the transport has put it together
		return slices.Clone(d.MAD[mad.SADataOffset:]), nil
	case mad.IsSegment(d.MAD):
		n := int64(binary.BigEndian.Uint32(c.MAD[mad.PayloadLengthOffset:])) - mad.SegmentHeader
		return c.MAD[mad.SADataOffset:][:min(max(n, 0), mad.SegmentData)], nil
	case len(d.MAD) < mad.Size:
		return c.MAD[mad.SADataOffset:max(mad.SADataOffset, len(d.MAD))], nil
	}
	return nil, errors.New("malformed table: it does not say how long it is")
}

// undelivered: the transport gives back what we sent, or the answer to it.
func (e *Engine) undelivered(c *Call, d *Datagram, tid uint32, now time.Duration, ended *callList) {
	e.stats.Undelivered++
	// Not of an attempt given up, nor our ACK of a table that is coming.
	if c == nil || tid != c.s.tid || c.s.phase != phaseSent || d.MAD[mad.ClassOffset] != c.MAD[mad.ClassOffset] {
		return
	}
	loss := e.policy.undelivered(c, d, now)
	if loss != lossIgnored {
		e.flow.leave(c)
	}
	switch loss {
	case lossBackOff:
		c.s.undelivered++
		e.pause(c, min(now+backOff(c.s.undelivered-1, c.s.timeout), c.s.giveUp))
	case lossResent:
		e.resend(c, now)
	case lossFinal:
		e.timedOut(c, now, ended)
	}
}

// stray counts a response that no open call waits for.
func (e *Engine) stray(d *Datagram, tid uint32) {
	known, answered := e.flow.slots.past(tid)
	switch {
	case answered:
		e.stats.Duplicate++
	case known:
		e.stats.Late++
	default:
		e.stats.Foreign++
		return
	}
	e.straySegment(d, answered)
}
