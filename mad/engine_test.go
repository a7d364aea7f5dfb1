package mad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

const ms = time.Millisecond

// TestRetryLadder states to the millisecond when a request is sent, and how
// the call ends, for whatever a peer may do.
func TestRetryLadder(t *testing.T) {
	silent := func(f *fakeTransport, d Datagram) {}
	undelivered := func(f *fakeTransport, d Datagram) {
		d.Undelivered = true
		f.deliver(d)
	}
	busy := func(f *fakeTransport, d Datagram) { f.deliver(withStatus(respond(d), 1)) }
	// nth has a peer for each attempt; the last stands for all that follow.
	nth := func(peers ...func(*fakeTransport, Datagram)) func(*fakeTransport, Datagram) {
		i := 0
		return func(f *fakeTransport, d Datagram) {
			p := peers[min(i, len(peers)-1)]
			i++
			p(f, d)
		}
	}
	after := func(delay time.Duration, peer func(*fakeTransport, Datagram)) func(*fakeTransport, Datagram) {
		return func(f *fakeTransport, d Datagram) { time.AfterFunc(delay, func() { peer(f, d) }) }
	}
	echo := func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }

	for _, test := range []struct {
		name    string
		opt     Options
		call    func(c *Call)
		peer    func(*fakeTransport, Datagram)
		sent    []time.Duration
		elapsed time.Duration
		err     string
	}{
		{name: "answered", peer: echo, sent: []time.Duration{0}},
		{
			name: "silent", peer: silent,
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts",
		},
		{
			name: "no retries", peer: silent, opt: Options{Retries: -1, Timeout: 300 * ms},
			sent: []time.Duration{0}, elapsed: 300 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 1 attempt",
		},
		{
			name: "the call's own timeout and retries", peer: silent,
			call: func(c *Call) { c.Timeout, c.Retries = 200*ms, 3 },
			sent: []time.Duration{0, 200 * ms, 400 * ms, 600 * ms}, elapsed: 800 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 4 attempts",
		},
		{
			name: "the call wants no retries", peer: silent, call: func(c *Call) { c.Retries = -1 },
			sent: []time.Duration{0}, elapsed: 1000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 1 attempt",
		},
		{
			name: "second attempt answered", peer: nth(silent, after(5*ms, echo)),
			sent: []time.Duration{0, 1000 * ms}, elapsed: 1005 * ms,
		},
		{
			name: "answer to the first attempt after the second was sent", peer: nth(after(1200*ms, echo), silent),
			sent: []time.Duration{0, 1000 * ms}, elapsed: 1200 * ms,
		},
		{
			name: "answer one millisecond late", peer: nth(silent, silent, after(1001*ms, echo)),
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts",
		},
		{
			name: "undelivered at once, always", peer: undelivered,
			sent: []time.Duration{0, 10 * ms, 30 * ms}, elapsed: 30 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts",
		},
		{
			name: "undelivered at once, then answered", peer: nth(undelivered, echo),
			sent: []time.Duration{0, 10 * ms}, elapsed: 10 * ms,
		},
		{
			name: "undelivered just before the timeout", peer: after(998*ms, undelivered),
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 2998 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts",
		},
		{
			name: "undelivered after the timeout concerns the attempt before", peer: after(1010*ms, undelivered),
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts",
		},
		{
			name: "an undelivered Set lasts its full timeouts", peer: undelivered, opt: Options{Write: true},
			call: func(c *Call) { c.MAD[offMethod] = byte(MethodSet) },
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnSet(PortInfo 3) to LID 17: timed out after 3 attempts",
		},
		{
			name: "busy twice", peer: nth(busy, busy, echo),
			sent: []time.Duration{0, 10 * ms, 30 * ms}, elapsed: 30 * ms,
		},
		{
			name: "busy always", peer: busy,
			sent:    []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 150 * ms, 310 * ms, 630 * ms, 1270 * ms, 2270 * ms, 3270 * ms},
			elapsed: 3270 * ms,
			err:     "SubnGet(PortInfo 3) to LID 17: busy (status 0x0001)",
		},
		{
			name: "busy costs no attempt", peer: nth(busy, silent, busy, silent, silent),
			sent:    []time.Duration{0, 10 * ms, 1010 * ms, 1030 * ms, 2030 * ms},
			elapsed: 3030 * ms,
			err:     "SubnGet(PortInfo 3) to LID 17: timed out after 5 attempts",
		},
		{
			name: "read-only", peer: echo, call: func(c *Call) { c.MAD[offMethod] = byte(MethodSet) },
			err: "SubnSet(PortInfo 3) to LID 17: " + ErrReadOnly.Error(),
		},
		{
			name: "status", peer: func(f *fakeTransport, d Datagram) { f.deliver(withStatus(respond(d), 0x1c)) },
			call: func(c *Call) { c.SetRoute(DirectedRoute{0, 1, 3}) },
			sent: []time.Duration{0},
			err:  "SubnGet(PortInfo 3) to route 0,1,3: invalid attribute value (status 0x001c)",
		},
		{
			name: "redirected", call: func(c *Call) {
				c.PutPerf(MethodGet, 1, 0, nil)
				c.SetLID(9)
			},
			peer: func(f *fakeTransport, d Datagram) {
				d = withStatus(respond(d), 2)
				binary.BigEndian.PutUint16(d.MAD[PerfDataOffset+28:], 44)
				f.deliver(d)
			},
			sent: []time.Duration{0},
			err:  "PerfGet(ClassPortInfo) to LID 9: redirection required (status 0x0002): ask LID 44 instead",
		},
		{
			name: "no answer is expected of Send", peer: silent, opt: Options{Write: true},
			call: func(c *Call) { c.MAD[offMethod] = byte(MethodSend) },
			sent: []time.Duration{0},
		},
		{
			name: "too many hops", peer: silent,
			call: func(c *Call) { c.SetRoute(make(DirectedRoute, 65)) },
			err:  "directed route of 64 hops, more than 63",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var sent []time.Duration
				tids := map[uint64]bool{}
				e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
					sent = append(sent, time.Since(begin))
					tid := binary.BigEndian.Uint64(d.MAD[offTID:])
					if tids[tid] {
						t.Errorf("transaction ID %#x is used again", tid)
					}
					tids[tid] = true
					test.peer(f, d)
				}), test.opt)
				defer mustClose(t, e)
				var c Call
				c.PutSMP(MethodGet, 0x15, 3, nil)
				c.SetLID(17)
				if test.call != nil {
					test.call(&c)
				}
				if err := e.Do(t.Context(), &c); err != nil {
					t.Fatal(err)
				}
				text := ""
				if c.Err != nil {
					text = c.Err.Error()
					if test.name == "too many hops" {
						text = errors.Unwrap(c.Err).Error()
					}
				}
				if text != test.err {
					t.Errorf("error\n got %q\nwant %q", text, test.err)
				}
				if timedOut := errors.Is(c.Err, ErrTimeout); timedOut != isTimeout(c.Err) {
					t.Errorf("Timeout() disagrees with errors.Is(_, ErrTimeout): %v", timedOut)
				}
				if diff := cmp.Diff(test.sent, sent); diff != "" {
					t.Errorf("sent at (-want +got):\n%s", diff)
				}
				if c.Elapsed != test.elapsed || c.Attempts != len(test.sent) {
					t.Errorf("elapsed %v, %d attempts; want %v, %d", c.Elapsed, c.Attempts, test.elapsed, len(test.sent))
				}
				if got := e.Stats().Sent; got != uint64(len(test.sent)) {
					t.Errorf("Stats.Sent = %d, want %d", got, len(test.sent))
				}
			})
		})
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// TestMatching: an answer counts only where transaction ID, class and
// attribute are those asked for, and only once.
func TestMatching(t *testing.T) {
	change := func(offset int, bits byte) func(d Datagram) []Datagram {
		return func(d Datagram) []Datagram {
			d = respond(d)
			d.MAD[offset] ^= bits
			return []Datagram{d}
		}
	}
	timedOut := Stats{Sent: 1, TimedOut: 1}
	for _, test := range []struct {
		name    string
		answers func(d Datagram) []Datagram
		want    func(s *Stats)
		ok      bool
	}{
		{"upper half of the transaction ID", change(offTID, 0xff), func(s *Stats) {}, true},
		{"other use of the slot, earlier", change(offTID+4, 0x00), func(s *Stats) {}, true},
		{"use to come", change(offTID+5, 0xff), func(s *Stats) { s.Foreign = 1 }, false},
		{"other slot", change(offTID+7, 0x40), func(s *Stats) { s.Foreign = 1 }, false},
		{"directed for LID-routed", change(offClass, 0x80), func(s *Stats) { s.Foreign = 1 }, false},
		{"attribute", change(offAttribute+1, 0x01), func(s *Stats) { s.Foreign = 1 }, false},
		{"request", change(offMethod, byte(Response)), func(s *Stats) { s.Unsolicited = 1 }, false},
		{"short", func(d Datagram) []Datagram {
			d = respond(d)
			d.MAD = d.MAD[:HeaderSize-1]
			return []Datagram{d}
		}, func(s *Stats) { s.Foreign = 1 }, false},
		{"nothing", func(d Datagram) []Datagram { return []Datagram{{}} }, func(s *Stats) { s.Foreign = 1 }, false},
		{"twice", func(d Datagram) []Datagram { return []Datagram{respond(d), respond(d)} },
			func(s *Stats) { s.Duplicate = 1 }, true},
		{"foreign, then right", func(d Datagram) []Datagram {
			f := respond(d)
			f.MAD[offClass] = byte(ClassPerf)
			return []Datagram{f, respond(d)}
		}, func(s *Stats) { s.Foreign = 1 }, true},
		{"undelivered of nobody", func(d Datagram) []Datagram {
			u := d
			u.MAD = append([]byte(nil), d.MAD[:HeaderSize]...)
			u.MAD[offTID+7]++
			u.Undelivered = true
			return []Datagram{u, respond(d)}
		}, func(s *Stats) { s.Undelivered = 1 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
					for _, a := range test.answers(d) {
						f.deliver(a)
					}
				}), Options{Retries: -1})
				defer mustClose(t, e)
				c := getNodeInfo(5)
				e.Do(t.Context(), c)
				synctest.Wait()
				want := timedOut
				if test.ok {
					want = Stats{Sent: 1, Answered: 1}
				}
				test.want(&want)
				if diff := cmp.Diff(want, e.Stats()); diff != "" {
					t.Errorf("stats (-want +got):\n%s", diff)
				}
				if test.ok != (c.Err == nil) {
					t.Errorf("error %v", c.Err)
				}
			})
		})
	}
}

