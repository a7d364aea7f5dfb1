// Package engine moves management datagrams: many calls at a time over one
// Transport.
//
//	engine.go       many calls at once: start, limits, permissions
//	call.go request.go do.go   one request and its answer
//	end.go          how calls end: cancelled, failed, halted, closed
//	send.go receive.go timer.go   the engine's three goroutines
//	window.go limit.go destination.go trip.go   what may be out at once, and for how long
//	rmpp.go rmppsend.go   answers and requests of many datagrams
//	listen.go       what comes unasked: traps, Reports
//	redirect.go     agents that send a request elsewhere
//	slot.go         transaction IDs
//	key.go          the keys that requests show
//	transport.go    what carries datagrams
//	stats.go error.go
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"fabsh/mad"
)

// Options are an engine's limits and permissions.
type Options struct {
	// Window is how many requests may wait for an answer at once, at most.
	// 0: what the transport does best with, or 32.
	Window int
	// Timeout and Retries: a call without an answer ends after
	// (Retries+1) x Timeout. Timeout 0: 1 s. Retries 0: 2; negative: none.
	Timeout time.Duration
	Retries int
	// Write allows requests that change the fabric (EffectFabric). Without
	// it they end at once with ErrReadOnly and are never sent.
	Write bool
	// Keys go along with requests; nil: none.
	Keys *Keys
}

// Engine moves many calls at a time over one transport.
//
// Three goroutines share the work. The writer sends what the window allows.
// The reader matches answers with calls and completes them; it never blocks, for
// a peer that waits for us to read may be what we wait for to write, and sends
// only what the transport takes at once. The third does what falls due. A
// call costs neither a goroutine nor an allocation.
//
// A call without an answer ends after (Retries+1) x Timeout. Until then it is
// sent again each Timeout; but if it changes nothing, first after what a round
// trip hardly ever takes, then after twice that, and so on up to
// Timeout: with the defaults at 0, 0.1, 0.3, 0.7, 1.5 and 2.5 s, which loses one
// in a million where each datagram is lost with 5 %. All others, Sets above
// all, get their full Timeouts, for the request may have been carried out and
// the answer lost; so do requests for tables, which may be long work. Without
// retries nothing is sent twice.
//
// What a transport gives back undelivered is sent again after 10, 20, 40, ...
// ms if it changes nothing: a simulator knows a loss at once, and retries in
// no time would only meet it again. An answer BUSY is no loss: the request is
// sent again after 10, 20, 40, ... ms until (Retries+1) x Timeout have gone by
// since it was first sent; then the call ends with that status.
type Engine struct {
	t      Transport
	direct bool    // the reader sends too, by TrySend
	opt    Options // defaults put in
	traits Traits
	epoch  time.Time
	wake   chan struct{} // to the writer, when idle
	rearm  chan struct{} // to the timer goroutine: e.armed was brought forward
	stop   chan struct{} // closed by Close
	done   sync.WaitGroup

	mu        sync.Mutex    // guards all that follows, and the state of lent calls
	err       error         // why the engine works no longer
	halted    error         // why it works not now
	halt      chan struct{} // closed while it does not
	closed    bool
	window    int
	inFlight  int // calls that count in the window
	reserve   int // slots never used, as the transport cannot take so many
	seq       uint64
	windows   [kinds]classWindow
	dests     []*destination // in order of making
	maxDests  int
	redirects map[redirectKey]Address
	slots     [numSlots]slot
	free      slotQueue
	control   []control // RMPP ACKs and ABORTs to be sent
	segments  callList  // calls of whose requests there is more to be sent
	replies   []reply   // to what others sent unasked
	turn      int       // what the writer sent last, of what takes turns
	listeners map[listenKey]*Listener
	timers    timerHeap
	armed     time.Duration // when the timer goroutine will wake
	idle      bool          // nobody sends, and the writer waits for e.wake
	reading   bool          // the reader is at work, and will send
	held      bool          // out was not taken at once; it is unsent's
	unsent    job
	sending   bool          // the writer is inside Transport.Send
	sendBegan time.Duration // since then
	stalled   bool          // and for far too long
	stats     Counts

	out Datagram // the sender's: the writer's, or, while that is idle, the reader's
}

