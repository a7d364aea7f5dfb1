package fabric

import "fmt"

// MisfitError is why something cannot be asked of a node: it is of the wrong
// type, or has no such port or entry. That is for who asks to mend.
type MisfitError struct{ Reason string }

func (e *MisfitError) Error() string { return e.Reason }

func misfit(format string, args ...any) error {
	return &MisfitError{fmt.Sprintf(format, args...)}
}