// TestLate: what comes after the end is counted as what it is.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
			time.AfterFunc(5*time.Second, func() { f.deliver(respond(d)) })
		}), Options{})
		defer mustClose(t, e)
		e.Do(t.Context(), getNodeInfo(5))
		time.Sleep(10 * time.Second) // virtual
		want := Stats{Sent: 3, Retried: 2, TimedOut: 1, Late: 3}
		if diff := cmp.Diff(want, e.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

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
		{"sent again", 1500 * ms, 0, 2, func(*fakeTransport, Datagram) {}},
		{"paused", 15 * ms, 0, 2, func(f *fakeTransport, d Datagram) { f.deliver(withStatus(respond(d), 1)) }},
		{"ready", 10 * ms, 7, 0, func(f *fakeTransport, d Datagram) { <-f.closing }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := NewEngine(newFake(test.peer), Options{})
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
				if got := e.Stats().Cancelled; got != 1 {
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
	if e.inFlight != 0 || e.free.len() != numSlots || len(e.timers) != 0 || e.again != (callList{}) {
		t.Errorf("%d in flight, %d slots free, %d timers, %v to be sent again", e.inFlight, e.free.len(), len(e.timers), e.again.head != nil)
	}
	for i := range e.windows {
		if w := &e.windows[i]; w.inFlight != 0 || w.ready != (callList{}) {
			t.Errorf("kind %d: %d in flight, ready: %v", i, w.inFlight, w.ready.head != nil)
		}
	}
	for _, d := range e.dests {
		if d.open != 0 || d.held != (callList{}) {
			t.Errorf("destination %v: %d open, held: %v", d.key.lid, d.open, d.held.head != nil)
		}
	}
}

// TestDoCancelled: when ctx ends, Do returns at once with its cause, whatever
// the calls wait for.
func TestDoCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
			if d.LID%2 == 0 {
				f.deliver(respond(d))
			}
		}), Options{})
		defer mustClose(t, e)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 90*ms, io.ErrUnexpectedEOF)
		defer cancel()
		var calls []*Call
		for i := range 1000 {
			calls = append(calls, getNodeInfo(LID(i+1)))
		}
		var before uint64
		begin := time.Now()
		time.AfterFunc(89*ms, func() { before = e.Stats().Sent })
		if err := e.Do(ctx, calls...); err != io.ErrUnexpectedEOF || time.Since(begin) != 90*ms {
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
				e := NewEngine(f, Options{})
				defer mustClose(t, e)
				if test.onRecv != nil {
					time.AfterFunc(5*ms, func() { f.broken <- test.onRecv })
				}
				var calls []*Call
				for i := range 100 {
					calls = append(calls, getNodeInfo(LID(i+1)))
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

// TestStalled: a transport that takes nothing more makes no call wait for ever.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resume := make(chan bool)
		e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
			if d.LID == 3 {
				<-resume
			}
			f.deliver(respond(d))
		}), Options{})
		defer mustClose(t, e)
		var calls []*Call
		for i := range 10 {
			calls = append(calls, getNodeInfo(LID(i+1)))
		}
		do := func(want time.Duration) {
			t.Helper()
			begin := time.Now()
			for _, c := range calls {
				c.PutSMP(MethodGet, 0x11, 0, nil)
			}
			e.Do(t.Context(), calls...)
			if time.Since(begin) != want {
				t.Errorf("ended after %v, want %v", time.Since(begin), want)
			}
		}
		do(3 * time.Second)
		want := "SubnGet(NodeInfo) to LID 10: timed out before it could be sent, for the transport takes no datagrams"
		if calls[1].Err != nil || calls[9].Err == nil || calls[9].Err.Error() != want {
			t.Errorf("got  %v, %v\nwant nil, %s", calls[1].Err, calls[9].Err, want)
		}
		do(0) // still stalled
		if calls[0].Err == nil || !isTimeout(calls[0].Err) {
			t.Errorf("while stalled: %v", calls[0].Err)
		}
		resume <- true
		synctest.Wait()
		go func() { resume <- true }()
		do(0)
		for i, c := range calls {
			if c.Err != nil {
				t.Errorf("call %d after the stall: %v", i, c.Err)
			}
		}
		checkEmpty(t, e)
	})
}

