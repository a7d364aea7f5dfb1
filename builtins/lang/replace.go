package lang

import (
	"fmt"
	"strings"
	_ "unsafe" // for go:linkname

	"go.starlark.net/starlark"
)

// stringMethods are the string methods of the language, which the library does not export.
//
//go:linkname stringMethods go.starlark.net/starlark.stringMethods
var stringMethods map[string]*starlark.Builtin

// listMethods are the list methods; rows.go adds some.
//
//go:linkname listMethods go.starlark.net/starlark.listMethods
var listMethods map[string]*starlark.Builtin

// maxReplaced is the maximum length of a result of replace, in bytes: the same as the
// library's limit for repetition.
const maxReplaced = 1 << 30

// replace is the only method that allocates its whole result at once, and the result can
// be as long as the square of the input: for 16 MiB, more than a process can address.
// Go then ends the program with pages of traceback before the limit of memory takes
// effect.
func init() {
	unbounded := stringMethods["replace"]
	stringMethods["replace"] = starlark.NewBuiltin("replace", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		s := b.Receiver().(starlark.String)
		var before, after string
		count := -1
		if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &before, &after, &count); err != nil {
			return nil, err
		}
		if len(after) > len(before) {
			n := strings.Count(string(s), before)
			if count >= 0 {
				n = min(n, count)
			}
			if n > (maxReplaced-len(s))/(len(after)-len(before)) {
				return nil, fmt.Errorf("%s: the result would be longer than 1 GiB: %d times %d bytes for %d", b.Name(), n, len(after), len(before))
			}
		}
		return unbounded.BindReceiver(s).CallInternal(thread, args, kwargs)
	})
}
