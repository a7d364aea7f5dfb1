package engine

import "context"

// An Interceptor is between calls and the fabric, for example while changes are planned
// but not applied: it keeps the requests that would change something, and makes answers
// show what they would have written. Several goroutines may call its methods at the same
// time; it must not keep a Call after the function that Request returned has run.
type Interceptor interface {
	// Request is called for each request before it is sent, with the context of its Do
	// (context.Background for that of Start). It may replace it by another one that only
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
