package lang

import (
	"fmt"
	"testing"

	"go.starlark.net/starlark"
)

// TestTooManyElements: no function of the language asks for terabytes, and all
// else they do as ever.
func TestTooManyElements(t *testing.T) {
	run := func(src string) string {
		v, err := starlark.EvalOptions(FileOptions(), new(starlark.Thread), "x.star", src, nil)
		if err != nil {
			return err.Error()
		}
		return v.String()
	}
	const many = "1099511627776 elements are too many at once, more than 134217728"
	for _, name := range []string{"bytes", "enumerate", "list", "reversed", "set", "sorted", "tuple", "zip"} {
		if got, want := run(fmt.Sprintf("%s(range(1 << 40))", name)), name+": "+many; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for src, want := range map[string]string{
		"zip([1], range(1 << 40))":                     "zip: " + many,
		"tuple()":                                      "()",
		"sorted([3, 1], key=lambda x: -x)":             "[3, 1]",
		"list(zip(range(2), enumerate('ab'.elems())))": `[(0, (0, "a")), (1, (1, "b"))]`,
		"sorted(3)":                                    "sorted: for parameter iterable: got int, want iterable",
	} {
		if got := run(src); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}