// New starts an engine on t, which it owns from now on.
func New(t Transport, o Options) *Engine {
	if o.Window <= 0 {
		o.Window = cmp.Or(t.Traits().Window, defaultWindow)
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	switch {
	case o.Retries == 0:
		o.Retries = 2
	case o.Retries < 0:
		o.Retries = 0
	}
	e := &Engine{
		t:         t,
		opt:       o,
		traits:    t.Traits(),
		epoch:     time.Now(),
		wake:      make(chan struct{}, 1),
		rearm:     make(chan struct{}, 1),
		stop:      make(chan struct{}),
		armed:     never,
		maxDests:  maxDestinations,
		listeners: map[listenKey]*Listener{},
		halt:      make(chan struct{}),
		redirects: map[redirectKey]Address{},
	}
	for i := range numSlots {
		e.free.push(uint16(i))
	}
	outstanding := e.traits.MaxOutstanding
	if outstanding <= 0 || outstanding > numSlots {
		outstanding = numSlots
	}
	e.reserve = numSlots - outstanding
	e.window = min(o.Window, outstanding)
	e.setWindows()
	e.out.MAD = make([]byte, mad.Size)
	e.direct = t.BeforeWait(e.sendPromptly)
	e.done.Go(e.sendLoop)
	e.done.Go(e.receiveLoop)
	e.done.Go(e.timeLoop)
	return e
}

// Start begins c and returns at once; c.Notify is told of the end, of
// failures too. A call that has not ended must not be started again.
func (e *Engine) Start(c *Call) {
	effect, err := e.check(c)
	e.mu.Lock()
	if c.s.phase != phaseIdle {
		e.mu.Unlock()
		panic("mad: a call was started again before it ended")
	}
	c.Err, c.Table, c.Attempts, c.Elapsed = nil, nil, 0, 0
	if err == nil {
		err = cmp.Or(e.err, e.halted)
	}
	if err == nil && e.stalled {
		err = e.stallError()
	}
	if err != nil {
		e.stats.Refused++
		e.mu.Unlock()
		c.Err = newError(c, err)
		// Not here: the caller may hold what Complete wants.
		go c.complete()
		return
	}
	c.s = callState{method: mad.Method(c.MAD[mad.MethodOffset]), reads: effect == mad.EffectRead, timeout: c.Timeout, retries: max(0, c.Retries), started: e.now(), to: e.redirected(c)}
	c.s.dest = e.destination(c)
	if c.Timeout <= 0 {
		c.s.timeout = e.opt.Timeout
	}
	if c.Retries == 0 {
		c.s.retries = e.opt.Retries
	}
	e.admit(c)
	e.unlock()
}

// check says what c does, and why it must not be sent.
func (e *Engine) check(c *Call) (mad.Effect, error) {
	h := c.Header()
	effect := mad.EffectOf(h.Class, h.ClassVersion, h.Method, h.Attribute)
	if !e.opt.Write && effect == mad.EffectFabric {
		return effect, ErrReadOnly
	}
	if h.Class == mad.ClassSubnDirected && c.MAD[mad.HopCountOffset] > mad.MaxHops {
		return effect, fmt.Errorf("directed route of %d hops, more than %d", c.MAD[mad.HopCountOffset], mad.MaxHops)
	}
	return effect, e.checkPayload(c)
}

// Port reads the facts of the local port afresh.
func (e *Engine) Port() (Port, error) { return e.t.Port() }

// Options are the limits and permissions in force, defaults put in.
func (e *Engine) Options() Options { return e.opt }

// Traits says what the transport does by itself.
func (e *Engine) Traits() Traits { return e.traits }

// Write: requests that change the fabric are allowed.
func (e *Engine) Write() bool { return e.opt.Write }

// now is the time since the engine began: monotonic, and cheap to compare.
func (e *Engine) now() time.Duration { return time.Since(e.epoch) }

// unlock wakes the writer if there is something to send, and nobody will.
func (e *Engine) unlock() {
	wake := e.idle && !e.reading && (len(e.control) > 0 || len(e.replies) > 0 || e.segments.head != nil || e.next() != nil)
	if wake {
		e.idle = false
	}
	e.mu.Unlock()
	if wake {
		e.wake <- struct{}{}
	}
}

// isSendError: err concerns one datagram, not the transport.
func isSendError(err error) bool {
	var s *SendError
	return errors.As(err, &s)
}
