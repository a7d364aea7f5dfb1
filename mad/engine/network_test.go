package engine

import (
	"math/rand/v2"
	"sync"
	"time"

	"fabsh/mad"
)

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
