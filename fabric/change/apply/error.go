package apply

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/plural"
)

// ForeignError: blocks are neither as before nor as after the change. Nothing was
// written over them.
type ForeignError struct {
	Cells []string // which, and what they are
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s neither as before nor as after the change, and nothing is written over what somebody else wrote: %s",
		plural.Count(len(e.Cells), "block is", "blocks are"), firstOf(5, e.Cells))
}

// CheckError: what must not happen happened between two rounds.
type CheckError struct{ Reason string }

func (e *CheckError) Error() string { return e.Reason }

// FabricError reports that the fabric or this host, and not the plan, is why nothing was
// sent.
type FabricError struct{ Err error }

func (e *FabricError) Error() string { return e.Err.Error() }
func (e *FabricError) Unwrap() error { return e.Err }

// SilentError: cells could not be read or written.
type SilentError struct {
	Count int
	First error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%s could not be read or written: %v", plural.Count(e.Count, "block", "blocks"), e.First)
}
func (e *SilentError) Unwrap() error { return e.First }

// firstOf joins the first few of a list, and says how many more there are.
func firstOf(few int, list []string) string {
	if len(list) > few {
		list = append(slices.Clone(list[:few]), fmt.Sprintf("and %d more", len(list)-few))
	}
	return strings.Join(list, "; ")
}
