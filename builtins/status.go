package builtins

import (
	"context"
	"errors"
	"fabsh/fabric/change"
	"fabsh/mad/engine"
)

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
	case s.Refused() || code == StatusUsage:
		return StatusUsage
	case s.Unanswered() > 0:
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
	switch {
	case errors.As(err, &late), errors.As(err, &me), errors.Is(err, engine.ErrClosed), errors.Is(err, errNoFabric):
		return true
	case cautious(err), errors.As(err, &misfit):
		return false
	case errors.As(err, &te): // a name that nobody has
		return errors.Is(err, errNoSM) || errors.Is(err, errNoLID)
	}
	return errors.As(err, &re)
}
