package engine

import (
	"cmp"
	"errors"
	"sync"
	"time"
)

// lifecycle is whether the engine takes calls. Engine.mu guards the first four.
type lifecycle struct {
	err        error         // fatal: the transport has failed, or was closed
	halted     error         // why no calls are taken until Halt(nil)
	halt       chan struct{} // closed while halted
	closed     bool          // Close was called
	stop       chan struct{} // closed by Close
	goroutines sync.WaitGroup
}

func (l *lifecycle) init() {
	l.halt = make(chan struct{})
	l.stop = make(chan struct{})
}

// refusal is why no call is taken; nil: calls are taken.
func (l *lifecycle) refusal() error { return cmp.Or(l.err, l.halted) }

// setHalted halts, or with nil goes on.
func (l *lifecycle) setHalted(cause error) {
	switch {
	case cause != nil && l.halted == nil:
		close(l.halt)
	case cause == nil && l.halted != nil:
		l.halt = make(chan struct{})
	}
	l.halted = cause
}

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
	closed := e.life.closed
	e.life.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.fail(ErrClosed)
	close(e.life.stop)
	err := e.transport.Close()
	e.life.goroutines.Wait()
	return err
}

// fail ends all calls, for err is fatal.
func (e *Engine) fail(err error) {
	var ended callList
	e.mu.Lock()
	if e.life.err == nil {
		e.life.err = err
		e.endAll(err, &ended)
		e.listeners.tell()
		if e.writer.idle {
			e.writer.idle = false
			e.writer.wake <- struct{}{}
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
	e.life.setHalted(cause)
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
	return e.life.halt, e.life.halted
}

// Failed is why no call will ever be answered again: the transport has failed, or
// was closed. Nil: neither.
func (e *Engine) Failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life.err
}

// endAll ends all calls.
func (e *Engine) endAll(err error, ended *callList) {
	now := e.now()
	for i := range e.flow.slots.table {
		if c := e.flow.slots.table[i].call; c != nil {
			e.end(c, now, err, ended)
		}
	}
	e.endUnsent(now, err, ended)
}

// endUnsent ends all calls that were never sent.
func (e *Engine) endUnsent(now time.Duration, err error, ended *callList) {
	for _, d := range e.flow.dests {
		for d.held.head != nil {
			e.end(d.held.head, now, err, ended)
		}
	}
	for i := range e.flow.classes {
		for e.flow.classes[i].ready.head != nil {
			e.end(e.flow.classes[i].ready.head, now, err, ended)
		}
	}
}

// end takes c out of all that the engine keeps. The caller completes what is
// in ended when it no longer holds the lock.
func (e *Engine) end(c *Call, now time.Duration, err error, ended *callList) {
	wasSent := c.s.phase != phaseHeld && c.s.phase != phaseReady
	e.flow.dequeue(c)
	if wasSent {
		if c.s.rx != nil || c.s.tx != nil {
			e.abortTransfer(c, err)
		}
		e.writer.dropSegments(c)
		e.flow.leave(c)
		e.timers.remove(c)
		e.flow.slots.close(c, err == nil)
	}
	e.flow.discharge(c)
	e.flow.release(c.s.dest)
	if err != nil && errors.Is(err, ErrTimeout) {
		e.stats.TimedOut++
		e.redirects.forget(c)
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
	if o := c.overlay; o != nil {
		c.overlay = nil
		if err := o.Answer(c); err != nil {
			c.Err = c.failure(err)
		}
	}
	if c.Notify != nil {
		c.Notify.Complete(c)
	}
}
