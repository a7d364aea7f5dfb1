package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"fabsh/mad"
)

// never is later than all times.
const never = time.Duration(math.MaxInt64)

// timerHeap has the call first whose wake is first.
type timerHeap []*Call

// set makes at the time when c is looked at.
func (h *timerHeap) set(c *Call, at time.Duration) {
	c.s.wake = at
	if c.s.timer == 0 {
		*h = append(*h, c)
		c.s.timer = len(*h)
		h.up(len(*h) - 1)
		return
	}
	i := c.s.timer - 1
	h.up(i)
	h.down(c.s.timer - 1)
}

func (h *timerHeap) remove(c *Call) {
	if c.s.timer == 0 {
		return
	}
	i, last := c.s.timer-1, len(*h)-1
	c.s.timer = 0
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		moved.s.timer = i + 1
		h.up(i)
		h.down(moved.s.timer - 1)
	}
}

func (h timerHeap) up(i int) {
	c := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].s.wake <= c.s.wake {
			break
		}
		h[i] = h[parent]
		h[i].s.timer = i + 1
		i = parent
	}
	h[i] = c
	c.s.timer = i + 1
}

func (h timerHeap) down(i int) {
	c := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].s.wake < h[child].s.wake {
			child++
		}
		if c.s.wake <= h[child].s.wake {
			break
		}
		h[i] = h[child]
		h[i].s.timer = i + 1
		i = child
	}
	h[i] = c
	c.s.timer = i + 1
}

// setTimer has the timer goroutine look at c at the given time.
func (e *Engine) setTimer(c *Call, at time.Duration) {
	e.timers.set(c, at)
	e.wakeTimer(at)
}

// wakeTimer makes sure that the timer goroutine wakes at the given time or before.
func (e *Engine) wakeTimer(at time.Duration) {
	if at < e.armed {
		e.armed = at
		select {
		case e.rearm <- struct{}{}:
		default: // told already
		}
	}
}

// timeLoop is the timer goroutine: all that happens because time goes by.
func (e *Engine) timeLoop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.rearm:
		case <-e.stop:
			return
		}
		var ended callList
		e.mu.Lock()
		now := e.now()
		for len(e.timers) > 0 && e.timers[0].s.wake <= now {
			e.expire(e.timers[0], now, &ended)
		}
		e.armed = never
		if len(e.timers) > 0 {
			e.armed = e.timers[0].s.wake
		}
		e.watchWriter(now, &ended)
		timer.Reset(e.armed - now)
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
		e.setTimer(c, c.s.giveUp)
		return
	}
	c.s.excuse(late)
	switch {
	case c.s.phase == phasePaused:
		e.resend(c, now)
	case wake < c.s.due:
		c.s.due += late
		e.presumeLost(c, now)
		e.setTimer(c, c.s.due)
	case c.s.rx != nil && !e.traits.NoACK:
		// The sender still has what we lack: ask for it again.
		e.acknowledge(c.s.rx)
		e.expectSegment(c, now)
	case c.s.tx != nil && !c.s.tx.done():
		e.presumeLost(c, now)
		e.discharge(c)
		e.sendAgain(c)
	default:
		e.presumeLost(c, now)
		e.discharge(c)
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
	e.t.GaveUp(&d)
	e.end(c, now, err, ended)
}

// resend queues c for another attempt. Time runs meanwhile, so that
// a transport which takes nothing cannot hold up the end.
func (e *Engine) resend(c *Call, now time.Duration) {
	c.s.rx = nil
	e.sendNoMore(c)
	c.s.due = now
	c.s.phase = phaseResend
	c.s.dest.kind.again.push(c)
	e.setTimer(c, c.s.giveUp)
}

// pause has c sent again after a while.
func (e *Engine) pause(c *Call, until time.Duration) {
	e.leaveWindow(c)
	e.sendNoMore(c)
	if c.s.phase == phaseResend {
		c.s.dest.kind.again.remove(c)
	}
	c.s.phase = phasePaused
	e.setTimer(c, until)
}

// backOff is the n-th pause, from 10 ms doubling up to limit.
func backOff(n int, limit time.Duration) time.Duration {
	return min(limit, 10*time.Millisecond<<min(n, 20))
}

// watchWriter ends what waits to be sent when the transport has not taken
// a datagram for too long: nothing waits for ever.
func (e *Engine) watchWriter(now time.Duration, ended *callList) {
	if !e.sending || e.stalled {
		return
	}
	limit := e.sendBegan + e.stallAfter()
	if now < limit {
		e.armed = min(e.armed, limit)
		return
	}
	e.stalled = true
	e.endWaiting(now, e.stallError(), ended)
}

// stallAfter is how long a transport may take for a datagram: as long as a whole
// call may last, but a second, for a short timeout is about answers.
func (e *Engine) stallAfter() time.Duration {
	return max(e.opt.Timeout*time.Duration(e.opt.Retries+1), time.Second)
}

func (e *Engine) stallError() error {
	return fmt.Errorf("%w before it could be sent: the transport has taken nothing for %v; see whether the device or simulator is stuck", ErrTimeout, e.stallAfter())
}
