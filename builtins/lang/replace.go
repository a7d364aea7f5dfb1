package lang

import (
	"fmt"
	"strings"
	_ "unsafe" // for go:linkname

	"go.starlark.net/starlark"
)

// stringMethods are those of the language. The library has no door to them.
//
//go:linkname stringMethods go.starlark.net/starlark.stringMethods
var stringMethods map[string]*starlark.Builtin

// maxReplaced is how long a string may become by replace, in bytes: as long as
// by repetition, which the library bounds.
const maxReplaced = 1 << 30

// replace is the one method that asks for all of its result at once, which can be
// the square of what there is: of 16 MiB, more than a process can address. Go ends
// the program then, with pages of traceback, before the watch over memory can
// say a word.
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
				return nil, fmt.Errorf("%s: the result is longer than 1 GiB: %d times %d bytes for %d", b.Name(), n, len(after), len(before))
			}
		}
		return unbounded.BindReceiver(s).CallInternal(thread, args, kwargs)
	})
}
