package engine

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
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
	ladder := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 2500 * ms}

	for _, test := range []struct {
		name    string
		opt     Options
		call    func(c *Call)
		rtt     time.Duration // measured before
		peer    func(*fakeTransport, Datagram)
		sent    []time.Duration
		elapsed time.Duration
		err     string
	}{
		{name: "answered", peer: echo, sent: []time.Duration{0}},
		{
			name: "silent", peer: silent,
			sent: ladder, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 6 attempts in 3s",
		},
		{
			name: "RTT 80 ms", peer: silent, rtt: 80 * ms, // 4 deviations: 80/2*4
			sent: []time.Duration{0, 240 * ms, 720 * ms, 1680 * ms, 2680 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 5 attempts in 3s",
		},
		{
			name: "another would come too late", peer: silent, rtt: 90 * ms,
			sent: []time.Duration{0, 270 * ms, 810 * ms, 1810 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 4 attempts in 3s",
		},
		{
			name: "RTT longer than the timeout", peer: silent, rtt: 800 * ms,
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts in 3s",
		},
		{
			name: "timeout shorter than 100 ms", peer: silent, opt: Options{Timeout: 50 * ms},
			sent: []time.Duration{0, 50 * ms, 100 * ms}, elapsed: 150 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 3 attempts in 150ms",
		},
		{
			name: "no retries", peer: silent, opt: Options{Retries: -1, Timeout: 300 * ms},
			sent: []time.Duration{0}, elapsed: 300 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 1 attempt in 300ms",
		},
		{
			name: "the call's own timeout and retries", peer: silent,
			call: func(c *Call) { c.Timeout, c.Retries = 200*ms, 3 },
			sent: []time.Duration{0, 100 * ms, 300 * ms, 500 * ms, 700 * ms}, elapsed: 800 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 5 attempts in 800ms",
		},
		{
			name: "the call wants no retries", peer: silent, call: func(c *Call) { c.Retries = -1 },
			sent: []time.Duration{0}, elapsed: 1000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 1 attempt in 1s",
		},
		{
			name: "a Set gets full timeouts", peer: silent, opt: Options{Write: true}, rtt: 5 * ms,
			call: func(c *Call) { c.MAD[mad.MethodOffset] = byte(mad.MethodSet) },
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnSet(PortInfo 3) to LID 17: timed out after 3 attempts in 3s",
		},
		{
			name: "so does a subscription", peer: silent,
			call: func(c *Call) {
				c.PutSA(mad.MethodSet, mad.AttrInformInfo.ID, 0, 0, nil)
				c.Subscribes = true
				c.SetLID(1)
			},
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnAdmSet(InformInfo) to LID 1: timed out after 3 attempts in 3s",
		},
		{
			name: "so does what nobody knows", peer: silent, opt: Options{Write: true},
			call: func(c *Call) {
				c.put(mad.ClassVendorFirst, mad.MethodGet, 0x77, 0, nil)
				c.SetLID(1)
			},
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "Vendor(0x09)Get(attribute 0x0077) to LID 1: timed out after 3 attempts in 3s",
		},
		{
			name: "and a table", peer: silent,
			call: func(c *Call) {
				c.PutSA(mad.MethodGetTable, 0x11, 0, 0, nil)
				c.SetLID(1)
			},
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnAdmGetTable(NodeRecord) to LID 1: timed out after 3 attempts in 3s",
		},
		{
			name: "second attempt answered", peer: nth(silent, after(5*ms, echo)),
			sent: []time.Duration{0, 100 * ms}, elapsed: 105 * ms,
		},
		{
			name: "answer to the first attempt after others were sent", peer: nth(after(1200*ms, echo), silent),
			sent: ladder[:4], elapsed: 1200 * ms,
		},
		{
			name: "answer at the last moment", peer: after(2999*ms, echo),
			sent: ladder, elapsed: 2999 * ms,
		},
		{
			name: "answer one millisecond late", peer: after(3001*ms, echo),
			sent: ladder, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 6 attempts in 3s",
		},
		{
			name: "undelivered at once, always", peer: undelivered,
			sent: []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 150 * ms, 310 * ms}, elapsed: 310 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 6 attempts",
		},
		{
			name: "undelivered at once, no retries", peer: undelivered, opt: Options{Retries: -1},
			sent: []time.Duration{0},
			err:  "SubnGet(PortInfo 3) to LID 17: timed out after 1 attempt",
		},
		{
			name: "undelivered until time is over", peer: undelivered, opt: Options{Retries: 5, Timeout: 30 * ms},
			sent: []time.Duration{0, 10 * ms, 30 * ms, 60 * ms, 90 * ms, 120 * ms, 150 * ms}, elapsed: 180 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 7 attempts in 180ms",
		},
		{
			name: "undelivered at once, then answered", peer: nth(undelivered, echo),
			sent: []time.Duration{0, 10 * ms}, elapsed: 10 * ms,
		},
		{
			name: "undelivered before the next attempt", peer: nth(after(98*ms, undelivered), silent),
			sent: []time.Duration{0, 108 * ms, 208 * ms, 408 * ms, 808 * ms, 1608 * ms, 2608 * ms}, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 7 attempts in 3s",
		},
		{
			name: "undelivered after the next attempt", peer: after(1010*ms, undelivered),
			sent: ladder, elapsed: 3000 * ms,
			err: "SubnGet(PortInfo 3) to LID 17: timed out after 6 attempts in 3s",
		},
		{
			name: "an undelivered Set lasts its full timeouts", peer: undelivered, opt: Options{Write: true},
			call: func(c *Call) { c.MAD[mad.MethodOffset] = byte(mad.MethodSet) },
			sent: []time.Duration{0, 1000 * ms, 2000 * ms}, elapsed: 3000 * ms,
			err: "SubnSet(PortInfo 3) to LID 17: timed out after 3 attempts in 3s",
		},
		{
			name: "busy twice", peer: nth(busy, busy, echo),
			sent: []time.Duration{0, 10 * ms, 30 * ms}, elapsed: 30 * ms,
		},
		{
			name: "busy always", peer: busy,
			sent:    []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 150 * ms, 310 * ms, 630 * ms, 1270 * ms, 2270 * ms, 3270 * ms},
			elapsed: 3270 * ms,
			err:     "SubnGet(PortInfo 3) to LID 17: busy (status 0x0001) after 10 attempts",
		},
		{
			name: "busy costs no attempt", peer: nth(busy, silent, busy, silent, silent),
			sent:    []time.Duration{0, 10 * ms, 110 * ms, 130 * ms, 330 * ms, 730 * ms, 1530 * ms, 2530 * ms},
			elapsed: 3030 * ms,
			err:     "SubnGet(PortInfo 3) to LID 17: timed out after 8 attempts in 3s",
		},
		{
			name: "busy twice at once", peer: nth(func(f *fakeTransport, d Datagram) { busy(f, d); busy(f, d) }, silent),
			sent:    []time.Duration{0, 20 * ms, 120 * ms, 320 * ms, 720 * ms, 1520 * ms, 2520 * ms},
			elapsed: 3020 * ms,
			err:     "SubnGet(PortInfo 3) to LID 17: timed out after 7 attempts in 3s",
		},
		{
			name: "nor has a Set less time for it", peer: nth(busy, silent, busy, silent, silent), opt: Options{Write: true},
			call:    func(c *Call) { c.MAD[mad.MethodOffset] = byte(mad.MethodSet) },
			sent:    []time.Duration{0, 10 * ms, 1010 * ms, 1030 * ms, 2030 * ms},
			elapsed: 3030 * ms,
			err:     "SubnSet(PortInfo 3) to LID 17: timed out after 5 attempts in 3s",
		},
		{
			name: "read-only", peer: echo, call: func(c *Call) { c.MAD[mad.MethodOffset] = byte(mad.MethodSet) },
			err: "SubnSet(PortInfo 3) to LID 17: " + ErrReadOnly.Error(),
		},
		{
			name: "status", peer: func(f *fakeTransport, d Datagram) { f.deliver(withStatus(respond(d), 0x1c)) },
			call: func(c *Call) { c.SetRoute(mad.DirectedRoute{0, 1, 3}) },
			sent: []time.Duration{0},
			err:  "SubnGet(PortInfo 3) to route 0,1,3: invalid attribute value (status 0x001c)",
		},
		{
			name: "status of a Set", peer: func(f *fakeTransport, d Datagram) { f.deliver(withStatus(respond(d), 0x1c)) },
			call: func(c *Call) { c.MAD[mad.MethodOffset] = byte(mad.MethodSet) }, opt: Options{Write: true},
			sent: []time.Duration{0},
			err:  "SubnSet(PortInfo 3) to LID 17: invalid attribute value (status 0x001c)",
		},
		{
			name: "no answer is expected of Send", peer: silent, opt: Options{Write: true},
			call: func(c *Call) { c.MAD[mad.MethodOffset] = byte(mad.MethodSend) },
			sent: []time.Duration{0},
		},
		{
			name: "malformed, and so more than a read", peer: silent,
			call: func(c *Call) { c.MAD[mad.BaseVersionOffset] = 2 },
			err:  "SubnGet(PortInfo 3) to LID 17: " + ErrReadOnly.Error(),
		},
		{
			name: "malformed", peer: silent, opt: Options{Write: true, Retries: -1},
			call: func(c *Call) { c.SetRoute(make(mad.DirectedRoute, 65)) },
			sent: []time.Duration{0}, elapsed: time.Second,
			err: "SubnGet(PortInfo 3) to route 0" + strings.Repeat(",0", 63) + ": timed out after 1 attempt in 1s",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var sent []time.Duration
				tids := map[uint64]bool{}
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					sent = append(sent, time.Since(begin))
					tid := binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])
					if tids[tid] {
						t.Errorf("transaction ID %#x is used again", tid)
					}
					tids[tid] = true
					test.peer(f, d)
				}), test.opt)
				defer mustClose(t, e)
				if test.rtt > 0 {
					e.calls.flow.classes[kindSMP].rtt.Add(test.rtt)
				}
				var c Call
				c.PutSMP(mad.MethodGet, 0x15, 3, nil)
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

