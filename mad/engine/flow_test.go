package engine

import (
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// load is the number of requests that a peer has at once.
type load struct {
	now, most int
	byLID     map[mad.LID]int
	mostByLID int
}

func (l *load) add(lid mad.LID, n int) {
	if l.byLID == nil {
		l.byLID = map[mad.LID]int{}
	}
	l.now += n
	l.byLID[lid] += n
	l.most = max(l.most, l.now)
	l.mostByLID = max(l.mostByLID, l.byLID[lid])
}

// TestWindow: no more is outstanding than each window allows, and no less.
func TestWindow(t *testing.T) {
	smp := func(c *Call, i int) { c.PutSMP(mad.MethodGet, 0x11, 0, nil) }
	sa := func(c *Call, i int) { c.PutSA(mad.MethodGet, 0x11, 0, 0, nil) }
	for _, test := range []struct {
		name   string
		opt    Options
		traits Traits
		lids   int
		put    func(c *Call, i int)
		all    int
		perLID int
	}{
		{name: "default", lids: 100, put: smp, all: 32, perLID: 4},
		{name: "few destinations", lids: 2, put: smp, all: 8, perLID: 4},
		{name: "wide", opt: Options{Window: 200}, lids: 1000, put: smp, all: 200, perLID: 4},
		{name: "narrow", opt: Options{Window: 3}, lids: 1, put: smp, all: 3, perLID: 3},
		{name: "transport", opt: Options{Window: 200}, traits: Traits{MaxOutstanding: 20}, lids: 1000, put: smp, all: 20, perLID: 4},
		{name: "SA", opt: Options{Window: 200}, lids: 1, put: sa, all: 4, perLID: 4},
		{name: "several SAs", lids: 3, put: sa, all: 4, perLID: 2},
		{name: "SMPs and GMPs", lids: 100, put: func(c *Call, i int) {
			if smp(c, i); i%2 == 0 {
				c.PutPerf(mad.MethodGet, 0x12, 0, nil)
			}
		}, all: 32, perLID: 8},
		{name: "SA beside SMPs", lids: 1, put: func(c *Call, i int) {
			if i%2 == 0 {
				sa(c, i)
			} else {
				smp(c, i)
			}
		}, all: 8, perLID: 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l load
				f := newFake(nil)
				release := make(chan Datagram, 5000)
				f.peer = func(f *fakeTransport, d Datagram) { release <- d }
				f.traits = test.traits
				e := New(f, test.opt)
				defer mustClose(t, e)
				go func() {
					for {
						synctest.Wait() // until the engine sends no more
						n := len(release)
						if n == 0 {
							return
						}
						batch := make([]Datagram, n)
						for i := range batch {
							batch[i] = <-release
							l.add(batch[i].LID, 1)
						}
						for _, d := range batch {
							l.add(d.LID, -1)
							f.deliver(respond(d))
						}
					}
				}()
				calls := make([]*Call, 2000)
				for i := range calls {
					calls[i] = new(Call)
					test.put(calls[i], i)
					calls[i].SetLID(mad.LID(i%test.lids + 1))
				}
				e.Do(t.Context(), calls...)
				for i, c := range calls {
					if c.Err != nil {
						t.Fatalf("call %d: %v", i, c.Err)
					}
				}
				// With many destinations each gets less than it may.
				if l.most != test.all || l.mostByLID > test.perLID || test.lids < 10 && l.mostByLID < test.perLID {
					t.Errorf("at most %d at once, %d of one destination; want %d, %d", l.most, l.mostByLID, test.all, test.perLID)
				}
				checkEmpty(t, e)
			})
		})
	}
}

