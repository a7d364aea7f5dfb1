package mad

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestStorm: of 100,000 calls over a network that loses, delays, doubles and
// reorders, with nodes that are busy and transports that give back, each ends
// exactly once, with its own answer or a timeout after the set attempts.
func TestStorm(t *testing.T) {
	for _, seed := range []uint64{1, 2} {
		synctest.Test(t, func(t *testing.T) { storm(t, seed) })
	}
}

func storm(t *testing.T, seed uint64) {
	t.Logf("seed %d", seed)
	const calls, retries, loss = 100000, 2, 0.1
	r := rand.New(rand.NewPCG(seed, 0)) // the writer's alone
	e := NewEngine(newFake(func(f *fakeTransport, d Datagram) {
		later := func(d Datagram) {
			if delay := time.Duration(r.IntN(50)) * ms; delay == 0 {
				f.deliver(d)
			} else {
				time.AfterFunc(delay, func() { f.deliver(d) })
			}
		}
		switch p := r.Float64(); {
		case p < loss:
			if p < loss/4 {
				d.Undelivered = true
				later(d)
			}
		case p < loss+0.1:
			later(withStatus(respond(d), StatusBusy))
		default:
			later(respond(d))
			if p > 0.95 {
				later(respond(d))
			}
		}
	}), Options{Window: 256})
	type item struct {
		Call
		ends int
	}
	items := make([]item, calls)
	done := make(chan bool)
	left := calls
	for i := range items {
		c := &items[i]
		c.PutPerf(MethodGet, 0x12, uint32(i), []byte{byte(i), byte(i >> 8), byte(i >> 16)})
		c.SetLID(LID(i%997 + 1))
		c.Notify = CompleterFunc(func(*Call) { // on the engine's goroutines, never at once
			c.ends++
			e.mu.Lock()
			defer e.mu.Unlock()
			if left--; left == 0 {
				close(done)
			}
		})
	}
	for i := range items {
		e.Start(&items[i].Call)
		if i%1000 == 999 {
			time.Sleep(20 * ms) // virtual
		}
	}
	<-done
	timeouts := 0
	for i := range items {
		c := &items[i]
		own := c.Header().Modifier == uint32(i) && [3]byte(c.Data()) == [3]byte{byte(i), byte(i >> 8), byte(i >> 16)}
		switch {
		case c.ends != 1:
			t.Fatalf("call %d ended %d times", i, c.ends)
		case c.Err == nil && own && c.Header().Method == MethodGetResp:
		case errors.Is(c.Err, ErrTimeout) && c.Attempts > retries:
			timeouts++
		default:
			t.Fatalf("call %d: %v after %d attempts", i, c.Err, c.Attempts)
		}
	}
	// Of the attempts not answered BUSY one in nine is lost; three of them:
	// 137 calls, more or less three times the square root.
	if timeouts < 102 || timeouts > 172 {
		t.Errorf("%d timeouts, want about 137", timeouts)
	}
	time.Sleep(time.Second) // virtual: the last duplicates
	s := e.Stats()
	if s.Answered+s.TimedOut != calls || s.TimedOut != uint64(timeouts) || s.Foreign+s.Unsolicited+s.Cancelled+s.Refused != 0 ||
		s.Sent != calls+s.Retried {
		t.Errorf("stats do not add up: %+v", s)
	}
	checkEmpty(t, e)
	mustClose(t, e)
}
