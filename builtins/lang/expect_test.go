package lang

import (
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// TestShownValueIsCut: a failure does not show megabytes.
func TestShownValueIsCut(t *testing.T) {
	got := shownValue(starlark.String(strings.Repeat("ä", 5000)))
	if want := `"` + strings.Repeat("ä", 999) + "... (10002 bytes in total)"; got != want {
		t.Errorf("got %s", got)
	}
}

// TestDifferenceEnds: it is not looked for without end.
func TestDifferenceEnds(t *testing.T) {
	nest := func(n int) starlark.Value {
		v := starlark.Value(starlark.MakeInt(n))
		for range 120 {
			v = starlark.NewList([]starlark.Value{v})
		}
		return v
	}
	got := difference(nest(1), nest(2), 0)
	if want := "at " + strings.Repeat("[0]", maxDifferenceDepth) + ": got "; !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
}
