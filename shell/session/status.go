package session

import (
	"errors"
	"fmt"

	"fabsh/builtins/lang"
)

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

// Fail writes an error of the command line or of opening the fabric, and returns its
// exit status; it does not write the errors that Exit returns.
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
	fmt.Fprintf(c.Err(), "fabsh: %v\n", err)
	if errors.As(err, &host) {
		return lang.StatusFabric
	}
	return lang.StatusUsage
}
