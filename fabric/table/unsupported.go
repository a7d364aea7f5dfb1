package table

import "fmt"

// UnsupportedError is why a node cannot do what is asked of it: it is of another
// type, or has no such port or entry. The request is wrong, not the node.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}
