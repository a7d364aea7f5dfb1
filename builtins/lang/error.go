package lang

import "fmt"

// ownError is what a builtin itself finds wrong: with its arguments, or with
// what it was asked to do. The call puts the builtin's name before it. All
// other errors say by themselves who failed.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }

// Errorf makes an error that begins with the name of the builtin it comes out
// of.
func Errorf(format string, args ...any) error { return &ownError{fmt.Errorf(format, args...)} }

// ParamError says what is wrong with the argument for a parameter.
func ParamError(param, format string, args ...any) error {
	return Errorf("for parameter %s: %w", param, fmt.Errorf(format, args...))
}

// named puts the builtin's name before an error of its own.
func (b *Builtin) named(err error) error {
	if own, ok := err.(*ownError); ok {
		return fmt.Errorf("%s: %w", b.Name, own.err)
	}
	return err
}
