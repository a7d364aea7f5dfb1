package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"fabsh/fabric/plural"
)

// maxTexts is how many requests for texts may wait: they take milliseconds each.
const maxTexts = 64

// queue lets one request run at a time, and a limited number wait.
type queue struct {
	slot    chan struct{}
	max     int32 // that may wait
	waiting *atomic.Int32
}

func newQueue(waiting int) queue {
	return queue{make(chan struct{}, 1), int32(waiting), new(atomic.Int32)}
}

// errBusy means that too many requests wait.
var errBusy = errors.New("busy")

// enter waits for its turn, until ctx ends; leave ends the turn. The error is errBusy if too many
// requests wait.
func (q *queue) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-q.slot }
	select {
	case q.slot <- struct{}{}:
		return leave, nil
	default:
	}
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > q.max {
		return nil, fmt.Errorf("%w: a call runs, and %s; call again when they have ended", errBusy, plural.Count(int(q.max), "call waits", "calls wait"))
	}
	select {
	case q.slot <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
