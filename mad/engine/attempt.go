package engine

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// takeAttempt puts the next attempt of c, which the window lets through, in
// writer.out. It is a copy, for c may end, and its buffer go back to its owner,
// while the transport still reads the datagram.
func (e *Engine) takeAttempt(c *Call) {
	if c.s.phase == phaseResend {
		e.stats.Retried++
	} else {
		e.flow.slots.open(c)
	}
	e.flow.dequeue(c)
	e.flow.enter(c)

	now := e.now()
	c.s.phase = phaseSent
	e.flow.slots.setAttempt(c, c.Attempts)
	measured := c.s.dest.rto()
	rto := min(max(measured, minRTO), c.s.timeout)
	if c.Attempts == 0 {
		c.s.firstSent, c.s.due = now, now
		c.s.period = c.s.dest.class.losses.period
		e.policy.setDeadlines(c, now, rto)
	}
	c.Attempts++
	c.s.silentSince = now
	c.s.extendDeadlines(now - c.s.due)
	c.s.due = now + c.s.wait
	if c.s.due+rto > c.s.giveUp {
		c.s.due = c.s.giveUp // another attempt would come too late
	}
	leaveAfter := max(measured, minLeaveAfter)
	if measured == 0 && c.Attempts == 1 {
		leaveAfter = minRTO
	}
	e.timers.set(c, min(now+leaveAfter, c.s.due))

	d := &e.writer.out
	d.Timeout = c.s.timeout
	switch {
	case !c.isAnswered():
		d.Timeout = 0
	case e.traits.RMPP && isTable(&c.MAD):
		// A kernel drops a table that is not whole by then, however many
		// segments it has; here it is welcome until the end.
		d.Timeout = c.s.giveUp - now
	}
	e.putHeader(c, d)
	if c.Payload != nil {
		e.takePayload(c, d, rto)
	}
	e.beginSend(now)
}

// putHeader puts c's MAD in d, with what the engine adds to it.
func (e *Engine) putHeader(c *Call, d *Datagram) {
	d.Address = c.s.to
	d.MAD = append(d.MAD[:0], c.MAD[:]...)
	if c.s.keyless {
		dropKey(d.MAD)
	} else {
		e.options.Keys.put(d.MAD, c.Guard)
	}
	binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
}

// resend queues c for another attempt. Time runs meanwhile, so that
// a transport which takes nothing cannot hold up the end.
func (e *Engine) resend(c *Call, now time.Duration) {
	c.s.rx = nil
	e.writer.dropSegments(c)
	c.s.due = now
	c.s.phase = phaseResend
	c.s.dest.class.again.push(c)
	e.timers.set(c, c.s.giveUp)
}

// pause has c sent again after a while.
func (e *Engine) pause(c *Call, until time.Duration) {
	e.flow.leave(c)
	e.writer.dropSegments(c)
	e.flow.dequeue(c)
	c.s.phase = phasePaused
	e.timers.set(c, until)
}

// backOff is the n-th pause, exponential: from 10 ms doubling up to most.
func backOff(n int, most time.Duration) time.Duration {
	return min(most, 10*time.Millisecond<<min(n, 20))
}
