package lang

import (
	"fmt"

	libjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
)

// decodeJSON is json.decode of the library, which recurses once for each level, with a
// limit of the depth.
func decodeJSON(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if text, ok := starlark.AsString(args[0]); ok && depthOfJSON(text) > maxDepth {
			return nil, fmt.Errorf("json.decode: more than %d levels of nesting", maxDepth)
		}
	}
	return libjson.Module.Members["decode"].(*starlark.Builtin).CallInternal(t, args, kwargs)
}

// DecodeJSON returns the value of a JSON document.
func DecodeJSON(t *starlark.Thread, text []byte) (starlark.Value, error) {
	return decodeJSON(t, nil, starlark.Tuple{starlark.String(text)}, nil)
}

// depthOfJSON returns the maximum number of brackets that are open at once.
func depthOfJSON(text string) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']', c == '}':
			depth--
		}
	}
	return deepest
}
