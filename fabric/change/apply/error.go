package apply

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/plural"
)

// ForeignError reports blocks that are neither as before nor as after the change. They
// were not overwritten.
type ForeignError struct {
	Cells []string // names and contents
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s neither as before nor as after the change; blocks of another writer are not overwritten: %s",
		plural.Count(len(e.Cells), "block is", "blocks are"), firstOf(5, e.Cells))
}

// CheckError reports a failed check between two rounds.
type CheckError struct{ Reason string }

func (e *CheckError) Error() string { return e.Reason }

// FabricError reports that nothing was sent because of the fabric or this host, not
// because of the plan.
type FabricError struct{ Err error }

func (e *FabricError) Error() string { return e.Err.Error() }
func (e *FabricError) Unwrap() error { return e.Err }

// AccessError reports cells that could not be read or written.
type AccessError struct {
	Count int
	First error
}

func (e *AccessError) Error() string {
	return fmt.Sprintf("%s could not be read or written: %v", plural.Count(e.Count, "block", "blocks"), e.First)
}
func (e *AccessError) Unwrap() error { return e.First }

// firstOf joins the first few items of a list, and states how many more exist.
func firstOf(few int, list []string) string {
	if len(list) > few {
		list = append(slices.Clone(list[:few]), fmt.Sprintf("and %d more", len(list)-few))
	}
	return strings.Join(list, "; ")
}
