// Package engine moves management datagrams: many calls at a time over one
// Transport.
//
//	engine.go       the engine: start of calls, limits, permissions
//	call.go request.go do.go   one request and its answer
//	callstate.go    what the engine keeps of a call: phase, deadlines, queues
//	lifecycle.go    open, halted, closed, fatal error; how a call ends
//	writer.go attempt.go   what is sent next, and one attempt of a call
//	fastpath.go     the reader sends what answers make room for
//	reader.go       what comes: matched, completed
//	answer.go       whose answer counts
//	timer.go expire.go     what falls due: the timer heap, and what is done then
//	policy.go recorded.go  what differs between a fabric and a recording of one
//	flow.go destination.go slot.go   what may be outstanding at once
//	congestion.go   the congestion window: slow start, AIMD
//	losses.go       random loss, or a short queue
//	rtt.go histogram.go    round-trip times: RTO, delay, quantiles
//	rmpp.go         RMPP: ACK, STOP and ABORT, and what they say
//	assembly.go     RMPP: an answer of many segments
//	transfer.go     RMPP: a request of many segments
//	listen.go       what comes unasked: traps, Reports
//	redirect.go     agents that send a request elsewhere
//	key.go          the keys that requests show
//	transport.go address.go   what carries datagrams, and where they go
//	overlay.go      what stands over the fabric while changes are planned
//	stats.go error.go
//
// The terms are those of transport protocols: RTT is a round-trip time; the base
// RTT is the shortest one, without queueing; RTO, the retransmission timeout, is
// mean + 4 deviations of the RTT (RFC 6298); a congestion window is how many
// requests may be outstanding; AIMD is additive increase, multiplicative
// decrease.
package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"fabsh/mad"
)

// Options are an engine's limits and permissions.
type Options struct {
	// Window is how many requests may wait for an answer at once, at most.
	// 0: what the transport does best with, or 32.
	Window int
	// FixedWindow: the windows are as large as they may become, and stay so.
	// It floods agents: tests and benchmarks compare with it.
	FixedWindow bool
	// Timeout and Retries: a call without an answer ends after
	// (Retries+1) x Timeout. Timeout 0: 1 s. Retries 0: 2; negative: none.
	Timeout time.Duration
	Retries int
	// Write allows requests that change the fabric (EffectFabric). Without
	// it they end at once with ErrReadOnly and are never sent.
	Write bool
	// Keys go along with requests; nil: none.
	Keys *Keys
	// Resolve finds the LID behind a GID, where an agent redirects to a GID
	// alone. It may ask over e: its calls are not redirected themselves. The
	// error is ErrNoSA where there is nobody to ask. Nil: nobody is asked.
	Resolve func(ctx context.Context, e *Engine, gid mad.GID) (mad.LID, error)
}

// Engine moves many calls at a time over one transport.
//
// Three goroutines share the work. The writer sends what the windows allow.
// The reader matches answers with calls and completes them; it never blocks, for
// a peer that waits for us to read may be what we wait for to write, and sends
// only what the transport takes at once. The third does what falls due. A
// call costs neither a goroutine nor an allocation.
//
// A call without an answer ends after (Retries+1) x Timeout. Until then it is
// sent again each Timeout; but if it changes nothing, first after the RTO, at
// least 0.1 s, then after twice that, and so on up to
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
	transport Transport
	options   Options // defaults put in
	traits    Traits
	policy    policy // live, or of a recording
	lmcs      atomic.Pointer[lmcs]
	overlay   atomic.Pointer[Overlay] // nil: none

	mu        sync.Mutex // guards all below, and the state of lent calls
	life      lifecycle  // whether calls are taken
	flow      flow       // what may be outstanding
	writer    writer     // what is to be sent
	timers    timers     // what falls due
	listeners listeners  // who takes what comes unasked
	redirects redirects  // which agents send requests elsewhere
	stats     Counts
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
	e := &Engine{transport: t, options: o, traits: traits, policy: policyFor(traits), listeners: listeners{}, redirects: redirects{}}
	e.life.init()
	e.flow.init(e.policy, o.Window, traits.MaxOutstanding)
	if o.FixedWindow {
		e.flow.fixWindows()
	}
	e.writer.init()
	e.timers.init()
	e.writer.fastPath = t.BeforeWait(e.beforeWait)
	e.life.goroutines.Go(e.writeLoop)
	e.life.goroutines.Go(e.readLoop)
	e.life.goroutines.Go(e.timeLoop)
	return e
}

// Start begins c and returns at once; c.Notify is told of the end, of
// failures too. A call that has not ended must not be started again.
func (e *Engine) Start(c *Call) {
	overlay := e.Overlay()
	var refused error
	if overlay != nil {
		refused = overlay.Ask(c)
	}
	effect, err := e.check(c)
	if refused != nil {
		err = refused
	}
	e.mu.Lock()
	if c.s.phase != phaseIdle {
		e.mu.Unlock()
		panic("mad: a call was started again before it ended")
	}
	c.Err, c.Table, c.Attempts, c.Elapsed = nil, nil, 0, 0
	if err == nil {
		err = e.life.refusal()
	}
	if err == nil && e.writer.stalled {
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
	c.overlay = overlay
	to := e.redirects.of(c)
	c.s = callState{method: mad.Method(c.MAD[mad.MethodOffset]), reads: effect == mad.EffectRead, timeout: c.Timeout, retries: max(0, c.Retries), started: e.now(), to: to.Address}
	c.s.keyless = !e.options.Keys.goTo(&c.To, &to)
	c.s.dest = e.flow.destination(c)
	if c.Timeout <= 0 {
		c.s.timeout = e.options.Timeout
	}
	if c.Retries == 0 {
		c.s.retries = e.options.Retries
	}
	e.flow.admit(c)
	e.unlock()
}

// check says what c does, and why it must not be sent.
func (e *Engine) check(c *Call) (mad.Effect, error) {
	h := c.Header()
	effect := mad.EffectOfMAD(c.MAD[:])
	if mad.WritesRegister(c.MAD[:]) {
		return effect, ErrRegister
	}
	if c.Subscribes && h.Class == mad.ClassSubnAdm && h.ClassVersion == h.Class.Version() && h.Method == mad.MethodSet && h.Attribute == mad.AttrInformInfo.ID {
		effect = mad.EffectSession
	}
	if !e.options.Write && effect == mad.EffectFabric {
		return effect, ErrReadOnly
	}
	return effect, e.checkPayload(c)
}

// Port reads the facts of the local port afresh.
func (e *Engine) Port() (Port, error) { return e.transport.Port() }

// Options are the limits and permissions in force, defaults put in.
func (e *Engine) Options() Options { return e.options }

// Traits says what the transport does by itself.
func (e *Engine) Traits() Traits { return e.traits }

// Write: requests that change the fabric are allowed.
func (e *Engine) Write() bool { return e.options.Write }

// now is the time since the engine began: monotonic, and cheap to compare.
func (e *Engine) now() time.Duration { return time.Since(e.timers.epoch) }

// unlock wakes the writer if there is something to send, and nobody will.
func (e *Engine) unlock() {
	w := &e.writer
	wake := w.idle && !w.reading && (w.pending() || e.flow.next() != nil)
	if wake {
		w.idle = false
	}
	e.mu.Unlock()
	if wake {
		w.wake <- struct{}{}
	}
}

// isSendError: err concerns one datagram, not the transport.
func isSendError(err error) bool {
	var s *SendError
	return errors.As(err, &s)
}
