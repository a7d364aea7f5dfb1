package apply

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
)

// ForeignError: blocks are neither as before nor as after the change. Nothing was
// written over them.
type ForeignError struct {
	Cells []string // which, and what they are
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s neither as before nor as after the change, and nothing is written over what somebody else wrote: %s",
		fabric.Plural(len(e.Cells), "block is", "blocks are"), strings.Join(firstOf(e.Cells), "; "))
}

// CheckError: what must not happen happened between two rounds.
type CheckError struct{ Reason string }

func (e *CheckError) Error() string { return e.Reason }

// SilentError: cells could not be read or written.
type SilentError struct {
	Count int
	First error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%s could not be read or written: %v", fabric.Plural(e.Count, "block", "blocks"), e.First)
}
func (e *SilentError) Unwrap() error { return e.First }

// firstOf are the first few of a list, and how many there are more.
func firstOf(list []string) []string {
	const few = 5
	if len(list) <= few {
		return list
	}
	return append(slices.Clone(list[:few]), fmt.Sprintf("and %d more", len(list)-few))
}

// stale is why a change is not begun: its cells are not as when it was planned.
func stale(cells []*Cell, states []State) error {
	var changed []string
	made := true
	for i, s := range states {
		if made = made && s == New; s != Old {
			changed = append(changed, fmt.Sprintf("%s is %v", cells[i].Name, s))
		}
	}
	switch {
	case made:
		return errNothing
	case changed != nil:
		return fmt.Errorf("the plan is stale: %s not as when it was made, and nothing is sent: %s; plan it anew", fabric.Plural(len(changed), "block is", "blocks are"), strings.Join(firstOf(changed), "; "))
	}
	return nil
}
