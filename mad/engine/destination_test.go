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
