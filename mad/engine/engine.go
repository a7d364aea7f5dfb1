// Package engine sends requests as management datagrams and matches their answers: many
// calls at a time over one Transport.
//
// A Call is one request and its answer. Engine.Do sends calls and waits for their answers;
// Engine.Start sends one and returns at once. A Transport carries single datagrams: to a
// device, a simulator or a recording. The engine adds retries, windows that limit the
// outstanding requests by the delay of their answers, reliable multi-packet transfers
// (RMPP), keys, redirections and statistics. A Listener receives requests of others:
// traps and Reports. A Call that fails has an *Error.
//
// By default an engine only reads: it refuses requests that change the fabric, unless
// Options.Write allows them, and always those that write registers of devices. Attributes
// of vendors are requested only from devices that announce them.
//
// An Engine is safe for concurrent use, and so are its Listeners, except for Next. A Call
// belongs to the engine from Start to Complete. One lock, Engine.mu, guards the open
// calls, the sender and the receiver; the comments of types say what it guards, and which
// parts have locks of their own. Times inside the engine are durations since its start.
//
// Section numbers are those of the InfiniBand Architecture Specification, volume 1 (IBA).
// Behaviour of other programs is cited by their source files: OpenSM, Linux (mad_rmpp.c,
// ib_mad.c), libibmad, ibsim.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	cs.slots.init(outstanding, newSecretRand())
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
	c.s.keyless = !e.options.Keys.mayGoTo(&c.To, &to)
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
		if a := e.mustBeAnnounced(c); a != nil {
			return effect, &unsupportedError{a}
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

// Do starts all calls and waits until all have ended; the result of each is in its
// Err. When ctx ends, all open calls end at once, and Do returns context.Cause(ctx);
// otherwise it returns nil. Do sets the calls' Notify. It follows the redirections
// of agents. A call that the device has to announce
// (mad.Attribute.IsAnnounced) is sent only if it does; otherwise it ends with ErrUnsupported.
func (e *Engine) Do(ctx context.Context, calls ...*Call) error {
	if err := e.before(ctx, calls); err != nil {
		return err
	}
	calls, err := e.announced(ctx, calls)
	if len(calls) == 0 || err != nil {
		return err
	}
	for {
		if err := e.do(ctx, calls); err != nil {
			return err
		}
		if calls, err = e.follow(ctx, calls); len(calls) == 0 || err != nil {
			return err
		}
	}
}

func (e *Engine) do(ctx context.Context, calls []*Call) error {
	if ctx.Err() != nil {
		for _, c := range calls {
			c.Table, c.Attempts, c.Elapsed = nil, 0, 0
			c.Err = newError(c, context.Cause(ctx))
		}
		return context.Cause(ctx)
	}
	b := batch{done: make(chan struct{})}
	b.left.Store(int64(len(calls)) + 1)
	for _, c := range calls {
		c.Notify = &b
		e.start(ctx, c)
	}
	b.Complete(nil)
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	for _, c := range slices.Backward(calls) { // the last have not been sent yet
		e.Cancel(c, cause)
	}
	<-b.done
	return cause
}

// batch is the Completer of the calls of one Do.
type batch struct {
	left atomic.Int64
	done chan struct{}
}

func (b *batch) Complete(*Call) {
	if b.left.Add(-1) == 0 {
		close(b.done)
	}
}

// lifecycle is whether the engine accepts calls. Engine.mu guards the first four.
type lifecycle struct {
	err        error         // fatal: the transport has failed, or was closed
	halted     error         // why no calls are accepted until Halt(nil)
	halt       chan struct{} // closed while halted
	closed     bool          // Close was called
	stop       chan struct{} // closed by Close
	goroutines sync.WaitGroup
}

func (l *lifecycle) init() {
	l.halt = make(chan struct{})
	l.stop = make(chan struct{})
}

// refusal returns why no call is accepted, or nil.
func (l *lifecycle) refusal() error { return cmp.Or(l.err, l.halted) }

// setHalted halts, or with nil resumes.
func (l *lifecycle) setHalted(cause error) {
	switch {
	case cause != nil && l.halted == nil:
		close(l.halt)
	case cause == nil && l.halted != nil:
		l.halt = make(chan struct{})
	}
	l.halted = cause
}

// Cancel ends c now, unless it has ended: c.Err wraps cause. A late answer is
// counted and dropped. If c is already ending on another goroutine, Cancel does not
// wait for that.
func (e *Engine) Cancel(c *Call, cause error) {
	e.mu.Lock()
	if c.s.phase != phaseIdle {
		if c.Attempts > 0 {
			e.calls.counts.Cancelled++
		}
		e.calls.end(c, e.calls.timers.now(), cause)
	}
	e.unlock()
}

// Close ends all open calls with ErrClosed, closes the transport and waits
// for the engine's goroutines; it must not be called from Complete.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.life.closed
	e.life.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.fail(ErrClosed)
	close(e.life.stop)
	err := e.transport.Close()
	e.life.goroutines.Wait()
	return err
}

// fail ends all calls with err, which is fatal.
func (e *Engine) fail(err error) {
	e.mu.Lock()
	if e.life.err == nil {
		e.life.err = err
		e.calls.endAll(e.calls.timers.now(), err)
		e.listeners.fail(err)
		if e.sender.state == sendIdle {
			e.sender.state = sendChoosing
			e.sender.wake <- struct{}{}
		}
	}
	e.unlock()
}

// Halt ends all open calls now, and later ones as they start, with cause.
// Halt(nil) accepts calls again.
func (e *Engine) Halt(cause error) {
	e.mu.Lock()
	e.life.setHalted(cause)
	if cause != nil {
		e.calls.endAll(e.calls.timers.now(), cause)
	}
	e.unlock()
}

// Halted returns a channel that Halt closes, and the cause of the Halt, or nil.
func (e *Engine) Halted() (halted <-chan struct{}, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life.halt, e.life.halted
}

// Failed returns why no call will be answered again: the transport has failed, or was
// closed. Otherwise it returns nil.
func (e *Engine) Failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.life.err
}

// An Interceptor is between calls and the fabric, for example while changes are planned
// but not applied: it keeps the requests that would change something, and makes answers
// show what they would have written. Several goroutines may call its methods at the same
// time; it must not keep a Call after the function that Request returned has run.
type Interceptor interface {
	// Request is called for each request before it is sent, with the context of its Do
	// (context.Background for Start). It may replace it by another one that only
	// reads; an error means that the request must not be sent. The function is called at
	// the end of the call, before its owner is notified: it may change the answer, or
	// return an error in its place. It must not block. Nil: the answer is unchanged.
	Request(ctx context.Context, c *Call) (answered func(*Call) error, err error)
	// Before returns requests whose answers it needs before calls are started.
	Before(calls []*Call) []*Call
}

// SetInterceptor passes all calls started from now on to i; with nil, calls reach the
// fabric again.
func (e *Engine) SetInterceptor(i Interceptor) {
	if i == nil {
		e.interceptor.Store(nil)
	} else {
		e.interceptor.Store(&i)
	}
}

// Interceptor returns the interceptor of calls, or nil. With an interceptor, waiting for
// the effect of a Set is useless.
func (e *Engine) Interceptor() Interceptor {
	if i := e.interceptor.Load(); i != nil {
		return *i
	}
	return nil
}

// before starts the requests that the interceptor needs before calls are started.
func (e *Engine) before(ctx context.Context, calls []*Call) error {
	i := e.Interceptor()
	if i == nil {
		return nil
	}
	first := i.Before(calls)
	if len(first) == 0 {
		return nil
	}
	return e.do(ctx, first)
}
