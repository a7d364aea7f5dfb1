package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/plural"
	"fabsh/fabric/sa"
)

// ForeignError reports blocks that are neither as before nor as after the change, or not as it
// wrote or found them. They were not overwritten.
type ForeignError struct {
	Cells []string // names and contents
	Moved bool     // some are as before or after the change, and should be the other
}

func (e *ForeignError) Error() string {
	state := "neither as before nor as after the change"
	if e.Moved {
		state = "not as the change wrote or found them"
		if len(e.Cells) == 1 {
			state = "not as the change wrote or found it"
		}
	}
	return fmt.Sprintf("%s %s; blocks of another writer are not overwritten: %s", plural.Count(len(e.Cells), "block is", "blocks are"), state, firstOf(5, e.Cells))
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

// StaleError reports that the fabric has changed since a plan was made.
type StaleError struct {
	Plan  string   // the name of the plan in messages
	Since []string // what has changed
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s is stale: the fabric has changed since it was made: %s; make the plan again", e.Plan, firstOf(8, e.Since))
}

// firstOf joins the first few items of a list, and states how many more exist.
func firstOf(few int, list []string) string {
	if len(list) > few {
		list = append(slices.Clone(list[:few]), fmt.Sprintf("and %d more", len(list)-few))
	}
	return strings.Join(list, "; ")
}

// checkFingerprint returns a *StaleError if f, which was just swept, or its subnet
// manager differs from the state when p was made.
func checkFingerprint(p *change.Plan, f *fabric.Fabric, manager *sa.SM, name string) error {
	now := change.FingerprintOf(f, manager)
	if since := p.Base.Since(&now); len(since) > 0 {
		return &StaleError{name, since}
	}
	return nil
}

// checkCells returns the reason that a change is not started: its cells differ from the
// state when it was planned. It returns errNothing if all cells are as after the change.
func checkCells(blocks []Block) error {
	var changed []string
	made := true
	for _, b := range blocks {
		if made = made && b.State == New; b.State != Old {
			changed = append(changed, fmt.Sprintf("%s is %v", b.Text, b.State))
		}
	}
	switch {
	case made:
		return errNothing
	case changed != nil:
		return fmt.Errorf("the plan is stale: %s not as when it was made; nothing was sent: %s; make the plan again", plural.Count(len(changed), "block is", "blocks are"), firstOf(5, changed))
	}
	return nil
}

// errNothing reports that all cells are as after the change already.
var errNothing = errors.New("nothing to do")
