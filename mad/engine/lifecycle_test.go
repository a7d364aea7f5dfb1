package engine

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"fabsh/mad"
)

// TestCancel ends calls in each of the states a call can be in.
func TestCancel(t *testing.T) {
	why := errors.New("interrupted")
	for _, test := range []struct {
		name     string
		at       time.Duration
		call     int // of 30 to one destination; 8 are admitted
		attempts int
		peer     func(f *fakeTransport, d Datagram)
	}{
		{"held", 10 * ms, 29, 0, func(*fakeTransport, Datagram) {}},
		{"sent", 10 * ms, 0, 1, func(*fakeTransport, Datagram) {}},
		{"sent again", 1400 * ms, 0, 4, func(*fakeTransport, Datagram) {}},
		{"paused", 15 * ms, 0, 2, func(f *fakeTransport, d Datagram) { f.deliver(withStatus(respond(d), 1)) }},
		{"ready", 10 * ms, 7, 0, func(f *fakeTransport, d Datagram) { <-f.closing }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(newFake(test.peer), Options{})
				w := waiter{make(chan *Call, 100)}
				var calls []*Call
				for range 30 {
					c := getNodeInfo(9)
					c.Notify = w
					calls = append(calls, c)
					e.Start(c)
				}
				time.Sleep(test.at) // virtual
				c := calls[test.call]
				e.Cancel(c, why)
				e.Cancel(c, io.EOF) // has ended: nothing happens
				select {
				case got := <-w.ended:
					if got != c {
						t.Error("another call has ended")
					}
				default:
					t.Error("Cancel returned before the call had ended")
				}
				if !errors.Is(c.Err, why) || c.Elapsed != test.at || c.Attempts != test.attempts {
					t.Errorf("got %v, %v, %d attempts; want %v, %v, %d", c.Err, c.Elapsed, c.Attempts, why, test.at, test.attempts)
				}
				// What was never sent is not in flight.
				if got := e.Stats().Cancelled; got != uint64(min(test.attempts, 1)) {
					t.Errorf("Stats.Cancelled = %d", got)
				}
				mustClose(t, e)
				if len(w.ended) != 29 {
					t.Errorf("%d others ended, want 29", len(w.ended))
				}
				for range 29 {
					if c := <-w.ended; !errors.Is(c.Err, ErrClosed) {
						t.Errorf("after Close: %v", c.Err)
					}
				}
				checkEmpty(t, e)
			})
		})
	}
}

// checkEmpty verifies that an engine without calls counts nothing as open.
func checkEmpty(t *testing.T, e *Engine) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls.flow.inFlight != 0 || e.calls.slots.free.len() != numSlots || len(e.calls.timers.heap) != 0 || e.calls.outbox.segments != (callList{}) {
		t.Errorf("%d in flight, %d slots free, %d timers, segments: %v", e.calls.flow.inFlight, e.calls.slots.free.len(), len(e.calls.timers.heap), e.calls.outbox.segments.head != nil)
	}
	for i := range e.calls.flow.classes {
		if w := &e.calls.flow.classes[i]; w.inFlight != 0 || w.ready != (callList{}) || w.again != (callList{}) {
			t.Errorf("kind %d: %d in flight, ready: %v, again: %v", i, w.inFlight, w.ready.head != nil, w.again.head != nil)
		}
	}
	for _, d := range e.calls.flow.dests {
		if d.open != 0 || d.held != (callList{}) {
			t.Errorf("destination %v: %d open, held: %v", d.key.lid, d.open, d.held.head != nil)
		}
	}
}

