package engine

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/mad"
)

// TestStudy is what the window comes to on paths that others use too. Each
// takes a MAD in the time given, can hold so many, and drops what is more. The
// second line of each is a window that is always 32.
//
//	                               alone       two of us     beside a subnet manager
//	path                        used  dropped  first's dropped  its   dropped  our
//	                                           share            rate           dropped
//	100 us, 16              0   100%   0.0%    50%   0.0%    50%   0.0%   0.0%
//	                       32   100%   3.5%    56%   4.8%    11%   0.9%   3.6%
//	20 us, 16               0   100%   0.1%    49%   0.1%    48%   0.0%   0.1%
//	                       32   100%   1.1%    97%   0.9%    19%   0.0%   1.1%
//	1 ms, 8                 0   100%   0.0%    50%   0.2%    50%   0.0%   0.0%
//	                       32   100%  19.6%    65%  30.1%     8%  17.3%  20.6%
//	100 us, 16, 2 ms away   0    96%   0.0%    50%   0.1%    83%   0.0%   0.0%
//	                       32    98%   0.2%    66%   3.7%    59%   0.0%   0.1%
//	100 us, 16, jitter      0    95%   0.0%    50%   0.0%    58%   0.0%   0.0%
//	                       32   100%   4.6%    54%   7.1%     6%   3.1%   4.9%
//	100 us, 16, loss 5 %    0    78%   0.0%    50%   0.0%     -    0.0%   0.0%
//	                       32    87%   0.3%    49%   3.4%     -    1.0%   0.3%
//	10 us, 8                0    96%   0.1%    53%   0.1%    62%   0.0%   0.1%
//	                       32   100%   0.2%    68%   0.4%    25%   0.1%   0.3%
//	5 us, 16                0   100%   0.0%    40%   0.0%    62%   0.0%   0.0%
//	                       32    88%   0.1%    51%   0.3%    14%   0.2%   0.2%
//
// The rate is the rate of the manager's answers, compared with its rate without us. With
// loss it is too low to be measured, because the manager waits 200 ms for each.
func TestStudy(t *testing.T) {
	type path struct {
		name   string
		n      *network
		span   time.Duration // of each measurement
		settle time.Duration // what two that share it get before
		use    float64       // of the path, if it is ours alone: at least
	}
	paths := []path{
		{"100 us, 16", &network{service: 100 * us, queue: 16, delay: 150 * us}, time.Second, 3 * time.Second, 0.99},
		{"20 us, 16", &network{service: 20 * us, queue: 16, delay: 50 * us}, 300 * ms, 2200 * ms, 0.99},
		{"1 ms, 8", &network{service: ms, queue: 8, delay: 500 * us}, 5 * time.Second, 5 * time.Second, 0.99},
		{"100 us, 16, 2 ms away", &network{service: 100 * us, queue: 16, delay: 2 * ms}, time.Second, 3 * time.Second, 0.94},
		{"100 us, 16, jitter", &network{service: 100 * us, queue: 16, delay: 150 * us, jitter: 300 * us}, time.Second, 3 * time.Second, 0.94},
		{"100 us, 16, loss 5 %", &network{service: 100 * us, queue: 16, delay: 150 * us, loss: 0.05}, time.Second, 3 * time.Second, 0.7},
	}
	if testing.Short() { // many goroutines with the race detector
		paths = paths[2:]
	}
	if soak { // many MADs
		paths = append(paths,
			path{"10 us, 8", &network{service: 10 * us, queue: 8, delay: 50 * us}, 3 * time.Second, 3 * time.Second, 0.85},
			path{"5 us, 16", &network{service: 5 * us, queue: 16, delay: 50 * us}, 3 * time.Second, 3 * time.Second, 0.99})
	}
	for _, test := range paths {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, fixed := range []int{0, 32} {
					if fixed > 0 && !soak {
						break // the window of old, for comparison
					}
					s := study{t, test.n, fixed}
					use, ours := s.alone(test.span)
					share, both := s.two(test.settle, test.span)
					quiet, busy, others := s.manager(test.span)
					t.Logf("%-22s %2d  %3.0f%% %5.1f%%  %3.0f%% %5.1f%%  %3.0f%% %5.1f%% %5.1f%%", test.name, fixed, 100*use, 100*ours.lost(),
						100*share, 100*both.lost(), 100*float64(busy.answered)/float64(quiet.answered), 100*busy.lost(), 100*others.lost())
					if fixed > 0 {
						continue
					}
					if use < test.use {
						t.Errorf("%.2f of the path is used, want %.2f", use, test.use)
					}
					if share < 0.3 || share > 0.7 {
						t.Errorf("of two one gets %.2f", share)
					}
					if busy.lost() > 0.001 || busy.answered < quiet.answered/4 {
						t.Errorf("a subnet manager got %d answers, without us %d, and %d of its SMPs were dropped", busy.answered, quiet.answered, busy.dropped)
					}
					for _, a := range []account{ours, both, others} {
						if a.lost() > 0.015 {
							t.Errorf("dropped %d of %d", a.dropped, a.sent)
						}
					}
				}
			})
		})
	}
}

