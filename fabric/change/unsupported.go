package change

import "fmt"

// UnsupportedError is why something cannot be asked of a node: it is of the wrong
// type, or has no such port or entry. That is for who asks to mend.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}
