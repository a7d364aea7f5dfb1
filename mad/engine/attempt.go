package engine

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// putAttempt puts the next attempt of c, which the window allows, in out. It is a
// copy, because c may end, and its buffer return to its owner, while the transport
// still reads the datagram.
func (s *sender) putAttempt(c *Call) {
	s.calls.open(c)
	now := s.calls.timers.now()
	measured := c.s.dest.rto()
	rto := min(max(measured, shortestRTO), c.s.timeout)
	if c.Attempts == 1 {
		c.s.firstSent, c.s.due = now, now
		c.s.period = c.s.dest.class.losses.Period()
		s.policy.setDeadlines(c, now, rto)
	}
	c.s.silentSince = now
	c.s.extendDeadlines(now - c.s.due)
	c.s.due = now + c.s.wait
	if c.s.due+rto > c.s.giveUp {
		c.s.due = c.s.giveUp // another attempt would be too late
	}
	leaveAfter := max(measured, minLeaveAfter)
	if measured == 0 && c.Attempts == 1 {
		leaveAfter = shortestRTO
	}
	s.calls.timers.set(c, min(now+leaveAfter, c.s.due))

	d := &s.out
	s.job = job{true, c.s.tid}
	d.Timeout = c.s.timeout
	switch {
	case !c.isAnswered():
		d.Timeout = 0
	case s.tables && isTable(&c.MAD):
		// A kernel drops a table that is incomplete by then, however many
		// segments it has; here it is accepted until the end.
		d.Timeout = c.s.giveUp - now
	}
	c.putHeader(d, s.calls.keys)
	if c.Payload != nil {
		s.putPayload(c, rto)
	}
	s.begin(now)
}

// putPayload puts c's request in out, which has the header: the whole request if the
// transport splits it, otherwise its first segment.
func (s *sender) putPayload(c *Call, rto time.Duration) {
	d := &s.out
	if s.policy.wholeRequests() {
		d.MAD = append(d.MAD[:mad.SADataOffset], c.Payload...)
		h := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: mad.NoRespTime, RMPPFlags: mad.RMPPFlagsActive}
		h.Encode(d.MAD[mad.RMPPOffset:])
		return
	}
	t := newRMPPTransfer(len(c.Payload), rto)
	c.putSegment(t, d)
	if s.calls.outbox.noACK {
		return // the only segment
	}
	c.s.tx = t
	s.calls.await(c, c.s.silentSince, t.RTO())
}

// putSegment puts the next segment of c's request in out.
func (s *sender) putSegment(c *Call) {
	now := s.calls.timers.now()
	s.job = job{true, c.s.tid}
	c.putHeader(&s.out, s.calls.keys)
	c.putSegment(c.s.tx, &s.out)
	if c.s.tx.More() {
		s.calls.outbox.segments.push(c) // in turns with segments of other calls
	} else {
		c.s.phase = phaseSent
		s.calls.await(c, now, c.s.tx.RTO())
	}
	s.calls.counts.Sent++
	s.begin(now)
}

// putHeader puts c's MAD in d, with its transaction ID and its key.
func (c *Call) putHeader(d *Datagram, keys *Keys) {
	d.Address = c.s.to
	d.MAD = append(d.MAD[:0], c.MAD[:]...)
	if c.s.keyless {
		dropKey(d.MAD)
	} else {
		keys.put(d.MAD, c.Guard)
	}
	if !c.KeepTID || c.isAnswered() {
		binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
	}
}

// putSegment puts the next segment of t, the transfer of c's request, in d, which has
// the header. The answer to all is the answer to the last.
func (c *Call) putSegment(t *rmppTransfer, d *Datagram) {
	d.Timeout = 0
	if last := t.Put(d.MAD, c.Payload); last {
		d.Timeout = c.s.timeout
	}
}

// backOff is the n-th pause, exponential: from 10 ms doubling up to most.
func backOff(n int, most time.Duration) time.Duration {
	return min(most, 10*time.Millisecond<<min(n, 20))
}
