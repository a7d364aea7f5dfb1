package lang

import (
	"fmt"

	"go.starlark.net/starlark"
)

// maxElements is the maximum number of elements that a function of the language takes
// at once: 2 GiB of values.
const maxElements = 1 << 27

// tooMany returns an error if n elements are too many to allocate at once.
func tooMany(n int) error {
	if n > maxElements {
		return fmt.Errorf("%d elements are too many at once; the maximum is %d", n, maxElements)
	}
	return nil
}

// A Byter has bytes, which bytes() returns.
type Byter interface{ Bytes() starlark.Bytes }

// Some functions of the language allocate space for all elements in advance, and a range
// can claim any number. If the kernel refuses the memory, Go ends the program with pages
// of traceback, so they fail here. Others iterate over all elements in one step of the
// interpreter, which cannot be interrupted.
func init() {
	for _, name := range []string{"all", "any", "bytes", "enumerate", "list", "max", "min", "reversed", "set", "sorted", "tuple", "zip"} {
		f := starlark.Universe[name].(*starlark.Builtin)
		starlark.Universe[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) == 1 && len(kwargs) == 0 && name == "bytes" {
				if x, ok := args[0].(Byter); ok {
					return x.Bytes(), nil
				}
			}
			shortest := maxElements
			for _, arg := range args {
				n := starlark.Len(arg)
				if err := tooMany(n); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				if n >= 0 {
					shortest = min(shortest, n)
				}
			}
			if name == "zip" && shortest < maxElements { // its rows are also allocated at once
				if err := tooMany(shortest * len(args)); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			return f.CallInternal(t, args, kwargs)
		})
	}
}
