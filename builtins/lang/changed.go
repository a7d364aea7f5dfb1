package lang

import (
	"strings"

	"go.starlark.net/starlark"
)

// Changed is a value that a function may have changed in the fabric. As text, it shows what
// changed; the other formats have the whole value.
type Changed interface {
	starlark.Value
	// Changes returns a line for each change; nil: no function has changed the value.
	Changes() []string
}

// renderChanges renders values that were changed, or the failures of some; false: there are
// others.
func renderChanges(list []starlark.Value, width int) (string, bool) {
	var b strings.Builder
	changed := false
	for _, v := range list {
		var lines []string
		switch v := v.(type) {
		case Changed:
			lines = v.Changes()
			changed = changed || lines != nil
		case *Failure:
			target := v.row("")[0]
			lines = []string{target.Cell() + ": error: " + OneLine(v.brief())}
		}
		if lines == nil {
			return "", false
		}
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return Fit(b.String(), width), changed
}
