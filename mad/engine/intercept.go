package engine

import "context"

// An Interceptor stands between calls and the fabric, as while changes are planned, not
// made: it keeps the requests that would change something, and has answers show what they
// would have written. Several goroutines may call its methods at the same time; it must
// not keep a Call after the function that Request returned has run.
type Interceptor interface {
	// Request is called for each request before it is sent, with the context of its Do
	// (context.Background for that of Start). It may make it another one, which only
	// reads; the error is why the request must not be sent. The function is called at
	// its end, before who asked is told: it may change the answer, or return an error in
	// its place. It must not block. Nil: the answer stays as it is.
	Request(ctx context.Context, c *Call) (answered func(*Call) error, err error)
	// Before returns requests whose answers it wants to have seen before calls are
	// started.
	Before(calls []*Call) []*Call
}

// SetInterceptor has all calls started from now on pass i; nil: calls reach the fabric
// again.
func (e *Engine) SetInterceptor(i Interceptor) {
	if i == nil {
		e.interceptor.Store(nil)
	} else {
		e.interceptor.Store(&i)
	}
}

// Interceptor returns what calls pass; nil: nothing. Where there is one, there is no use
// in waiting for what a Set leads to.
func (e *Engine) Interceptor() Interceptor {
	if i := e.interceptor.Load(); i != nil {
		return *i
	}
	return nil
}

// before starts what the interceptor wants to have seen before calls are started.
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
