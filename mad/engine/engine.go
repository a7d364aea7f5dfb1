// Package engine moves management datagrams: many calls at a time over one
// Transport.
//
//	engine.go          the engine: start of calls, limits, permissions
//	call.go request.go do.go   one request and its answer
//	lifecycle.go       open, halted, closed, failed
//	calls.go callstate.go   the open calls: phases, deadlines, queues, the end
//	slot.go            transaction IDs
//	flow.go destination.go  windows: the number of outstanding requests
//	timer.go expire.go the timer heap, and the actions when a call is due
//	outbox.go          ACKs, replies and segments to send
//	sender.go attempt.go    the choice of the next datagram; one attempt of a call
//	writer.go          sending: by the writer, or by the reader on the fast path
//	reader.go table.go      received datagrams: matched, completed; tables of many segments
//	answer.go lmc.go   which answers count; truncated.go, their minimum length
//	policy.go          the differences between a fabric and a recording
//	listen.go          requests of others: traps, Reports
//	redirect.go follow.go   redirections by agents
//	key.go             the keys of requests
//	capability.go      vendors' attributes are requested only from devices that announce them
//	intercept.go       the interceptor of calls while changes are planned
//	transport.go address.go the transport of datagrams, and their addresses
//	stats.go histogram.go error.go
//
// The windows and round-trip times are those of mad/engine/congestion, the transfer of
// long requests and answers is mad/engine/rmpp.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/mad"
)

// Options are an engine's limits and permissions. The engine copies them; Keys must not
// be changed afterwards.
type Options struct {
	// Window is the largest number of outstanding requests. 0: the transport's
	// best value, or 32.
	Window int
	// FixedWindow keeps the windows at their largest size. It floods agents: tests
	// and benchmarks compare with it.
	FixedWindow bool
	// Timeout and Retries: a call without an answer ends after
	// (Retries+1) x Timeout. Timeout 0: 1 s. Retries 0: 2; negative: none.
	Timeout time.Duration
	Retries int
	// Write allows requests that change the fabric (EffectFabric). Otherwise they
	// end at once with ErrReadOnly and are never sent.
	Write bool
	// OnlyReads refuses, with ErrOnlyReads, also what affects the session of the requester
	// (EffectSession): subscriptions, and Listen, which answers Reports.
	OnlyReads bool
	// Keys are added to requests; nil: no keys.
	Keys *Keys
	// Resolve returns the LID of a GID, for redirections with a GID only. It may
	// send requests over e: its calls are not redirected themselves. The error is
	// ErrNoSA without a subnet administrator. Nil: GIDs are not resolved.
	Resolve func(ctx context.Context, e *Engine, gid mad.GID) (mad.LID, error)
}

// Engine moves many calls at a time over one transport.
//
// Three goroutines share the work. The writer sends what the windows allow. The
// reader matches answers with calls and completes them. It never blocks, because
// our write may wait for a peer that waits for our read; it sends only what the
// transport accepts at once. The third handles timers. A call costs neither a
// goroutine nor an allocation.
//
// A call without an answer ends after (Retries+1) x Timeout. Until then it is
// sent again each Timeout; but if it changes nothing, first after the RTO, at
// least 0.1 s, then after twice that, and so on up to
// Timeout: with the defaults at 0, 0.1, 0.3, 0.7, 1.5 and 2.5 s, which loses one
// in a million if each datagram is lost with 5 %. All others, especially Sets,
// get their full Timeouts, because the request may have been executed and the
// answer lost; so do requests for tables, which may take long. Without retries
// nothing is sent twice.
//
// A request that a transport returns undelivered is sent again after 10, 20, 40,
// ... ms if it changes nothing: a simulator reports a loss at once, and immediate
// retries would only be lost again. An answer BUSY is not a loss: the request is
// sent again after 10, 20, 40, ... ms until (Retries+1) x Timeout have elapsed
// since it was first sent; then the call ends with that status.
//
// An Engine is safe for concurrent use. It owns a Call from Start to Complete, its
// transport from New to the end of Close, and nothing else.
type Engine struct {
	transport   Transport
	options     Options // with defaults
	traits      Traits
	interceptor atomic.Pointer[Interceptor] // may be nil

	// Parts with their own locks, taken last.
	lmcs         lmcs
	capabilities capabilities
	redirects    redirects
	listeners    listeners

	mu       sync.Mutex // guards all below, and the engine's state in calls
	life     lifecycle  // whether calls are accepted
	calls    calls      // the open calls
	sender   sender     // the choice of the next datagram, and of its sender
	receiver receiver   // the handling of answers
}

