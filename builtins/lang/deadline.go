package lang

import (
	"context"
	"time"
)

// WithDeadline has sleeps and the reading of files end at the time at, with late.
// Requests end by themselves, with an error for each: the engine is halted then.
func WithDeadline(ctx context.Context, at time.Time, late *DeadlineError) context.Context {
	return context.WithValue(ctx, deadlineKey{}, deadline{at, late})
}

type deadlineKey struct{}

type deadline struct {
	at   time.Time
	late *DeadlineError
}

// untilDeadline is ctx that ends at the deadline too, if there is one.
func untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	d, ok := ctx.Value(deadlineKey{}).(deadline)
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, d.at, d.late)
}
