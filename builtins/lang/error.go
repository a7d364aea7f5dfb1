package lang

import "fmt"

// ownError is an error that a builtin itself detects, in its arguments or in the
// requested operation. The call puts the builtin's name before it. All other errors
// name their operation themselves.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }

// Errorf returns an error that will begin with the name of the builtin that returns it.
func Errorf(format string, args ...any) error { return &ownError{fmt.Errorf(format, args...)} }

// ParamError returns an error about the argument for a parameter.
func ParamError(param, format string, args ...any) error {
	return Errorf("for parameter %s: %w", param, fmt.Errorf(format, args...))
}

// named puts the builtin's name before an ownError.
func (b *Builtin) named(err error) error {
	if own, ok := err.(*ownError); ok {
		return fmt.Errorf("%s: %w", b.Name, own.err)
	}
	return err
}