// TestHeldUp: when the writer or the timer is held up, there are as many
// attempts nevertheless, and the call gets its time.
func TestHeldUp(t *testing.T) {
	for _, test := range []struct {
		name string
		by   func(e *Engine, c *Call) // once, at 50 ms
		sent []time.Duration
	}{
		{"writer", func(e *Engine, c *Call) {
			c.SetLID(2) // whose datagrams the transport takes its time for
			e.Start(c)
		}, []time.Duration{0, 850 * ms, 1050 * ms, 1450 * ms, 2250 * ms, 3250 * ms}},
		{"timer", func(e *Engine, c *Call) {
			c.Timeout = 40 * ms // over at 90 ms, before the other's second attempt
			c.Notify = CompleterFunc(func(*Call) { time.Sleep(800 * ms) })
			e.Start(c)
		}, []time.Duration{0, 890 * ms, 1090 * ms, 1490 * ms, 2290 * ms, 3290 * ms}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var sent []time.Duration
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					switch d.LID {
					case 1:
						sent = append(sent, time.Since(begin))
					case 2:
						time.Sleep(800 * ms)
					}
				}), Options{})
				defer mustClose(t, e)
				other := getNodeInfo(3)
				other.Retries = -1
				time.AfterFunc(50*ms, func() { test.by(e, other) })
				c := getNodeInfo(1)
				e.Do(t.Context(), c)
				if diff := cmp.Diff(test.sent, sent); diff != "" {
					t.Errorf("sent at (-want +got):\n%s", diff)
				}
				if last := test.sent[5] + 500*ms; c.Elapsed != last || !errors.Is(c.Err, ErrTimeout) {
					t.Errorf("%v after %v, want a timeout after %v", c.Err, c.Elapsed, last)
				}
			})
		})
	}
}

// TestIDs: two engines begin with different transaction IDs, and what never
// was one's own is not late, but foreign.
func TestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := map[uint64]bool{}
		for range 8 {
			e := New(newFake(func(f *fakeTransport, d Datagram) {
				tid := binary.BigEndian.Uint64(d.MAD[mad.TIDOffset:])
				began[tid] = true
				for _, other := range []uint64{1 << 16, 1 << 31, 1} {
					stray := respond(d)
					binary.BigEndian.PutUint64(stray.MAD[mad.TIDOffset:], tid+other)
					f.deliver(stray)
				}
				f.deliver(respond(d))
			}), Options{})
			c := getNodeInfo(7)
			e.Do(t.Context(), c)
			synctest.Wait()
			if s := e.Stats().Counts; c.Err != nil || s.Foreign != 3 || s.Late != 0 {
				t.Errorf("%v, %+v", c.Err, s)
			}
			mustClose(t, e)
		}
		if len(began) < 7 {
			t.Errorf("8 engines begin with %d IDs", len(began))
		}
	})
}
