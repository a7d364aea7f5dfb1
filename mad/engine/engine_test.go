package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
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

// busyTransport is behind until a time.
type busyTransport struct {
	*fakeTransport
	until time.Time
}

func (b *busyTransport) Behind() bool { return time.Now().Before(b.until) }

// TestBehind: while a transport is behind, no request is sent again or ends; then each has its full
// time.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sent atomic.Int64
		b := &busyTransport{newFake(func(f *fakeTransport, d Datagram) {
			if sent.Add(1); d.LID == 1 { // after 20 s
				time.AfterFunc(20*time.Second, func() { f.deliver(respond(d)) })
			}
		}), begin.Add(30 * time.Second)}
		e := New(b, Options{Timeout: 100 * ms, Retries: 2})
		defer mustClose(t, e)
		answered, lost := getNodeInfo(1), getNodeInfo(2)
		time.AfterFunc(29*time.Second, func() {
			if n := sent.Load(); n != 2 {
				t.Errorf("%d datagrams in the first 29 s, want 2", n)
			}
		})
		if err := e.Do(t.Context(), answered, lost); err != nil {
			t.Error(err)
		}
		if answered.Err != nil || !errors.Is(lost.Err, ErrTimeout) || lost.Attempts != 3 {
			t.Errorf("%v; %v after %d attempts", answered.Err, lost.Err, lost.Attempts)
		}
		if end := time.Since(begin); end < 30*time.Second || end > 31*time.Second {
			t.Errorf("the request without an answer ended after %v", end)
		}
	})
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

// asWritten is the base header of m as this program writes it, by the parts that
// say what is asked; with the route of an SMP that has one.
func asWritten(m []byte) []byte {
	again := bytes.Clone(m)
	h := mad.ParseHeader(m)
	h.Put(again)
	again[mad.StatusOffset], again[mad.StatusOffset+1] = 0, 0
	again[mad.HopPointerOffset], again[mad.HopCountOffset] = 0, 0
	if h.Class == mad.ClassSubnDirected {
		mad.SetRoute(again, mad.RouteOf(m))
		if source := mad.RouteSourceOf(m); source != 0 && source <= mad.MaxUnicastLID { // of a combined route
			mad.SetRouteSource(again, source)
		}
	}
	return again[:mad.SMPDrDLIDOffset+2]
}

// FuzzReadOnly: whatever a script makes of a MAD, without permission to write
// only a well-formed request is let through that is known to read.
func FuzzReadOnly(f *testing.F) {
	seed := func(change func(c *Call)) {
		var c Call
		c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		c.SetRoute(mad.DirectedRoute{0, 1})
		change(&c)
		f.Add(c.MAD[:])
	}
	for at := range mad.HeaderSize {
		seed(func(c *Call) { c.MAD[at] ^= 0x81 })
	}
	seed(func(c *Call) {})
	seed(func(c *Call) { c.MAD[mad.SMPDrSLIDOffset] = 0 })
	seed(func(c *Call) { c.MAD[mad.SMPDrDLIDOffset+1] = 0 })
	seed(func(c *Call) { c.MAD[mad.HopCountOffset] = 64 })
	seed(func(c *Call) { c.SetLID(3) })
	f.Fuzz(func(t *testing.T, m []byte) {
		var c Call
		copy(c.MAD[:], m)
		var e Engine
		effect, err := e.check(&c)
		keyOf(&c) // counts it to a destination, whatever the route
		h := c.Header()
		switch {
		case err != nil:
			return
		case effect == mad.EffectFabric, mad.EffectOf(h.Class, h.ClassVersion, h.Method, h.Attribute) == mad.EffectFabric:
			t.Fatalf("%x may change the fabric", c.MAD[:64])
		case !bytes.HasPrefix(c.MAD[:], asWritten(c.MAD[:])):
			t.Fatalf("%x is malformed, and passes for a read", c.MAD[:64])
		}
	})
}

