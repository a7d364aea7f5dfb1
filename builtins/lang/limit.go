package lang

import (
	"context"
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"fabsh/fabric/plural"
)

// LimitError is why the shell ends a script that needs more memory or steps than
// it may have. Nothing catches it.
type LimitError struct{ Reason string }

func (e *LimitError) Error() string { return e.Reason }

// LimitSteps gives the threads of an evaluation n steps of the interpreter in all.
// After them it is stopped with a LimitError. 0: there is no limit.
func LimitSteps(ctx context.Context, n uint64, stop context.CancelCauseFunc) context.Context {
	if n == 0 {
		return ctx
	}
	return context.WithValue(ctx, stepsKey{}, &steps{max: n + 1, stop: stop})
}

// AnySteps is ctx for a thread that takes no steps of the evaluation's: it may run at
// the same time as another.
func AnySteps(ctx context.Context) context.Context {
	return context.WithValue(ctx, stepsKey{}, (*steps)(nil))
}

type stepsKey struct{}

// steps counts those of all threads of an evaluation, of which one runs at a
// time: whoever runs has the common count, and hands it on.
type steps struct {
	taken, max uint64 // max: the step that is not taken
	stop       context.CancelCauseFunc
}

// enter begins or resumes t.
func (s *steps) enter(t *starlark.Thread) {
	if s != nil {
		t.Steps = s.taken
	}
}

// leave ends or suspends t.
func (s *steps) leave(t *starlark.Thread) {
	if s != nil {
		s.taken = t.Steps
	}
}

// watch has t stop at the limit.
func (s *steps) watch(t *starlark.Thread) {
	if s == nil {
		return
	}
	t.SetMaxExecutionSteps(s.max)
	t.OnMaxSteps = func(t *starlark.Thread) {
		err := &LimitError{fmt.Sprintf("the script takes more than %s: allow more with --max-steps", plural.Count(int(s.max-1), "step", "steps"))}
		s.stop(err)
		t.Cancel(err.Error())
	}
}

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
