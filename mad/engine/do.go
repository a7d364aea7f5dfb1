package engine

import (
	"context"
	"slices"
	"sync/atomic"
)

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