// TestDoCancelled: when ctx ends, Do returns at once with its cause, whatever
// the calls wait for.
func TestDoCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			if d.LID%2 == 0 {
				f.deliver(respond(d))
			}
		}), Options{})
		defer mustClose(t, e)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 95*ms, io.ErrUnexpectedEOF)
		defer cancel()
		var calls []*Call
		for i := range 1000 {
			calls = append(calls, getNodeInfo(mad.LID(i+1)))
		}
		var before uint64
		begin := time.Now()
		time.AfterFunc(94*ms, func() { before = e.Stats().Sent })
		if err := e.Do(ctx, calls...); err != io.ErrUnexpectedEOF || time.Since(begin) != 95*ms {
			t.Errorf("Do: %v after %v", err, time.Since(begin))
		}
		var kinds [2]int
		for i, c := range calls {
			switch {
			case c.Err == nil && c.To.LID%2 == 0:
				kinds[0]++
			case errors.Is(c.Err, io.ErrUnexpectedEOF):
				kinds[1]++
			default:
				t.Errorf("call %d: %v", i, c.Err)
			}
		}
		if kinds[0] == 0 || kinds[1] < 500 {
			t.Errorf("%v answered and cancelled", kinds)
		}
		synctest.Wait()
		sent := e.Stats().Sent
		if sent != before {
			t.Errorf("%d were sent when all were to end", sent-before)
		}
		if err := e.Do(ctx, calls...); err != io.ErrUnexpectedEOF || e.Stats().Sent != sent {
			t.Errorf("Do with a context that has ended: %v, %d sent", err, e.Stats().Sent-sent)
		}
		for i, c := range calls {
			if !errors.Is(c.Err, io.ErrUnexpectedEOF) {
				t.Errorf("call %d: %v", i, c.Err)
			}
		}
		if err := e.Do(t.Context()); err != nil {
			t.Errorf("Do of nothing: %v", err)
		}
		checkEmpty(t, e)
	})
}

// TestClose: open calls end, nothing is left, and closing again is harmless.
func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := New(newFake(func(f *fakeTransport, d Datagram) {}), Options{Timeout: time.Hour})
	w := waiter{make(chan *Call, 100)}
	for i := range 100 {
		c := getNodeInfo(mad.LID(i%3 + 1))
		c.Notify = w
		e.Start(c)
	}
	mustClose(t, e)
	mustClose(t, e)
	if len(w.ended) != 100 {
		t.Fatalf("%d calls ended", len(w.ended))
	}
	c := getNodeInfo(1)
	c.Notify = w
	e.Start(c)
	for range 101 {
		if c := <-w.ended; !errors.Is(c.Err, ErrClosed) {
			t.Errorf("got %v", c.Err)
		}
	}
	if err := c.Err.Error(); err != "SubnGet(NodeInfo) to LID 1: transport closed" {
		t.Error(err)
	}
	checkEmpty(t, e)
}

// TestBroken: when the transport fails, every call ends with its error, and
// so do later ones.
func TestBroken(t *testing.T) {
	gone := errors.New("device removed")
	for _, test := range []struct {
		name    string
		onSend  func(d *Datagram) error
		onRecv  error
		err     error
		refused bool // the first alone
	}{
		{name: "send", onSend: func(*Datagram) error { return gone }, err: gone},
		{name: "receive", onRecv: gone, err: gone},
		{name: "one datagram refused", onSend: func(d *Datagram) error {
			if d.LID == 1 {
				return &SendError{gone}
			}
			return nil
		}, err: gone, refused: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(func(f *fakeTransport, d Datagram) {
					if test.refused {
						f.deliver(respond(d))
					}
				})
				f.sendErr = test.onSend
				e := New(f, Options{})
				defer mustClose(t, e)
				if test.onRecv != nil {
					time.AfterFunc(5*ms, func() { f.broken <- test.onRecv })
				}
				var calls []*Call
				for i := range 100 {
					calls = append(calls, getNodeInfo(mad.LID(i+1)))
				}
				e.Do(t.Context(), calls...)
				for i, c := range calls {
					if want := test.err; test.refused && i > 0 {
						if c.Err != nil {
							t.Errorf("call %d: %v", i, c.Err)
						}
					} else if !errors.Is(c.Err, want) || c.Elapsed > 5*ms {
						t.Errorf("call %d: %v after %v", i, c.Err, c.Elapsed)
					}
				}
				checkEmpty(t, e)
				if test.refused {
					return
				}
				again := getNodeInfo(1)
				e.Do(t.Context(), again)
				if !errors.Is(again.Err, gone) {
					t.Errorf("later call: %v", again.Err)
				}
			})
		})
	}
}

// TestCompleteStarts: Complete may start the same call again, thousands of
// times, and cancel others.
func TestCompleteStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }), Options{Window: 1})
		defer mustClose(t, e)
		done := make(chan bool)
		other := getNodeInfo(2)
		n := 0
		c := getNodeInfo(1)
		c.Notify = CompleterFunc(func(c *Call) {
			if n++; n == 10000 {
				e.Start(other)
				e.Cancel(other, io.EOF)
				close(done)
				return
			}
			c.MAD[mad.MethodOffset] = byte(mad.MethodGet)
			e.Start(c)
		})
		e.Start(c)
		<-done
		if !errors.Is(other.Err, io.EOF) {
			t.Errorf("the other: %v", other.Err)
		}
	})
}
