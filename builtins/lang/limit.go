package lang

import (
	"context"
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"fabsh/fabric/plural"
)

// LimitError ends a script that exceeds a limit of memory or steps. catch() does not
// catch it.
type LimitError struct{ Reason string }

func (e *LimitError) Error() string { return e.Reason }

// LimitSteps limits the threads of an evaluation to n steps of the interpreter in
// total. After them it is stopped with a LimitError. 0: unlimited.
func LimitSteps(ctx context.Context, n uint64, stop context.CancelCauseFunc) context.Context {
	if n == 0 {
		return ctx
	}
	return context.WithValue(ctx, stepsKey{}, &steps{max: n + 1, stop: stop})
}

// AnySteps returns ctx for a thread whose steps are not limited. It may run at the same
// time as another thread.
func AnySteps(ctx context.Context) context.Context {
	return context.WithValue(ctx, stepsKey{}, (*steps)(nil))
}

type stepsKey struct{}

// steps counts the steps of all threads of an evaluation. One thread runs at a time; it
// continues the common count and passes it to the next.
type steps struct {
	taken, max uint64 // max: the first step that is refused
	stop       context.CancelCauseFunc
}

// enter starts or resumes t.
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

// watch makes t stop at the limit.
func (s *steps) watch(t *starlark.Thread) {
	if s == nil {
		return
	}
	t.SetMaxExecutionSteps(s.max)
	t.OnMaxSteps = func(t *starlark.Thread) {
		err := &LimitError{fmt.Sprintf("limit of %s exceeded by the script; raise --max-steps", plural.Count(int(s.max-1), "step", "steps"))}
		s.stop(err)
		t.Cancel(err.Error())
	}
}

// WithDeadline makes sleeps and reads of files end at the time at, with the error late.
// Requests fail one by one, because the engine is then halted.
func WithDeadline(ctx context.Context, at time.Time, late *DeadlineError) context.Context {
	return context.WithValue(ctx, deadlineKey{}, deadline{at, late})
}

type deadlineKey struct{}

type deadline struct {
	at   time.Time
	late *DeadlineError
}

// untilDeadline returns a context that also ends at the deadline, if there is one.
func untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	d, ok := ctx.Value(deadlineKey{}).(deadline)
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, d.at, d.late)
}
