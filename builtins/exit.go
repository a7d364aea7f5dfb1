package builtins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"fabsh/fabric/change"
	"fabsh/fabric/sa"
	"fabsh/mad/engine"
)

// Exit statuses.
const (
	StatusClean       = 0   // nothing to report
	StatusFindings    = 1   // findings, or exit(1)
	StatusUsage       = 2   // the command or script is to be fixed
	StatusFabric      = 3   // the fabric or host is to be looked at
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

// stopError is the end of a fiber whose context has ended.
type stopError struct {
	cause error
	at    error // where it stopped; nil if unknown
}

func (e *stopError) Error() string { return e.cause.Error() }
func (e *stopError) Unwrap() []error {
	if e.at == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.at}
}

var exitBuiltin = Builtin{
	Name:   "exit",
	Group:  groupRest,
	Params: []Param{{Name: "code", Kind: KindInt, Default: "0", Doc: "0..255; 1 means findings"}},
	Doc: `Ends the script with an exit status.
Neither catch nor parallel stops it. The status is 3 all the same when a MAD that the script asked for got no answer (see catch).`,
	Example: `
> exit(0)
`,
	fn: func(c *call) (starlark.Value, error) {
		code := c.Int("code")
		if code < 0 || code > 255 {
			return nil, c.paramError("code", "got %d, want 0..255", code)
		}
		return nil, &ExitError{Code: code}
	},
	bare: func(*Session) error { return &ExitError{} },
}

// catchable: err is a failure that catch may turn into a value.
func catchable(f *fiber, err error) bool {
	var exit *ExitError
	var refusal *RefusalError
	return f.ctx.Err() == nil && !errors.As(err, &exit) && !errors.As(err, &refusal)
}

// ExitStatus is the exit status of the session after an evaluation that ended
// with err. When several apply, 130 goes before 2 before 3 before the rest.
func (s *Session) ExitStatus(err error) int {
	code := StatusClean
	var exit *ExitError
	var refusal *RefusalError
	switch {
	case err == nil:
	case interrupted(err):
		return StatusInterrupted
	case errors.As(err, &exit):
		code = exit.Code
	case errors.As(err, &refusal):
		return StatusUsage
	case fabricFailure(err):
		code = StatusFabric
	default:
		return StatusUsage
	}
	switch {
	case s.refused || code == StatusUsage:
		return StatusUsage
	case s.account.unanswered > 0:
		return StatusFabric
	}
	return code
}

func interrupted(err error) bool {
	return errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled)
}

// fabricFailure: err tells of the fabric or the host, not of the script.
func fabricFailure(err error) bool {
	var me *engine.Error
	var re *requestError
	var te *targetError
	var late *DeadlineError
	var misfit *change.UnsupportedError
	var pkey *sa.PKeyError
	switch {
	case errors.As(err, &late), errors.As(err, &me), errors.Is(err, engine.ErrClosed), errors.Is(err, errNoFabric), errors.Is(err, sa.ErrNoSM):
		return true
	case cautious(err), errors.As(err, &misfit), errors.As(err, &pkey):
		return false
	case errors.As(err, &te): // a name that nobody has
		return errors.Is(err, errNoLID)
	}
	return errors.As(err, &re)
}

// errNoFabric ends what needs a live fabric in a session that has none.
var errNoFabric = errors.New("no live fabric")