// New starts an engine on t, which it owns from now on.
func New(t Transport, o Options) *Engine {
	traits := t.Traits()
	if o.Window <= 0 {
		o.Window = cmp.Or(traits.Window, defaultWindow)
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
	outstanding := traits.MaxOutstanding
	if outstanding <= 0 || outstanding > numSlots {
		outstanding = numSlots
	}
	e := &Engine{transport: t, options: o, traits: traits}
	e.listeners.byKey = map[listenKey]*Listener{}
	e.life.init()
	p := policyFor(traits)
	cs := &e.calls
	cs.keys, cs.redirects, cs.gaveUp, cs.outbox.noACK = o.Keys, &e.redirects, t.GaveUp, traits.NoACK
	cs.slots.init(outstanding, unguessable())
	cs.flow.init(p, min(o.Window, outstanding))
	if o.FixedWindow {
		cs.flow.fixWindows()
	}
	cs.timers.init()
	e.sender.init(cs, &o, p, traits.RMPP)
	e.receiver = receiver{calls: cs, policy: p, whole: traits.RMPP, represses: o.Write, lmcs: &e.lmcs, listeners: &e.listeners}
	e.sender.fastPath = t.BeforeWait(e.beforeWait)
	e.life.goroutines.Go(e.writeLoop)
	e.life.goroutines.Go(e.readLoop)
	e.life.goroutines.Go(e.timeLoop)
	return e
}

// Start begins c and returns at once; c.Notify is called at the end, also after
// failures. A call that has not ended must not be started again: Start panics.
func (e *Engine) Start(c *Call) { e.start(context.Background(), c) }

func (e *Engine) start(ctx context.Context, c *Call) {
	var answered func(*Call) error
	var refused error
	if i := e.Interceptor(); i != nil {
		answered, refused = i.Request(ctx, c)
	}
	effect, err := e.check(c)
	err = cmp.Or(refused, err)
	cs := &e.calls
	e.mu.Lock()
	if c.s.phase != phaseIdle {
		e.mu.Unlock()
		panic("mad: a call was started again before it ended")
	}
	c.Err, c.Table, c.Attempts, c.Elapsed = nil, nil, 0, 0
	if err == nil {
		err = e.life.refusal()
	}
	if err == nil && e.sender.state == sendStalled {
		err = e.sender.stallError()
	}
	if err != nil {
		cs.counts.Refused++
		e.mu.Unlock()
		c.Err = newError(c, err)
		// Not here: the caller may hold locks that Complete needs.
		go c.complete()
		return
	}
	c.answered = answered
	to := e.redirects.of(c)
	c.s = callState{method: mad.Method(c.MAD[mad.MethodOffset]), reads: effect == mad.EffectRead, timeout: c.Timeout, retries: max(0, c.Retries), started: cs.timers.now(), to: to.Address}
	c.s.keyless = !e.options.Keys.goTo(&c.To, &to)
	c.s.dest = cs.flow.destination(c)
	if c.Timeout <= 0 {
		c.s.timeout = e.options.Timeout
	}
	if c.Retries == 0 {
		c.s.retries = e.options.Retries
	}
	cs.flow.admit(c)
	e.unlock()
}

// check returns the effect of c, or an error if it must not be sent.
func (e *Engine) check(c *Call) (mad.Effect, error) {
	h := c.Header()
	effect := mad.EffectOfMAD(c.MAD[:])
	if mad.WritesRegister(c.MAD[:]) {
		return effect, ErrRegister
	}
	if !c.announced {
		if a := e.gated(c); a != nil {
			return effect, &unsupported{a}
		}
	}
	if c.Subscribes && h.Class == mad.ClassSubnAdm && h.ClassVersion == h.Class.Version() && h.Method == mad.MethodSet && h.Attribute == mad.AttrInformInfo.ID {
		effect = mad.EffectSession
	}
	switch {
	case !e.options.Write && effect == mad.EffectFabric:
		return effect, ErrReadOnly
	case e.options.OnlyReads && effect != mad.EffectRead:
		return effect, ErrOnlyReads
	}
	return effect, e.checkPayload(c)
}

// Port reads the current facts of the local port.
func (e *Engine) Port() (Port, error) { return e.transport.Port() }

// Options returns the limits and permissions in force, with defaults.
func (e *Engine) Options() Options { return e.options }

// Traits returns the traits of the transport.
func (e *Engine) Traits() Traits { return e.traits }

// Write reports whether requests that change the fabric are allowed.
func (e *Engine) Write() bool { return e.options.Write }

// unlock releases the lock, wakes the writer if there is something to send and no
// goroutine is sending, and completes the calls that have ended.
func (e *Engine) unlock() {
	s := &e.sender
	wake := s.isNeeded()
	if wake {
		s.state = sendChoosing
	}
	ended := e.calls.takeEnded()
	e.mu.Unlock()
	if wake {
		s.wake <- struct{}{}
	}
	ended.complete()
}

// isSendError reports whether err concerns one datagram, not the transport.
func isSendError(err error) bool {
	var s *SendError
	return errors.As(err, &s)
}

// maxRequest is the largest size of a request, in bytes.
const maxRequest = 1 << 30

// checkPayload returns an error if c's payload cannot be sent.
func (e *Engine) checkPayload(c *Call) error {
	n := len(c.Payload)
	switch {
	case c.Payload == nil:
		return nil
	case mad.Class(c.MAD[mad.ClassOffset]) != mad.ClassSubnAdm:
		return errors.New("only requests to subnet administration may be longer than one MAD")
	case !c.isAnswered():
		return errors.New("only requests that are answered may be longer than one MAD")
	case n > maxRequest:
		return fmt.Errorf("a request of %d bytes, more than %d", n, maxRequest)
	case n > mad.SegmentData && e.traits.NoACK && !e.receiver.policy.wholeRequests():
		return fmt.Errorf("a request of %d bytes; this transport carries only requests that fit in one MAD (%d bytes); request less at once", n, mad.SegmentData)
	}
	return nil
}