// lost is the share that was dropped.
func (a *account) lost() float64 { return float64(a.dropped) / float64(a.sent) }

// study is a network, and the window its users have: 0: as it comes.
type study struct {
	t     *testing.T
	n     *network
	fixed int
}

func (s *study) asker() *asker {
	a := newAsker(s.n)
	if s.fixed > 0 {
		a.fix(s.fixed)
	}
	return a
}

// alone: what share of the path one uses, and what becomes of its requests.
func (s *study) alone(span time.Duration) (use float64, _ account) {
	s.n.start()
	a := s.asker()
	defer mustClose(s.t, a.e)
	a.ask(time.Now().Add(span))
	s.n.sleep(span)
	s.n.mu.Lock()
	use = float64(s.n.took) / float64(span)
	s.n.mu.Unlock()
	a.open.Wait()
	return use, a.account
}

// two: the share of answers that the first of two gets.
func (s *study) two(settle, span time.Duration) (share float64, both account) {
	s.n.start()
	a, b := s.asker(), s.asker()
	defer mustClose(s.t, a.e)
	defer mustClose(s.t, b.e)
	end := time.Now().Add(span/2 + settle + span)
	a.ask(end)
	s.n.sleep(span / 2)
	b.ask(end)
	s.n.sleep(settle)
	a0, b0 := s.n.read(&a.account), s.n.read(&b.account)
	a.open.Wait()
	b.open.Wait()
	as, bs := a.answered-a0.answered, b.answered-b0.answered
	return float64(as) / float64(as+bs), account{sent: a.sent + b.sent, dropped: a.dropped + b.dropped}
}

// manager: what becomes of a subnet manager's requests without us and with us,
// and of ours.
func (s *study) manager(span time.Duration) (quiet, busy, ours account) {
	s.n.start()
	s.n.manage(&quiet, time.Now().Add(span)).Wait()
	s.n.start()
	a := s.asker()
	defer mustClose(s.t, a.e)
	a.ask(time.Now().Add(span * 5 / 4))
	s.n.sleep(span / 4)
	s.n.manage(&busy, time.Now().Add(span)).Wait()
	a.open.Wait()
	return quiet, busy, a.account
}

// TestAgentQueue: of a subnet manager's SMPs to one agent, which holds 8, nothing
// is lost, though we ask that agent for all it can give.
func TestAgentQueue(t *testing.T) {
	for _, work := range []time.Duration{10 * us, 20 * us, 50 * us, 100 * us, ms} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{service: us, queue: 64, delay: 20 * us, agent: func(mad.LID) time.Duration { return work }}
			n.start()
			a := newAsker(n)
			defer mustClose(t, a.e)
			a.nodes = 1
			a.ask(time.Now().Add(1250 * ms))
			n.sleep(250 * ms)
			var manager account
			n.manageNodes(&manager, 1, time.Now().Add(time.Second)).Wait()
			a.open.Wait()
			t.Logf("%5v: we lost %d of %d, the subnet manager %d of %d", work, a.dropped, a.sent, manager.dropped, manager.sent)
			if manager.dropped > 0 {
				t.Errorf("%v: the subnet manager lost %d of %d", work, manager.dropped, manager.sent)
			}
		})
	}
}

