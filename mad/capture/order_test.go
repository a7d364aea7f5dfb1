package capture

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestOrder: who asks for what follows from the answers gets them in the order
// of the recording, however long it thinks about each; who asks for other
// things, or in another order, does not wait long.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		var order []int
		ask := func(e *engine.Engine, list []int, think time.Duration) (order []int) {
			done := make(chan int, n)
			for _, i := range list {
				time.Sleep(think)
				c := smp(mad.AttrPortInfo, uint32(i), 1)
				c.Notify = engine.CompleterFunc(func(c *engine.Call) { done <- int(c.Header().Modifier) })
				e.Start(c)
			}
			for range list {
				order = append(order, <-done)
			}
			return order
		}
		var all, shuffled, some []int
		for i := range n {
			all = append(all, i)
			shuffled = append(shuffled, i*77%n)
			if i%7 == 3 {
				some = append(some, i)
			}
		}
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			p.after(time.Duration(int(d.MAD[23])*31%n+1)*ms, respond(d, 1))
		}), engine.Options{}, func(e *engine.Engine) { order = ask(e, all, 0) })
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			if diff := cmp.Diff(order, ask(e, all, 0)); diff != "" {
				t.Errorf("all at once: -recorded +replayed\n%s", diff)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			if diff := cmp.Diff(order, ask(e, shuffled, 0)); diff != "" {
				t.Errorf("shuffled: -recorded +replayed\n%s", diff)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			began := time.Now()
			var got []int
			for _, i := range shuffled {
				got = append(got, ask(e, []int{i}, 0)...)
			}
			if diff := cmp.Diff(shuffled, got); diff != "" {
				t.Errorf("one by one: -asked +replayed\n%s", diff)
			}
			if took := time.Since(began); took > 2*longestWait {
				t.Errorf("one by one took %v", took)
			}
		})
		play(t, recording, engine.Options{}, func(e *engine.Engine) {
			var want []int
			for _, i := range order {
				if i%7 == 3 {
					want = append(want, i)
				}
			}
			began := time.Now()
			if diff := cmp.Diff(want, ask(e, some, 0)); diff != "" {
				t.Errorf("some: -recorded +replayed\n%s", diff)
			}
			if took := time.Since(began); took > 2*longestWait {
				t.Errorf("some took %v", took)
			}
		})
	})
}

// TestOrderThinking: the asker is slower than when it was recorded.
func TestOrderThinking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The answer to 1 comes before that to 2; after it, 3 is asked, whose
		// answer comes before that to 2, too.
		ask := func(e *engine.Engine, think time.Duration) (order []int) {
			done := make(chan int, 3)
			start := func(i uint32) {
				c := smp(mad.AttrPortInfo, i, 1)
				c.Notify = engine.CompleterFunc(func(c *engine.Call) { done <- int(c.Header().Modifier) })
				e.Start(c)
			}
			start(1)
			start(2)
			order = append(order, <-done)
			time.Sleep(think)
			start(3)
			return append(order, <-done, <-done)
		}
		recording := record(t, newPeer(engine.Traits{}, func(p *peer, d engine.Datagram, nth int) {
			p.after(map[byte]time.Duration{1: 10 * ms, 2: 100 * ms, 3: 10 * ms}[d.MAD[23]], respond(d, 1))
		}), engine.Options{}, func(e *engine.Engine) { ask(e, 0) })
		for think, want := range map[time.Duration][]int{
			0: {1, 3, 2}, longestWait - ms: {1, 3, 2}, longestWait + ms: {1, 2, 3},
		} {
			play(t, recording, engine.Options{}, func(e *engine.Engine) {
				if diff := cmp.Diff(want, ask(e, think)); diff != "" {
					t.Errorf("thinking for %v: -want +got\n%s", think, diff)
				}
			})
		}
	})
}

// TestWait: how long an outcome waits for those before it.
func TestWait(t *testing.T) {
	var o order
	step := func(place int, want ...time.Duration) {
		t.Helper()
		for _, want := range want {
			if got := o.wait(place); got != want {
				t.Errorf("place %d: waits %v, want %v", place, got, want)
			}
			if want > 0 {
				o.expire()
			}
		}
	}
	step(0, 0)
	step(1, 0)
	for i := range maxBackOff { // others are asked for
		step(10+10*i, longestWait>>i, 0)
	}
	step(100, 0)
	step(200, 0)
	step(unordered, 0)
	step(150, 0)
	step(201, 0) // the next
	step(210, longestWait>>(maxBackOff-1), 0)
	for i := range maxBackOff + 1 {
		step(211+i, 0)
	}
	step(300, longestWait, 0)
}

// TestWaitQueue: who comes first, goes first, unless the recording says otherwise.
func TestWaitQueue(t *testing.T) {
	var h waitQueue
	for i, place := range []int{5, unordered, 3, unordered, 4, unordered, 3} {
		h.push(&call{attempt: i}, place)
	}
	var got []int
	for h.Len() > 0 {
		got = append(got, h.pop().attempt)
	}
	if diff := cmp.Diff([]int{1, 3, 5, 2, 6, 4, 0}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
