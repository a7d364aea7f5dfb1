package engine

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
)

// soak: the tests that chance decides are to take their time.
var soak = os.Getenv("FABSH_SOAK") != ""

// TestStorm: over a network that loses, delays, doubles and reorders, with
// nodes that are busy, each call ends exactly once: with its own answer, or
// with a timeout after the set attempts. As many time out as are lost.
func TestStorm(t *testing.T) {
	calls := 100000
	if soak {
		calls = 1000000
	}
	t.Run("retries 2", func(t *testing.T) { storm(t, calls, 2) })
	t.Run("retries 25", func(t *testing.T) { storm(t, calls, 25) })
}

// What may happen to a datagram, and how probably.
const (
	stormLoss   = 0.2
	stormTwice  = 0.05
	stormBusy   = 0.1 // of what reaches an agent
	stormJitter = 50 * ms
)

// stormTimeout makes six attempts whenever the second is sent after 100 to
// 187 ms, which is what these round trips come to: 0, w, 3w, 7w, 15w, 15w+1.5s.
const (
	stormTimeout  = 1500 * ms
	stormAttempts = 6
)

func storm(t *testing.T, calls, retries int) {
	before := heap()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 0)) // the writer's alone
		jitter := func() time.Duration { return time.Duration(r.Int64N(int64(stormJitter))) }
		copies := func() int {
			switch {
			case r.Float64() < stormLoss:
				return 0
			case r.Float64() < stormTwice:
				return 2
			}
			return 1
		}
		e := New(newFake(func(f *fakeTransport, d Datagram) {
			for range copies() {
				answer := respond(d)
				if r.Float64() < stormBusy {
					answer = withStatus(answer, mad.StatusBusy)
				}
				there := jitter()
				for range copies() {
					time.AfterFunc(there+jitter(), func() { f.deliver(answer) })
				}
			}
		}), Options{Timeout: stormTimeout, Retries: retries})
		s := stormCalls{t: t, e: e, left: calls, retries: retries, done: make(chan bool)}
		s.run()
		<-s.done
		time.Sleep(time.Second) // virtual: the last duplicates
		want, sigma := stormTimeouts(calls, retries)
		t.Logf("%d of %d timed out, by chance %.0f; %+v", s.timeouts, calls, want, e.Stats())
		if math.Abs(float64(s.timeouts)-want) > 3*sigma {
			t.Errorf("%d timed out, want %.0f, standard deviation %.0f", s.timeouts, want, sigma)
		}
		c := e.Stats().Counts
		if c.Answered+c.TimedOut != uint64(calls) || c.TimedOut != uint64(s.timeouts) || c.Sent != uint64(calls)+c.Retried ||
			c.Foreign+c.Unsolicited+c.Cancelled+c.Refused+c.Undelivered != 0 {
			t.Errorf("stats do not add up: %+v", c)
		}
		checkEmpty(t, e)
		mustClose(t, e)
	})
	// Nothing may remain whose number grows with the number of calls.
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("%d bytes are still in use", grown)
	}
}

// stormTimeouts is how many calls time out in the mean, and the deviation.
func stormTimeouts(calls, retries int) (mean, sigma float64) {
	if retries > 2 {
		return 0, 0 // 29 attempts: one in 10^12
	}
	// To what becomes of a request, and of the answer to one copy of it.
	const lost, twice = stormLoss, (1 - stormLoss) * stormTwice
	const once = 1 - lost - twice
	const silence, right = lost, (1 - lost) * (1 - stormBusy)
	const silent = lost + once*silence + twice*silence*silence
	// An answer BUSY, if no other comes, costs no attempt.
	const notRight = lost + once*(1-right) + twice*(1-right)*(1-right)
	const busy = notRight - silent
	p := math.Pow(silent/(1-busy), stormAttempts)
	return float64(calls) * p, math.Sqrt(float64(calls) * p * (1 - p))
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stormCalls are the calls of a storm. Each is used again when it has ended.
type stormCalls struct {
	t       *testing.T
	e       *Engine
	retries int
	done    chan bool

	mu       sync.Mutex
	next     uint32 // tells calls apart
	left     int    // to be started
	open     int
	timeouts int
}

type stormCall struct {
	Call
	s    *stormCalls
	id   uint32
	open bool
}

func (s *stormCalls) run() {
	all := make([]stormCall, 2000)
	for i := range all {
		all[i].s = s
		all[i].Notify = &all[i]
	}
	s.mu.Lock()
	s.open = len(all)
	s.mu.Unlock()
	for i := range all {
		all[i].start()
	}
}

// start begins the next call, if there is to be one.
func (c *stormCall) start() {
	s := c.s
	s.mu.Lock()
	again := s.left > 0
	if again {
		s.left--
		s.next++
		c.id, c.open = s.next, true
	} else if s.open--; s.open == 0 {
		close(s.done)
	}
	s.mu.Unlock()
	if again {
		c.PutPerf(mad.MethodGet, 0x12, c.id, []byte{byte(c.id), byte(c.id >> 8), byte(c.id >> 16)})
		c.SetLID(mad.LID(c.id%997 + 1))
		s.e.Start(&c.Call)
	}
}

// Complete checks the end of a call.
func (c *stormCall) Complete(*Call) {
	s := c.s
	s.mu.Lock()
	own := c.Header().Modifier == c.id && [3]byte(c.Data()) == [3]byte{byte(c.id), byte(c.id >> 8), byte(c.id >> 16)}
	switch {
	case !c.open:
		s.t.Errorf("call %d ended twice", c.id)
	case c.Err == nil && own && c.Header().Method == mad.MethodGetResp:
	case errors.Is(c.Err, ErrTimeout) && c.Attempts > s.retries && c.Elapsed >= time.Duration(s.retries+1)*stormTimeout:
		s.timeouts++
	default:
		s.t.Errorf("call %d: %v after %d attempts", c.id, c.Err, c.Attempts)
	}
	c.open = false
	s.mu.Unlock()
	c.start()
}

// TestUnsolicited: however many unsolicited MADs come, answers are
// not starved.
func TestUnsolicited(t *testing.T) {
	f := newFake(nil)
	trap := getNodeInfo(1)
	trap.MAD[mad.MethodOffset] = byte(mad.MethodTrap)
	f.peer = func(f *fakeTransport, d Datagram) { f.deliver(respond(d)) }
	e := New(f, Options{Retries: -1, Timeout: time.Minute})
	defer mustClose(t, e)
	stop := make(chan bool)
	var flood, begun sync.WaitGroup
	begun.Add(2)
	for range 2 {
		flood.Go(func() {
			for n := 1; ; n++ {
				select {
				case f.recv <- Datagram{MAD: trap.MAD[:]}: // when full, who waits first goes first
					if n == 1000 {
						begun.Done()
					}
				case <-stop:
					return
				}
			}
		})
	}
	begun.Wait()
	calls := make([]*Call, 200)
	for i := range calls {
		calls[i] = getNodeInfo(mad.LID(i + 1))
	}
	e.Do(t.Context(), calls...)
	close(stop)
	flood.Wait()
	for i, c := range calls {
		if c.Err != nil {
			t.Errorf("call %d: %v", i, c.Err)
		}
	}
	if c := e.Stats().Counts; c.Unsolicited < 1000 || c.Answered != 200 {
		t.Errorf("%+v", c)
	}
}