// TestSweeps: what a slow agent, dead nodes and losses cost a sweep of 10,000
// nodes, one question each, over a path that takes 100,000 MADs a second:
//
//	              all that live  the end  dropped  unanswered
//	healthy              101 ms   101 ms        0           0
//	one agent 20 ms      101 ms   101 ms        0           0
//	1000 dead in a row   276 ms   3.12 s        0        1000
//	1 % dead             101 ms   3.10 s        0         100
//	loss 5 % each way    823 ms   823 ms        0           0
func TestSweeps(t *testing.T) {
	odd := func(isOdd func(mad.LID) bool, work time.Duration) func(mad.LID) time.Duration {
		return func(lid mad.LID) time.Duration {
			if isOdd(lid) {
				return work
			}
			return 20 * us
		}
	}
	for _, test := range []struct {
		name        string
		agent       func(mad.LID) time.Duration
		loss        float64
		living, end time.Duration // at most
		failed      int
	}{
		{"healthy", nil, 0, 102 * ms, 102 * ms, 0},
		{"one agent 20 ms", odd(func(lid mad.LID) bool { return lid == 7 }, 20*ms), 0, 102 * ms, 122 * ms, 0},
		{"1000 dead in a row", odd(func(lid mad.LID) bool { return lid > 2000 && lid <= 3000 }, -1), 0, 300 * ms, 3200 * ms, 1000},
		{"1 % dead", odd(func(lid mad.LID) bool { return lid%100 == 0 }, -1), 0, 110 * ms, 3110 * ms, 100},
		{"loss 5 % each way", nil, 0.05, 1800 * ms, 1800 * ms, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{service: 10 * us, queue: 32, delay: 150 * us, agent: test.agent, loss: test.loss}
			n.start()
			a := newAsker(n)
			defer mustClose(t, a.e)
			begin := time.Now()
			calls := make([]*Call, 10000)
			for i := range calls {
				calls[i] = getNodeInfo(mad.LID(i + 1))
			}
			a.e.Do(t.Context(), calls...)
			end := time.Since(begin)
			var living time.Duration
			failed := 0
			for _, c := range calls {
				if c.Err != nil {
					failed++
				} else {
					living = max(living, c.Elapsed)
				}
			}
			t.Logf("%-18s %v %v %d %d", test.name, living, end, a.dropped, failed)
			if living > test.living || end > test.end || failed != test.failed || a.dropped > 0 {
				t.Errorf("%s: all that live after %v, the end after %v, dropped %d, unanswered %d; want %v, %v, 0, %d",
					test.name, living, end, a.dropped, failed, test.living, test.end, test.failed)
			}
		})
	}
}

const us = time.Microsecond

// network is a path that all who use it share, with agents behind it, in
// virtual time. The path takes one MAD after the other and has a short queue, as
// the switch next to us has, or the management lane of a link.
type network struct {
	service time.Duration                   // of the path, for each MAD
	queue   int                             // MADs that the path can hold
	delay   time.Duration                   // besides, there and back
	jitter  time.Duration                   // added at random
	loss    float64                         // each way
	agent   func(lid mad.LID) time.Duration // how long it takes for a MAD; negative: dead

	mu   sync.Mutex
	from time.Time
	free time.Duration             // when the path has taken all it holds
	busy map[mad.LID]time.Duration // when an agent has answered all it holds
	had  map[mad.LID]uint64        // how many MADs were sent to it
	due  map[time.Duration]bool    // when something is to happen
	took time.Duration             // how long the path was not idle
}

// agentQueue is how many MADs an agent can hold.
const agentQueue = 8

// start begins the network's time.
func (n *network) start() {
	time.Sleep(time.Second) // virtual: what is under way from before comes to its end
	n.mu.Lock()
	defer n.mu.Unlock()
	n.from = time.Now()
	n.busy, n.had, n.due = map[mad.LID]time.Duration{}, map[mad.LID]uint64{}, map[time.Duration]bool{}
	n.free, n.took = 0, 0
	if n.agent == nil {
		n.agent = func(mad.LID) time.Duration { return 20 * us }
	}
}

// chance decides what becomes of the next MAD to lid. It does not go by the order in
// which all are sent: of what happens at the same time that is up to the scheduler.
func (n *network) chance(lid mad.LID) *rand.Rand {
	n.had[lid]++
	return rand.New(rand.NewPCG(n.had[lid], uint64(lid)))
}

