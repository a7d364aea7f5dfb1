package engine

import (
	"cmp"
	"sync"
)

// lifecycle is whether the engine accepts calls. Engine.mu guards the first four.
type lifecycle struct {
	err        error         // fatal: the transport has failed, or was closed
	halted     error         // why no calls are accepted until Halt(nil)
	halt       chan struct{} // closed while halted
	closed     bool          // Close was called
	stop       chan struct{} // closed by Close
	goroutines sync.WaitGroup
}

func (l *lifecycle) init() {
	l.halt = make(chan struct{})
	l.stop = make(chan struct{})
}

// refusal returns why no call is accepted, or nil.
func (l *lifecycle) refusal() error { return cmp.Or(l.err, l.halted) }

// setHalted halts, or with nil resumes.
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
// counted and dropped. If c is already ending on another goroutine, Cancel does not
// wait for that.
func (e *Engine) Cancel(c *Call, cause error) {
	e.mu.Lock()
	if c.s.phase != phaseIdle {
		if c.Attempts > 0 {
			e.calls.counts.Cancelled++
		}
		e.calls.end(c, e.calls.timers.now(), cause)
	}
	e.unlock()
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

// fail ends all calls with err, which is fatal.
func (e *Engine) fail(err error) {
	e.mu.Lock()
	if e.life.err == nil {
		e.life.err = err
		e.calls.endAll(e.calls.timers.now(), err)
		e.listeners.fail(err)
		if e.sender.state == sendIdle {
			e.sender.state = sendChoosing
			e.sender.wake <- struct{}{}
		}
	}
	e.unlock()
}

// Halt ends all open calls now, and later ones as they start, with cause.
// Halt(nil) accepts calls again.
func (e *Engine) Halt(cause error) {
	e.mu.Lock()
	e.life.setHalted(cause)
	if cause != nil {
		e.calls.endAll(e.calls.timers.now(), cause)
	}
	e.unlock()
}

// Halted returns a channel that Halt closes, and the cause of the Halt, or nil.
func (e *Engine) Halted() (halted <-chan struct{}, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life.halt, e.life.halted
}

// Failed returns why no call will be answered again: the transport has failed, or was
// closed. Otherwise it returns nil.
func (e *Engine) Failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life.err
}
