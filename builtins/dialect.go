package builtins

import "go.starlark.net/syntax"

// dialect is the one Starlark dialect of scripts, modules and the prompt.
var dialect = syntax.FileOptions{
	Set:             true,
	While:           true,
	TopLevelControl: true,
	GlobalReassign:  true,
	Recursion:       true,
}

// FileOptions returns a copy of the dialect, for a caller (the prompt) that
// must add to it.
func FileOptions() *syntax.FileOptions {
	o := dialect
	return &o
}
