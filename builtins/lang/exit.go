package lang

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"

	"fabsh/fabric/plural"
)

// Exit statuses.
const (
	StatusClean       = 0   // nothing to report
	StatusFindings    = 1   // findings, or exit(1)
	StatusUsage       = 2   // usage or script error
	StatusFabric      = 3   // fabric or host error (no answer, no device)
	StatusInterrupted = 130 // Ctrl-C
)

// ErrInterrupted is the cause with which the shell cancels a context when the
// user interrupts.
var ErrInterrupted = errors.New("interrupted")

// DeadlineError is the error after the session's deadline: first the halted engine returns
// it, later it is the cause with which the shell cancels a context.
type DeadlineError struct{ After time.Duration }

func (e *DeadlineError) Error() string { return fmt.Sprintf("deadline of %v passed", e.After) }

// ExitError ends a script on behalf of exit(). It is not a failure, and catch() does
// not catch it.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit(%d)", e.Code) }

// RefusalError is the refusal to change a fabric. catch() does not catch it.
type RefusalError struct{ Reason string }

func (e *RefusalError) Error() string { return e.Reason }

// StopError is the end of a fiber whose context has ended.
type StopError struct {
	Cause error
	At    error // the place where it stopped; nil if unknown
}

func (e *StopError) Error() string { return e.Cause.Error() }
func (e *StopError) Unwrap() []error {
	if e.At == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.At}
}

// Exit is exit().
var Exit = Builtin{
	Name:   "exit",
	Group:  GroupRest,
	Params: []Param{{Name: "code", Kind: KindInt, Default: "0", Doc: "exit status, 0..255; 1 means findings"}},
	Doc: `Ends the script with an exit status.
catch and parallel do not stop it. The status is nevertheless 3 if a request of the script was not answered (see catch).`,
	Example: `
> exit(0)
`,
	Run: Do(func(c *Call, a *struct{ Code int }) (starlark.Value, error) {
		if a.Code < 0 || a.Code > 255 {
			return nil, ParamError("code", "got %d, want 0..255", a.Code)
		}
		return nil, &ExitError{Code: a.Code}
	}),
	Bare: func(*Runtime) error { return &ExitError{} },
}

// NotExit returns err, the error of a function that must return a value or continue.
// exit() in it would end the command with the exit status of work that is not done, so it
// becomes an ordinary error; why is the cause and the remedy.
func NotExit(err error, why string) error {
	var exit *ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%v: %s", exit, why)
	}
	return err
}

// Catchable reports whether err is a failure that catch may turn into a value.
func Catchable(f *Fiber, err error) bool {
	var exit *ExitError
	var refusal *RefusalError
	var limit *LimitError
	return f.Context.Err() == nil && !errors.As(err, &exit) && !errors.As(err, &refusal) && !errors.As(err, &limit)
}

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

// AnySteps returns ctx for a thread whose steps are not limited. The thread may run at the
// same time as another one.
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

// Activity distinguishes a script that waits or writes from one that only computes.
type Activity struct {
	waiting atomic.Int32 // fibers in Block
	last    atomic.Int64 // time of the last write or end of a wait: nanoseconds since 1970
}

// Note records that the script did something other than compute.
func (a *Activity) Note() { a.last.Store(time.Now().UnixNano()) }

// wait records that a fiber waits, until done is called.
func (a *Activity) wait() (done func()) {
	a.waiting.Add(1)
	return func() {
		a.Note() // before it counts as computing
		a.waiting.Add(-1)
	}
}

// Last returns the time of the last Note.
func (a *Activity) Last() time.Time { return time.Unix(0, a.last.Load()) }

// Waits reports whether a fiber waits.
func (a *Activity) Waits() bool { return a.waiting.Load() > 0 }
