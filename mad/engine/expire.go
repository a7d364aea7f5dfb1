package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"fabsh/mad"
)

// timeLoop is the timer goroutine: all that happens because time goes by.
func (e *Engine) timeLoop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.timers.rearm:
		case <-e.life.stop:
			return
		}
		var ended callList
		e.mu.Lock()
		now := e.now()
		c := e.timers.first()
		for ; c != nil && c.s.wake <= now; c = e.timers.first() {
			e.expire(c, now, &ended)
		}
		e.timers.armed = never
		if c != nil {
			e.timers.armed = c.s.wake
		}
		e.watchWriter(now, &ended)
		timer.Reset(e.timers.armed - now)
		e.unlock()
		ended.complete()
	}
}

// expire looks at c, whose time has come.
func (e *Engine) expire(c *Call, now time.Duration, ended *callList) {
	wake := c.s.wake
	late := now - wake
	switch {
	case wake >= c.s.giveUp:
		e.timedOut(c, now, ended)
		return
	case c.s.phase == phaseResend, c.s.phase == phaseSegments:
		e.timers.set(c, c.s.giveUp)
		return
	}
	c.s.extendDeadlines(late)
	switch {
	case c.s.phase == phasePaused:
		e.resend(c, now)
	case wake < c.s.due:
		c.s.due += late
		e.flow.presumeLost(c, now)
		e.timers.set(c, c.s.due)
	case c.s.rx != nil && !e.traits.NoACK:
		// The sender still has what we lack: ask for it again.
		e.acknowledge(c.s.rx)
		e.expectSegment(c, now)
	case c.s.tx != nil && !c.s.tx.done():
		e.flow.presumeLost(c, now)
		e.flow.discharge(c)
		e.sendAgain(c)
	default:
		e.flow.presumeLost(c, now)
		e.flow.discharge(c)
		c.s.wait = min(2*c.s.wait, c.s.timeout)
		e.resend(c, now)
	}
}

// timedOut ends c, which got no answer, or not the whole of one.
func (e *Engine) timedOut(c *Call, now time.Duration, ended *callList) {
	err := ErrTimeout
	var long string
	if c.s.tooLong() {
		long = fmt.Sprintf(" after %v", now-c.s.firstSent)
	}
	switch t := c.s.tx; {
	case c.s.rx != nil:
		err = fmt.Errorf("table incomplete%s, segment %d: %w", long, c.s.rx.next, ErrTimeout)
	case t != nil && !t.done():
		err = fmt.Errorf("request incomplete%s, no ACK of segment %d of %d: %w", long, t.acked+1, t.segments, ErrTimeout)
	}
	d := Datagram{Address: c.s.to, MAD: slices.Clone(c.MAD[:])}
	binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
	e.transport.GaveUp(&d)
	e.end(c, now, err, ended)
}
