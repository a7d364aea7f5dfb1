package mad

import (
	"context"
	"time"
)

// Options are an engine's limits and permissions.
type Options struct {
	// Window is how many requests may wait for an answer at once. 0: 32.
	Window int
	// Timeout of one attempt. 0: 1 s.
	Timeout time.Duration
	// Retries are the attempts after the first. 0: 2; negative: none.
	Retries int
	// Write allows requests that change the fabric (EffectFabric). Without
	// it they end at once with ErrReadOnly and are never sent.
	Write bool
}

// Engine moves many calls at a time over one transport.
type Engine struct {
	t Transport
	o Options
}

// NewEngine starts an engine on t, which it owns from now on.
func NewEngine(t Transport, o Options) *Engine { return &Engine{t: t, o: o} }

// Start begins c and returns at once; c.Notify is told of the end, of
// failures too.
func (e *Engine) Start(c *Call) {}

// Cancel ends c now, unless it has ended: c.Err wraps cause. A late answer is
// counted and dropped.
func (e *Engine) Cancel(c *Call, cause error) {}

// Do starts all calls and waits until all have ended; what became of each is
// in its Err. When ctx ends, so do all open calls, at once, and Do returns
// context.Cause(ctx); otherwise it returns nil. The calls' Notify is Do's.
func (e *Engine) Do(ctx context.Context, calls ...*Call) error { return nil }

// Port reads the facts of the local port afresh.
func (e *Engine) Port() (Port, error) { return e.t.Port() }

// Traits says what the transport does by itself.
func (e *Engine) Traits() Traits { return e.t.Traits() }

// Write: requests that change the fabric are allowed.
func (e *Engine) Write() bool { return e.o.Write }

// Stats are the counts so far.
func (e *Engine) Stats() Stats { return Stats{} }

// Close ends all open calls with ErrClosed and closes the transport.
func (e *Engine) Close() error { return e.t.Close() }
