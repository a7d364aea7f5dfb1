package engine

import (
	"errors"
	"time"
)

// Cancel ends c now, unless it has ended: c.Err wraps cause. A late answer is
// counted and dropped. Where c is ending already, on another goroutine, Cancel
// does not wait for that.
func (e *Engine) Cancel(c *Call, cause error) {
	var ended callList
	e.mu.Lock()
	if c.s.phase != phaseIdle {
		if c.Attempts > 0 {
			e.stats.Cancelled++
		}
		e.end(c, e.now(), cause, &ended)
	}
	e.unlock()
	ended.complete()
}

// Close ends all open calls with ErrClosed, closes the transport and waits
// for the engine's goroutines; it must not be called from Complete.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.fail(ErrClosed)
	close(e.stop)
	err := e.t.Close()
	e.done.Wait()
	return err
}

// fail ends all calls, for the transport is gone.
func (e *Engine) fail(err error) {
	var ended callList
	e.mu.Lock()
	if e.err == nil {
		e.err = err
		e.endAll(err, &ended)
		for _, l := range e.listeners {
			l.tell()
		}
		if e.idle {
			e.idle = false
			e.wake <- struct{}{}
		}
	}
	e.mu.Unlock()
	ended.complete()
}

// Halt ends all open calls now, and later ones as they start, with cause.
// Halt(nil) lets calls through again.
func (e *Engine) Halt(cause error) {
	var ended callList
	e.mu.Lock()
	switch {
	case cause != nil && e.halted == nil:
		close(e.halt)
	case cause == nil && e.halted != nil:
		e.halt = make(chan struct{})
	}
	e.halted = cause
	if cause != nil {
		e.endAll(cause, &ended)
	}
	e.unlock()
	ended.complete()
}

// Halted is closed by Halt; the cause is nil until then.
func (e *Engine) Halted() (halted <-chan struct{}, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.halt, e.halted
}

// endAll ends all calls.
func (e *Engine) endAll(err error, ended *callList) {
	now := e.now()
	for i := range e.slots {
		if c := e.slots[i].call; c != nil {
			e.end(c, now, err, ended)
		}
	}
	e.endWaiting(now, err, ended)
}

// endWaiting ends all calls that were never sent.
func (e *Engine) endWaiting(now time.Duration, err error, ended *callList) {
	for _, d := range e.dests {
		for d.held.head != nil {
			e.end(d.held.head, now, err, ended)
		}
	}
	for i := range e.windows {
		for e.windows[i].ready.head != nil {
			e.end(e.windows[i].ready.head, now, err, ended)
		}
	}
}

// end takes c out of all that the engine keeps. The caller completes what is
// in ended when it no longer holds the lock.
func (e *Engine) end(c *Call, now time.Duration, err error, ended *callList) {
	d := c.s.dest
	switch c.s.phase {
	case phaseHeld:
		d.held.remove(c)
	case phaseReady:
		d.kind.ready.remove(c)
	default:
		if c.s.phase == phaseResend {
			d.kind.again.remove(c)
		}
		if c.s.rx != nil || c.s.tx != nil {
			e.breakTransfer(c, err)
		}
		e.sendNoMore(c)
		e.leaveWindow(c)
		e.timers.remove(c)
		e.closeSlot(c, err == nil)
	}
	e.discharge(c)
	if err != nil && errors.Is(err, ErrTimeout) {
		e.stats.TimedOut++
		e.forgetRedirect(c)
	}
	c.Elapsed = now - c.s.started
	c.Err = newError(c, err)
	c.s = callState{}
	ended.push(c)
}

// complete tells of the end of all calls in l, and empties it.
func (l *callList) complete() {
	for c := l.pop(); c != nil; c = l.pop() {
		c.complete()
	}
}

func (c *Call) complete() {
	if c.Notify != nil {
		c.Notify.Complete(c)
	}
}
