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
	const many = "1099511627776 elements are too many at once; the maximum is 134217728"
	for _, name := range []string{"all", "any", "bytes", "enumerate", "list", "max", "min", "reversed", "set", "sorted", "tuple", "zip"} {
		if got, want := run(fmt.Sprintf("%s(range(1 << 40))", name)), name+": "+many; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for src, want := range map[string]string{
		"zip([1], range(1 << 40))":                               "zip: " + many,
		"tuple()":                                                "()",
		"sorted([3, 1], key=lambda x: -x)":                       "[3, 1]",
		"list(zip(range(2), enumerate('ab'.elems())))":           `[(0, (0, "a")), (1, (1, "b"))]`,
		"sorted(3)":                                              "sorted: for parameter iterable: got int, want iterable",
		"[x.replace('y', x) for x in ['y' * (1 << 24)]]":         "replace: the result would be longer than 1 GiB: 16777216 times 16777216 bytes for 1",
		"[len(x.replace('y', x, 3)) for x in ['y' * (1 << 24)]]": "[67108861]",
		"'a.b.c'.replace('.', '--', 1)":                          `"a--b.c"`,
		"'abc'.replace('', '-')":                                 `"-a-b-c-"`,
		"'abc'.replace('bc', '')":                                `"a"`,
		"'abc'.replace('b')":                                     "replace: got 1 arguments, want at least 2",
		"zip(*([range(1 << 20)] * 1024))":                        "zip: 1073741824 elements are too many at once; the maximum is 134217728",
		"zip()":                                                  "[]",
		"max(range(9)), min(2, 1, key=lambda x: -x)":             "(8, 2)",
	} {
		if got := run(src); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}