// TestSlowWriter: while the writer is held up, calls that are to be sent again
// may be answered, cancelled, or told to wait.
func TestSlowWriter(t *testing.T) {
	for _, test := range []struct {
		name    string
		do      func(e *Engine, f *fakeTransport, c *Call, first Datagram) // at 1.2 s
		elapsed time.Duration
		sent    []time.Duration
		err     error
	}{
		{name: "nothing", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) {},
			elapsed: 1500 * ms, sent: []time.Duration{0, 1500 * ms}},
		{name: "answered", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) { f.deliver(respond(first)) },
			elapsed: 1200 * ms, sent: []time.Duration{0}},
		{name: "busy", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) {
			f.deliver(withStatus(respond(first), StatusBusy))
		}, elapsed: 1500 * ms, sent: []time.Duration{0, 1500 * ms}},
		{name: "busy for longer", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) {
			for range 7 {
				f.deliver(withStatus(respond(first), StatusBusy))
			}
		}, elapsed: 1840 * ms, sent: []time.Duration{0, 1840 * ms}},
		{name: "cancelled", do: func(e *Engine, f *fakeTransport, c *Call, first Datagram) { e.Cancel(c, io.EOF) },
			elapsed: 1200 * ms, sent: []time.Duration{0}, err: io.EOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var sent []time.Duration
				var first Datagram
				f := newFake(func(f *fakeTransport, d Datagram) {
					if d.LID == 2 {
						time.Sleep(1500 * ms) // virtual
						f.deliver(respond(d))
						return
					}
					f.mu.Lock()
					defer f.mu.Unlock()
					if sent = append(sent, time.Since(begin)); len(sent) > 1 {
						f.deliver(respond(d))
					}
					first = d
				})
				e := NewEngine(f, Options{})
				defer mustClose(t, e)
				c, slow := getNodeInfo(1), getNodeInfo(2)
				slow.Timeout = 10 * time.Second
				time.AfterFunc(1200*ms, func() {
					f.mu.Lock()
					defer f.mu.Unlock()
					test.do(e, f, c, first)
				})
				e.Do(t.Context(), c, slow)
				if !errors.Is(c.Err, test.err) || c.Elapsed != test.elapsed {
					t.Errorf("%v after %v; want %v after %v", c.Err, c.Elapsed, test.err, test.elapsed)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				if diff := cmp.Diff(test.sent, sent); diff != "" {
					t.Errorf("sent at (-want +got):\n%s", diff)
				}
				checkEmpty(t, e)
			})
		})
	}
}