// TestOnlyReads: with OnlyReads, only requests that read pass, and no Reports are received.
func TestOnlyReads(t *testing.T) {
	e := &Engine{options: Options{OnlyReads: true, Write: true}}
	for name, x := range map[string]struct {
		put  func(c *Call)
		want error
	}{
		"a Get": {func(c *Call) {
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(mad.DirectedRoute{0, 1})
		}, nil},
		"a Set": {func(c *Call) {
			c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, nil)
			c.SetRoute(mad.DirectedRoute{0, 1})
		}, ErrOnlyReads},
		"a subscription": {func(c *Call) {
			c.PutSA(mad.MethodSet, mad.AttrInformInfo.ID, 0, 0, nil)
			c.SetLID(3)
			c.Subscribes = true
		}, ErrOnlyReads},
	} {
		var c Call
		x.put(&c)
		if _, err := e.check(&c); err != x.want {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	if _, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err != ErrOnlyReads {
		t.Errorf("Listen: %v", err)
	}
}

// TestRegisterWrites: what writes a register is refused, and nothing is sent, with
// permission to write too; a query goes out without it.
func TestRegisterWrites(t *testing.T) {
	query := func(c *Call, change func(op *mad.RegisterOperation)) {
		c.PutSMP(mad.MethodGet, mad.AttrMlnxAccessRegister.ID, 0, nil)
		c.SetLID(3)
		mad.PutRegister(c.MAD[:], mad.LayoutMTMP, nil)
		at := mad.AttrMlnxAccessRegister.Offset()
		var op mad.RegisterOperation
		op.Decode(c.MAD[at:])
		change(&op)
		op.Encode(c.MAD[at:])
	}
	clearing := func(c *Call) {
		c.PutMAD(mad.Header{Class: mad.ClassVendor0A, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrAccessRegister.ID, Modifier: uint32(mad.LayoutPPCNT.Register)}, nil)
		data := make([]byte, mad.LayoutPPCNT.Size)
		(&mad.PPCNT{Clr: true}).Encode(data)
		mad.PutRegister(c.MAD[:], mad.LayoutPPCNT, data)
	}
	for _, write := range []bool{false, true} {
		e := &Engine{options: Options{Write: write}}
		var c Call
		query(&c, func(*mad.RegisterOperation) {})
		c.announced = true
		if effect, err := e.check(&c); err != nil || effect != mad.EffectRead {
			t.Errorf("write %v: a query: %v, %v", write, effect, err)
		}
		query(&c, func(op *mad.RegisterOperation) { op.RegisterMethod = mad.RegisterMethodWrite })
		if _, err := e.check(&c); !errors.Is(err, ErrRegister) {
			t.Errorf("write %v: a write in a Get: %v", write, err)
		}
		c.MAD[mad.MethodOffset] = byte(mad.MethodSet)
		if _, err := e.check(&c); !errors.Is(err, ErrRegister) {
			t.Errorf("write %v: a write in a Set: %v", write, err)
		}
		clearing(&c)
		if _, err := e.check(&c); !errors.Is(err, ErrRegister) {
			t.Errorf("write %v: a Get that clears: %v", write, err)
		}
	}
}

// TestSubscribesReadOnly: a read-only engine subscribes only for who ends it with
// the session, and lets nothing else through on that account.
func TestSubscribesReadOnly(t *testing.T) {
	for _, test := range []struct {
		name       string
		attr       mad.AttributeID
		method     mad.Method
		version    uint8
		subscribes bool
		sent       bool
	}{
		{"raw", mad.AttrInformInfo.ID, mad.MethodSet, 2, false, false},
		{"a subscriber's", mad.AttrInformInfo.ID, mad.MethodSet, 2, true, true},
		{"raw, of version 1", mad.AttrInformInfo.ID, mad.MethodInform, 1, false, false},
		{"a subscriber's, of version 1", mad.AttrInformInfo.ID, mad.MethodInform, 1, true, false},
		{"another attribute", mad.AttrServiceRecord.ID, mad.MethodSet, 2, true, false},
		{"another method", mad.AttrInformInfo.ID, mad.MethodDelete, 2, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := false
			e := New(newFake(func(f *fakeTransport, d Datagram) { sent = true; f.deliver(respond(d)) }), Options{})
			defer mustClose(t, e)
			c := &Call{Subscribes: test.subscribes}
			c.PutSA(test.method, test.attr, 0, 0, nil)
			c.MAD[mad.ClassVersionOffset] = test.version
			c.SetLID(7)
			e.Do(t.Context(), c)
			if refused := errors.Is(c.Err, ErrReadOnly); sent != test.sent || refused == test.sent {
				t.Errorf("%s: sent %v, %v", test.name, sent, c.Err)
			}
		})
	}
}
