package audits

import (
	"context"
	"errors"
	"slices"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/device"
	"fabsh/fabric/sa"
	"fabsh/mad/engine"
)

// ExitStatus returns the exit status of a session after an evaluation that ended
// with err. If several apply, the order is 130, 2, 3, then the rest.
func ExitStatus(r *lang.Runtime, err error) int {
	code := lang.StatusClean
	var exit *lang.ExitError
	var refusal *lang.RefusalError
	switch {
	case err == nil:
	case isInterrupted(err):
		return lang.StatusInterrupted
	case errors.As(err, &exit):
		code = exit.Code
	case errors.As(err, &refusal):
		return lang.StatusUsage
	case isFabricError(err):
		code = lang.StatusFabric
	default:
		return lang.StatusUsage
	}
	switch {
	case r.Refused() || code == lang.StatusUsage:
		return lang.StatusUsage
	case r.Unanswered() > 0:
		return lang.StatusFabric
	}
	return code
}

// isInterrupted reports whether err is of a session that was interrupted.
func isInterrupted(err error) bool {
	return errors.Is(err, lang.ErrInterrupted) || errors.Is(err, context.Canceled)
}

// isFabricError reports whether err is an error of the fabric or the host, not of the script.
func isFabricError(err error) bool {
	var me *engine.Error
	var re *topology.RequestError
	var te *topology.TargetError
	var late *lang.DeadlineError
	var unsupported *device.UnsupportedError
	var unsent *apply.FabricError
	var pkey *sa.PKeyError
	var state *StateError
	switch {
	case errors.As(err, &unsent), errors.As(err, &state), errors.As(err, &late), errors.As(err, &me), errors.Is(err, engine.ErrClosed), errors.Is(err, topology.ErrNoFabric), errors.Is(err, audit.ErrCut), errors.Is(err, audit.ErrUnmanaged), errors.Is(err, sa.ErrNoSM):
		return true
	case topology.Cautious(err), errors.As(err, &unsupported), errors.As(err, &pkey):
		return false
	case errors.As(err, &te): // an unknown name
		return errors.Is(err, topology.ErrNoLID) || errors.Is(err, topology.ErrLIDUnread)
	}
	return errors.As(err, &re)
}

// RunStatus returns the exit status of a run: 1 for findings of at least failOn, 3 for requests
// without an answer, audits that did not run, and audits requested by name that judged nothing, 2 for errors of an audit.
func RunStatus(r *audit.Report, failOn audit.Severity) int {
	code := lang.StatusClean
	if r.Worst() >= failOn {
		code = lang.StatusFindings
	}
	if !r.Answered() || slices.ContainsFunc(r.Idle, func(i audit.Idle) bool { return i.Named }) {
		code = lang.StatusFabric
	}
	for _, f := range r.Failures {
		if !f.Skipped && !isFabricError(f.Err) {
			code = lang.StatusUsage
		}
	}
	return code
}
