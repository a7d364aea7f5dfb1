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

// DeadlineError is why the engine lets nothing through any more (its Halt),
// and later the cause with which the shell cancels a context: the session's
// time is up.
type DeadlineError struct{ After time.Duration }

func (e *DeadlineError) Error() string { return fmt.Sprintf("deadline of %v passed", e.After) }

// ExitError is how exit() ends a script. It is no failure, and nothing catches it.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit(%d)", e.Code) }

// RefusalError is the refusal to change a fabric. Nothing catches it.
type RefusalError struct{ Reason string }

func (e *RefusalError) Error() string { return e.Reason }

// StopError is the end of a fiber whose context has ended.
type StopError struct {
	Cause error
	At    error // where it stopped; nil if unknown
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
	Params: []Param{{Name: "code", Kind: KindInt, Default: "0", Doc: "0..255; 1 means findings"}},
	Doc: `Ends the script with an exit status.
Neither catch nor parallel stops it. The status is 3 all the same when a MAD that the script asked for got no answer (see catch).`,
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

// NotExit is err of a function that is to return something, or has to go on. exit()
// there would end the command with the status of what it has not done. why says what
// was expected instead.
func NotExit(err error, why string) error {
	var exit *ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%v ends a script, %s", exit, why)
	}
	return err
}

// catchable: err is a failure that catch may turn into a value.
func Catchable(f *Fiber, err error) bool {
	var exit *ExitError
	var refusal *RefusalError
	var limit *LimitError
	return f.Context.Err() == nil && !errors.As(err, &exit) && !errors.As(err, &refusal) && !errors.As(err, &limit)
}
