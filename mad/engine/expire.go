package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"fabsh/mad"
)

// timeLoop is the timer goroutine.
func (e *Engine) timeLoop() {
	cs := &e.calls
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-cs.timers.rearm:
		case <-e.life.stop:
			return
		}
		e.mu.Lock()
		now := cs.timers.now()
		c := cs.timers.first()
		for ; c != nil && c.s.wake <= now; c = cs.timers.first() {
			cs.expire(c, now)
		}
		cs.timers.armed = never
		if c != nil {
			cs.timers.armed = c.s.wake
		}
		e.sender.watch(now)
		timer.Reset(cs.timers.armed - now)
		e.unlock()
	}
}

// expire handles c, which is due.
func (cs *calls) expire(c *Call, now time.Duration) {
	wake := c.s.wake
	late := now - wake
	switch {
	case wake >= c.s.giveUp:
		cs.timedOut(c, now)
		return
	case c.s.phase == phaseResend, c.s.phase == phaseSegments:
		cs.timers.set(c, c.s.giveUp)
		return
	}
	c.s.extendDeadlines(late)
	switch {
	case c.s.phase == phasePaused:
		cs.resend(c, now)
	case wake < c.s.due:
		c.s.due += late
		cs.flow.presumeLost(c, now)
		cs.timers.set(c, c.s.due)
	case c.s.rx != nil && !cs.outbox.noACK:
		// The sender still has the missing segments: request them again.
		cs.outbox.acknowledge(c.s.rx)
		cs.await(c, now, c.s.timeout)
	case c.s.tx != nil && !c.s.tx.Done():
		cs.flow.presumeLost(c, now)
		cs.flow.discharge(c)
		c.s.tx.GoBack(c.s.timeout)
		cs.sendMore(c)
	default:
		cs.flow.presumeLost(c, now)
		cs.flow.discharge(c)
		c.s.wait = min(2*c.s.wait, c.s.timeout)
		cs.resend(c, now)
	}
}

// timedOut ends c, which got no answer, or an incomplete one.
func (cs *calls) timedOut(c *Call, now time.Duration) {
	err := ErrTimeout
	var long string
	if c.s.tooLong() {
		long = fmt.Sprintf(" after %v", now-c.s.firstSent)
	}
	switch t := c.s.tx; {
	case c.s.rx != nil:
		err = fmt.Errorf("table incomplete%s, segment %d: %w", long, c.s.rx.Next(), ErrTimeout)
	case t != nil && !t.Done():
		acked, segments := t.Acked()
		err = fmt.Errorf("request incomplete%s, no ACK of segment %d of %d: %w", long, acked+1, segments, ErrTimeout)
	}
	d := Datagram{Address: c.s.to, MAD: slices.Clone(c.MAD[:])}
	binary.BigEndian.PutUint64(d.MAD[mad.TIDOffset:], uint64(c.s.tid))
	cs.gaveUp(&d)
	cs.end(c, now, err)
}