// after calls fn in a while and up to a microsecond more, when nothing else happens
// in the network, nor, as good as always, in an engine. n.mu is held.
func (n *network) after(wait time.Duration, r *rand.Rand, fn func()) {
	now := time.Since(n.from)
	at := now + wait + 1 + time.Duration(r.Int64N(int64(us)))
	for n.due[at] {
		at++
	}
	n.due[at] = true
	time.AfterFunc(at-now, func() {
		n.mu.Lock()
		delete(n.due, at)
		n.mu.Unlock()
		fn()
	})
}

// sleep is time.Sleep that ends when nothing else happens.
func (n *network) sleep(wait time.Duration) {
	over := make(chan bool)
	n.mu.Lock()
	n.after(wait, n.chance(0), func() { close(over) })
	n.mu.Unlock()
	<-over
}

// account is what became of the requests of one who uses a network; its lock
// guards it.
type account struct{ sent, dropped, answered int }

// send takes a request to the agent of lid, and calls back with the answer.
func (n *network) send(a *account, lid mad.LID, back func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Since(n.from)
	a.sent++
	if n.free-now > time.Duration(n.queue)*n.service {
		a.dropped++
		return
	}
	n.free = max(n.free, now) + n.service
	n.took += n.service
	if r := n.chance(lid); r.Float64() >= n.loss {
		n.after(n.free-now+n.delay/2, r, func() { n.arrive(a, lid, r, back) })
	}
}

func (n *network) arrive(a *account, lid mad.LID, r *rand.Rand, back func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Since(n.from)
	work := n.agent(lid)
	switch {
	case work < 0:
		return
	case n.busy[lid]-now > agentQueue*work:
		a.dropped++
		return
	}
	n.busy[lid] = max(n.busy[lid], now) + work
	if r.Float64() < n.loss {
		return
	}
	delay := n.busy[lid] - now + n.delay/2
	if n.jitter > 0 {
		delay += time.Duration(r.Int64N(int64(n.jitter)))
	}
	n.after(delay, r, func() {
		n.mu.Lock()
		a.answered++
		n.mu.Unlock()
		back()
	})
}

// read is a consistent copy of a.
func (n *network) read(a *account) account {
	n.mu.Lock()
	defer n.mu.Unlock()
	return *a
}

// asker is an engine on a network, and who keeps it busy.
type asker struct {
	account
	e *Engine

	mu    sync.Mutex
	next  int
	nodes int // asked in turns
	until time.Time
	open  sync.WaitGroup
}

func newAsker(n *network) *asker {
	a := &asker{nodes: 200}
	a.e = New(newFake(func(f *fakeTransport, d Datagram) {
		n.send(&a.account, d.LID, func() { f.deliver(respond(d)) })
	}), Options{})
	return a
}

// fix gives the engine windows that never change.
func (a *asker) fix(window int) {
	a.e.calls.flow.classes[kindSMP].window = newCongestionWindow(window, window, window)
	a.e.calls.flow.classes[kindSMP].perDestination = newCongestionWindow(windowDestination, windowDestination, windowDestination)
}

// ask asks all nodes one question after the other, until then.
func (a *asker) ask(until time.Time) {
	a.until = until
	for range 100 {
		c := new(Call)
		c.Notify = CompleterFunc(a.again)
		a.open.Add(1)
		a.again(c)
	}
}

func (a *asker) again(c *Call) {
	if !time.Now().Before(a.until) {
		a.open.Done()
		return
	}
	a.mu.Lock()
	a.next++
	lid := mad.LID(a.next%a.nodes + 1)
	a.mu.Unlock()
	c.PutSMP(mad.MethodGet, 0x11, 0, nil)
	c.SetLID(lid)
	a.e.Start(c)
}

// manage is a subnet manager that sweeps as OpenSM does: 4 SMPs are out, each
// of which is sent again after 200 ms.
func (n *network) manage(a *account, until time.Time) *sync.WaitGroup {
	return n.manageNodes(a, 150, until)
}

// manageNodes is manage of so many nodes.
func (n *network) manageNodes(a *account, nodes int, until time.Time) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			n.sleep(0) // not all at the same time
			for lid := i; time.Now().Before(until); lid++ {
				answer := make(chan bool, 9)
				for done := false; !done; {
					n.send(a, mad.LID(lid%nodes+1), func() { answer <- true })
					select {
					case <-answer:
						done = true
					case <-time.After(200 * ms):
						done = !time.Now().Before(until)
					}
				}
			}
		})
	}
	return &wg
}