// TestMaxOutstanding: not even silent calls exceed what the transport can take.
func TestMaxOutstanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := map[mad.LID]bool{}
		f := newFake(func(f *fakeTransport, d Datagram) { sent[d.LID] = true })
		f.traits.MaxOutstanding = 40
		e := New(f, Options{})
		defer mustClose(t, e)
		for lid := range mad.LID(1000) {
			e.Start(getNodeInfo(lid + 1))
		}
		time.Sleep(2999 * ms) // virtual
		synctest.Wait()
		if len(sent) != 40 {
			t.Errorf("%d calls sent, want 40", len(sent))
		}
	})
}

// TestRoutes: each directed route is a destination of its own, its beginning too.
func TestRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := map[string]int{}
		e := New(newFake(func(f *fakeTransport, d Datagram) { sent[mad.RouteOf(d.MAD).String()]++ }), Options{})
		defer mustClose(t, e)
		e.calls.flow.classes[kindSMP].window = newCongestionWindow(defaultWindow, windowStart, defaultWindow)
		routes := []mad.DirectedRoute{{0}, {0, 1}, {0, 1, 2}}
		for i := range 60 {
			c := getNodeInfo(1)
			c.SetRoute(routes[i%3])
			e.Start(c)
		}
		synctest.Wait()
		if diff := cmp.Diff(map[string]int{"0": 2, "0,1": 2, "0,1,2": 2}, sent); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

// TestFIFO: calls go out in the order of their start, calls of a full
// destination excepted.
func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []mad.LID
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			order = append(order, d.LID)
			if d.LID != 1 {
				f.deliver(respond(d))
			}
		}), Options{Window: 10})
		defer mustClose(t, e)
		e.calls.flow.classes[kindSMP].window = newCongestionWindow(10, windowStart, defaultWindow)
		w := waiter{make(chan *Call, 100)}
		var want []mad.LID
		start := func(lid mad.LID) {
			c := getNodeInfo(lid)
			c.Notify = w
			e.Start(c)
		}
		for range 20 { // some of them are sent, and never answered
			start(1)
		}
		for lid := range mad.LID(50) {
			start(lid + 2)
		}
		c := new(Call)
		c.PutPerf(mad.MethodGet, 0x12, 0, nil)
		c.SetLID(99)
		e.Start(c)
		start(100)
		synctest.Wait()
		for range windowDestinationStart {
			want = append(want, 1)
		}
		for lid := range mad.LID(50) {
			want = append(want, lid+2)
		}
		want = append(want, 99, 100)
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// TestDistance: that nodes with more hops have longer RTTs is no queue.
func TestDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			time.AfterFunc(time.Duration(len(mad.RouteOf(d.MAD)))*ms, func() { f.deliver(respond(d)) })
		}), Options{})
		defer mustClose(t, e)
		for hops := range 9 {
			var calls []*Call
			for i := range 200 {
				route := make(mad.DirectedRoute, hops+1)
				route[hops] = byte(i)
				c := getNodeInfo(1)
				c.SetRoute(route)
				calls = append(calls, c)
			}
			e.Do(t.Context(), calls...)
		}
		if got := e.Stats().SMP.Window; got != defaultWindow {
			t.Errorf("the window is %d", got)
		}
	})
}

// TestShortQueue: a loss where delays are loaded is a ceiling of the window,
// an answer BUSY and the silence of a dead node do not.
func TestShortQueue(t *testing.T) {
	for _, test := range []struct {
		name string
		odd  func(f *fakeTransport, d Datagram, attempt int) bool
		top  int
	}{
		{"lost", func(f *fakeTransport, d Datagram, attempt int) bool { return attempt == 0 }, 16},
		{"busy", func(f *fakeTransport, d Datagram, attempt int) bool {
			if attempt == 0 {
				f.deliver(withStatus(respond(d), mad.StatusBusy))
			}
			return attempt == 0
		}, 32},
		{"dead", func(f *fakeTransport, d Datagram, attempt int) bool { return true }, 32},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				e := New(newFake(func(f *fakeTransport, d Datagram) {
					n++
					attempt := int(binary.BigEndian.Uint32(d.MAD[mad.TIDOffset+4:])&attemptMask) >> slotBits
					if d.LID == 9999 && test.odd(f, d, attempt) {
						return
					}
					delay := 50 * us
					if n > 100 {
						delay = 200 * us
					}
					time.AfterFunc(delay, func() { f.deliver(respond(d)) })
				}), Options{})
				defer mustClose(t, e)
				e.Start(getNodeInfo(9999))
				for begin := time.Now(); time.Since(begin) < 200*ms; {
					var calls []*Call
					for lid := range mad.LID(100) {
						calls = append(calls, getNodeInfo(lid+1))
					}
					e.Do(t.Context(), calls...)
				}
				if got := e.calls.flow.classes[kindSMP].window.Ceiling(); got != test.top {
					t.Errorf("the window may grow to %d, want %d", got, test.top)
				}
			})
		})
	}
}

