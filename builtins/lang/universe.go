package lang

import (
	"fmt"

	"go.starlark.net/starlark"
)

// maxElements is how many elements of an iterable a function of the language
// takes at once: 2 GiB of values.
const maxElements = 1 << 27

// A Byter has bytes, which bytes() returns.
type Byter interface{ Bytes() starlark.Bytes }

// Some functions of the language make room for all elements beforehand, and range
// says that it has as many as one likes. Memory that the kernel refuses ends a Go
// program with pages of traceback, so they refuse.
func init() {
	for _, name := range []string{"bytes", "enumerate", "list", "reversed", "set", "sorted", "tuple", "zip"} {
		f := starlark.Universe[name].(*starlark.Builtin)
		starlark.Universe[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) == 1 && len(kwargs) == 0 && name == "bytes" {
				if x, ok := args[0].(Byter); ok {
					return x.Bytes(), nil
				}
			}
			for _, arg := range args {
				if n := starlark.Len(arg); n > maxElements {
					return nil, fmt.Errorf("%s: %d elements are too many at once, more than %d", name, n, maxElements)
				}
			}
			return f.CallInternal(t, args, kwargs)
		})
	}
}
