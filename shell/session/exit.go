package session

import (
	"errors"
	"fmt"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

// An error is one line on stderr, with one form: `OPERATION: [TARGET:] CAUSE[; REMEDY]`. The operation
// is the command ("change plan"), or fabsh without one; commands do not write their names, Named adds
// them. What the command line names and cannot be used, such as a file that is missing or
// damaged, is wrong usage, exit status 2; HostError is exit status 3.

// HostError is a failure of the host or of the fabric, not of the command.
type HostError struct{ Err error }

func (e *HostError) Error() string { return e.Err.Error() }
func (e *HostError) Unwrap() error { return e.Err }

// Late makes the end of the time a failure of the host: the writer of a pipe was late.
func Late(err error) error {
	var d *lang.DeadlineError
	if errors.As(err, &d) {
		return &HostError{d}
	}
	return err
}

// Exit returns the error by which a command ends with a status and no further message;
// nil for status 0.
func Exit(status int) error {
	if status == lang.StatusClean {
		return nil
	}
	return &lang.ExitError{Code: status}
}

// Worse returns the exit status that counts when both apply: 130 before 2 before 3
// before all others.
func Worse(a, b int) int {
	rank := func(status int) int {
		switch status {
		case lang.StatusClean:
			return 0
		case lang.StatusFabric:
			return 2
		case lang.StatusUsage:
			return 3
		case lang.StatusInterrupted:
			return 4
		}
		return 1
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// noCommand is the operation of errors without a command, and of what limits the whole program.
const noCommand = "fabsh"

// Named returns err with its operation, a command or "" for fabsh, before the text. The errors of
// scripts name a function or a position instead; an interruption is no error.
func Named(operation string, err error) error {
	var exit *lang.ExitError
	var bug *lang.BugError
	var late *lang.DeadlineError
	switch {
	case err == nil, errors.Is(err, lang.ErrInterrupted), errors.As(err, &exit), errors.As(err, &bug), check.HasPosition(err):
		return err
	case operation == "" || errors.As(err, &late) && late.Error() == err.Error():
		operation = noCommand
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// Fail writes an error of the command line, of opening the fabric or of the end, and returns its exit
// status; it does not write the errors that Exit returns.
func (p *Program) Fail(err error) (status int) { return p.Console.Fail(Named(p.Operation, err)) }

// Fail writes an error, which Named has named, and returns its exit status; it does not write the
// errors that Exit returns.
func (c *Console) Fail(err error) (status int) {
	var exit *lang.ExitError
	var host *HostError
	switch {
	case err == nil:
		return lang.StatusClean
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, lang.ErrInterrupted):
		fmt.Fprintln(c.Err(), lang.ErrInterrupted)
		return lang.StatusInterrupted
	}
	fmt.Fprintln(c.Err(), err)
	if errors.As(err, &host) {
		return lang.StatusFabric
	}
	return lang.StatusUsage
}
