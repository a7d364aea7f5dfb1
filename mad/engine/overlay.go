package engine

import "context"

// An Overlay stands between calls and the fabric while changes are planned, not
// made: it keeps the requests that would change something, and has answers show
// what they would have written. Its methods may be called at the same time.
type Overlay interface {
	// Ask is told of each request before it is sent. It may make it another one,
	// which only reads; the error is why the request must not be sent.
	Ask(c *Call) error
	// Answer is told of the end of each request that Ask let pass, before who
	// asked is. It may change the answer, or return an error in its place. It must
	// not block.
	Answer(c *Call) error
	// Before are requests whose answers it wants to have seen before calls are
	// started.
	Before(calls []*Call) []*Call
}

// SetOverlay puts o over the fabric, for all calls started from now on; nil: calls
// reach the fabric again.
func (e *Engine) SetOverlay(o Overlay) {
	if o == nil {
		e.overlay.Store(nil)
	} else {
		e.overlay.Store(&o)
	}
}

// Overlay is what stands over the fabric; nil: nothing does. Where something does,
// there is no use in waiting for what a Set leads to.
func (e *Engine) Overlay() Overlay {
	if o := e.overlay.Load(); o != nil {
		return *o
	}
	return nil
}

// before starts what the overlay wants to have seen before calls are started.
func (e *Engine) before(ctx context.Context, calls []*Call) error {
	o := e.Overlay()
	if o == nil {
		return nil
	}
	cause, _ := ctx.Value(causeKey{}).(*Cause)
	for _, c := range calls {
		c.Cause = cause
	}
	first := o.Before(calls)
	if len(first) == 0 {
		return nil
	}
	return e.do(ctx, first)
}

// Cause is what a call is made for.
type Cause struct {
	Line string // of a script: "maintenance.star:12:5"
	// Place orders causes, number by number: what begins another comes before it.
	Place []int
}

// WithCause has the calls of Do under the context carry what they are made for.
func WithCause(ctx context.Context, cause Cause) context.Context {
	return context.WithValue(ctx, causeKey{}, &cause)
}

type causeKey struct{}
