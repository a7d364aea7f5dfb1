package routing

import (
	"context"
	"sync"
	"sync/atomic"
)

// each calls do for 0..n-1 on all workers. Each worker has a number, for memory of its
// own. When ctx ends it returns early, with the cause.
func (g *Graph) each(ctx context.Context, n int, do func(worker, i int)) error {
	workers := min(g.workers, n)
	if workers <= 1 {
		for i := range n {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			do(0, i)
		}
		return context.Cause(ctx)
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(worker, i)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}