// TestBusyDestination: many calls to a dead node hold up no other's.
func TestBusyDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			if d.LID != 1 {
				f.deliver(respond(d))
			}
		}), Options{})
		defer mustClose(t, e)
		var calls []*Call
		for range 100 {
			calls = append(calls, getNodeInfo(1))
		}
		for lid := range mad.LID(1000) {
			calls = append(calls, getNodeInfo(lid+2))
		}
		e.Do(t.Context(), calls...)
		for i, c := range calls {
			switch {
			case i < 100 && !errors.Is(c.Err, ErrTimeout):
				t.Errorf("call %d: %v", i, c.Err)
			case i >= 100 && (c.Err != nil || c.Elapsed != 0):
				t.Errorf("call %d: %v after %v", i, c.Err, c.Elapsed)
			}
		}
	})
}

// TestDestinations: destinations are forgotten, but for those in use.
func TestDestinations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := 0
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			if d.LID == 7 {
				silent++
				return
			}
			// Answered when all calls of a Do are out: in virtual time, not by a race.
			time.AfterFunc(time.Microsecond, func() { f.deliver(respond(d)) })
		}), Options{})
		defer mustClose(t, e)
		e.calls.flow.maxDests = 100
		ask := func() {
			for range windowDestination {
				e.Start(getNodeInfo(7))
			}
			synctest.Wait()
		}
		ask()
		calls := make([]*Call, 3000)
		for i := range calls {
			calls[i] = new(Call)
			calls[i].PutSMP(mad.MethodGet, 0x11, 0, nil)
			calls[i].SetRoute(mad.DirectedRoute{0, byte(i), byte(i >> 8)})
		}
		for i := range calls[:2000] {
			var same [windowDestination]Call
			for n := range same {
				same[n] = *calls[i]
			}
			e.Do(t.Context(), &same[0], &same[1], &same[2], &same[3])
			if i%2 == 0 { // one of which nothing is learned is not kept
				e.Do(t.Context(), calls[2000])
				calls[2000].MAD[mad.MethodOffset] = byte(mad.MethodGet)
			}
			if i == 50 && len(e.calls.flow.dests) != 52 {
				t.Errorf("%d destinations, want 52", len(e.calls.flow.dests))
			}
		}
		if n := len(e.calls.flow.dests); n > 101 {
			t.Errorf("%d destinations", n)
		}
		ask()
		if silent != windowDestinationStart {
			t.Errorf("%d calls out to a destination in use, want %d", silent, windowDestinationStart)
		}
		e.Do(t.Context(), calls[2000:]...)
		for i, c := range calls {
			if c.Err != nil {
				t.Errorf("call %d: %v", i, c.Err)
			}
		}
		if n := len(e.calls.flow.dests); n != len(e.calls.flow.classes[kindSMP].dests) {
			t.Errorf("%d destinations, %d looked up", n, len(e.calls.flow.classes[kindSMP].dests))
		}
	})
}

