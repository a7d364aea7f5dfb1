package topology

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/plural"
	"fabsh/mad/engine"
)

// Transact sends calls, waits for all, and counts those that were not answered. It
// returns an error only if the fiber is stopped; the error of a call is in its Err.
func Transact(c *lang.Call, calls []*engine.Call) error {
	e, err := ReaderOf(c)
	if err != nil {
		return err
	}
	err = c.Block(func(ctx context.Context) error { return e.Do(ctx, calls...) })
	for _, call := range calls {
		CountUnanswered(c, call.Err)
	}
	return err
}

// SendProbes sends fabsh's own requests, which do not count for the exit status.
func SendProbes(c *lang.Call, calls []*engine.Call) error {
	e, err := ReaderOf(c)
	if err != nil {
		return err
	}
	return c.Block(func(ctx context.Context) error { return e.Do(ctx, calls...) })
}

// CountUnanswered counts a request that was not answered, for the exit status. A refusal
// by the agent is an answer.
func CountUnanswered(c *lang.Call, err error) {
	if engine.Unanswered(err) {
		c.Fiber().Account.Unanswered++
	}
}

// Results returns a single value, or its failure as an error; for many, the list of all,
// with failures in their places.
func Results(values []starlark.Value, many bool) (starlark.Value, error) {
	if many {
		return starlark.NewList(values), nil
	}
	if e, ok := values[0].(*lang.Failure); ok {
		return nil, e.Err
	}
	return values[0], nil
}

// manyRequests is how many requests a note on standard error is worth: some seconds on a live
// fabric.
const manyRequests = 10000

// AnnounceRequests returns a function that shows how many requests for tables of adaptive
// routing are about to be sent.
func AnnounceRequests(c *lang.Call) func(requests int) {
	return func(requests int) {
		text := c.Name + ": " + plural.Count(requests, "request", "requests") + " for tables of adaptive routing"
		c.Runtime().Progress(text)
		if requests >= manyRequests {
			c.Fiber().Note("%s", text)
		}
	}
}
