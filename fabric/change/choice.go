package change

import "fmt"

// Choice says which of the tables that a policy stands for a plan leads to.
type Choice struct {
	Kind ChoiceKind
	// Load is how many pairs share the link that most do, and OwnLoad that with the policy's
	// own tables.
	Load, OwnLoad int64
	// Unproven is that no proven order was found for any of the tables: these are the
	// first. A file does not hold it.
	Unproven bool
}

// ChoiceKind is how tables came about.
type ChoiceKind uint8

const (
	Own        ChoiceKind = iota // by the policy itself
	Kept                         // by the policy, with entries in force kept where it allows that
	Repaired                     // those in force, repaired
	Compatible                   // paths of the policy, of those in force, and others
)

// choiceNames are the kinds as files and scripts have them.
var choiceNames = [...]string{"own", "kept", "repaired", "compatible"}

// Name is the kind as files and scripts have it.
func (k ChoiceKind) Name() string { return choiceNames[k] }

func (k ChoiceKind) String() string {
	return [...]string{
		"the policy's own tables",
		"the policy's tables with entries in force kept",
		"the tables in force, repaired",
		"the policy's paths where they are compatible with those in force",
	}[k]
}

func (c *Choice) String() string {
	if c.Kind == Own {
		return "target: " + c.Kind.String()
	}
	return fmt.Sprintf("target: %v (most pairs on a link: %d, with the policy's own tables %d)", c.Kind, c.Load, c.OwnLoad)
}