// TestClose: open calls end, nothing is left, and closing again is harmless.
func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {}), Options{})
	w := waiter{make(chan *Call, 100)}
	for i := range 100 {
		c := getNodeInfo(LID(i%3 + 1))
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

// TestCompleteStarts: Complete may start the same call again, thousands of
// times, and cancel others.
func TestCompleteStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(newFake(func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }), Options{Window: 1})
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
			c.MAD[offMethod] = byte(MethodGet)
			e.Start(c)
		})
		e.Start(c)
		<-done
		if !errors.Is(other.Err, io.EOF) {
			t.Errorf("the other: %v", other.Err)
		}
	})
}

// TestFreshBuffer: nothing of an earlier answer goes out with a call's next
// request, and nothing of a long answer stays behind a short one.
func TestFreshBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent [][]byte
		e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
			sent = append(sent, slices.Clone(d.MAD))
			d = respond(d)
			for i := HeaderSize; i < Size; i++ {
				d.MAD[i] = 0xff
			}
			d.MAD = d.MAD[:len(d.MAD)-100*(len(sent)-1)]
			f.deliver(d)
		}), Options{})
		defer mustClose(t, e)
		var c Call
		for range 2 {
			c.PutSMP(MethodGet, 0x11, 7, []byte{1, 2})
			c.SetLID(4)
			c.MAD[200] = 9
			e.Do(t.Context(), &c)
		}
		want := slices.Repeat([]byte{0}, Size)
		copy(want, []byte{1, 1, 1, 1})
		want[offAttribute+1], want[offModifier+3] = 0x11, 7
		want[SMPDataOffset], want[SMPDataOffset+1], want[200] = 1, 2, 9
		for i, got := range sent {
			clear(got[offTID : offTID+8])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i, diff)
			}
		}
		if got := fmt.Sprint(c.MAD[155], c.MAD[156], c.MAD[200]); got != "255 0 0" {
			t.Errorf("around the end of a short answer: %s", got)
		}
	})
}
