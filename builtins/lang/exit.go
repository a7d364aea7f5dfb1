package lang

import (
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"
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

// DeadlineError is the error after the session's deadline: first that of the halted
// engine, later the cause with which the shell cancels a context.
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