// TestDeadNodes: any number of silent nodes costs one retry ladder, and the
// answers of the others come as if they were not there.
func TestDeadNodes(t *testing.T) {
	const nodes, rtt = 5000, 5 * ms
	sweep := func(t *testing.T, dead func(lid mad.LID) bool) (answered, all time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			e := New(newFake(func(f *fakeTransport, d Datagram) {
				if !dead(d.LID) {
					time.AfterFunc(rtt, func() { f.deliver(respond(d)) })
				}
			}), Options{})
			defer mustClose(t, e)
			begin := time.Now()
			calls := make([]*Call, nodes)
			for i := range calls {
				calls[i] = getNodeInfo(mad.LID(i + 1))
			}
			e.Do(t.Context(), calls...)
			all = time.Since(begin)
			for _, c := range calls {
				if dead(c.To.LID) != (c.Err != nil) {
					t.Errorf("LID %d: %v", c.To.LID, c.Err)
				}
				if c.Err == nil {
					answered = max(answered, c.Elapsed)
				}
			}
			checkEmpty(t, e)
		})
		return answered, all
	}
	healthy, _ := sweep(t, func(mad.LID) bool { return false })
	// The window needs a few round trips to open.
	if want := (nodes + 31) / 32 * rtt; healthy < want || healthy > want+3*rtt {
		t.Errorf("healthy sweep: %v, want %v and a little", healthy, want)
	}
	// Each of the 50 dead nodes holds 1 of 32 places for 100 ms.
	scattered := func(lid mad.LID) bool { return lid%100 == 0 }
	answered, all := sweep(t, scattered)
	if most := healthy + 50*shortestRTO/32 + shortestRTO; answered > most {
		t.Errorf("1%% dead: the others answered after %v, want at most %v", answered, most)
	}
	if most := answered + 3*time.Second; all > most {
		t.Errorf("1%% dead: ended after %v, want at most %v", all, most)
	}
	// The first 100 all dead: the window is full of them until they are
	// presumed lost, 4 first, then 8, 16, 32, 32.
	answered, all = sweep(t, func(lid mad.LID) bool { return lid <= 100 })
	if most := healthy + 6*shortestRTO; answered > most || all > most+3*time.Second {
		t.Errorf("first 100 dead: the others answered after %v, all ended after %v", answered, all)
	}
}

// TestDeadNode: what is asked of a silent node does not wait for the end of
// what was asked before, nor does all of it come at once.
func TestDeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		first := map[time.Duration]int{}
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			if binary.BigEndian.Uint32(d.MAD[mad.TIDOffset+4:])&attemptMask == 0 {
				first[time.Since(begin)]++
			}
		}), Options{})
		defer mustClose(t, e)
		var calls []*Call
		for range 6 {
			calls = append(calls, getNodeInfo(1))
		}
		e.Do(t.Context(), calls...)
		if diff := cmp.Diff(map[time.Duration]int{0: 2, 100 * ms: 2, 200 * ms: 2}, first); diff != "" {
			t.Errorf("first attempts (-want +got):\n%s", diff)
		}
		// The last are sent at 200 ms, and share the window with the others.
		if took := time.Since(begin); took < 3200*ms || took > 3250*ms {
			t.Errorf("took %v", took)
		}
	})
}

// TestSlowNode: a node that is slower than all others is given its time, once
// that is known.
func TestSlowNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			delay := ms
			if d.LID == 1 {
				delay = 400 * ms
			}
			time.AfterFunc(delay, func() { f.deliver(respond(d)) })
		}), Options{})
		defer mustClose(t, e)
		slow := getNodeInfo(1)
		for i, want := range []int{3, 1, 1} { // at 0, 100, 300 ms; then in time
			for lid := range mad.LID(50) {
				e.Do(t.Context(), getNodeInfo(lid+2))
			}
			slow.PutSMP(mad.MethodGet, 0x11, 0, nil)
			e.Do(t.Context(), slow)
			if slow.Err != nil || slow.Attempts != want {
				t.Errorf("question %d: %v, %d attempts, want %d", i, slow.Err, slow.Attempts, want)
			}
			time.Sleep(time.Second) // virtual
		}
	})
}
