package lang

import (
	"strings"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

// Dialect is the one Starlark dialect of scripts, modules and the prompt.
var Dialect = syntax.FileOptions{
	Set:             true,
	While:           true,
	TopLevelControl: true,
	GlobalReassign:  true,
	Recursion:       true,
}

// FileOptions returns a copy of the dialect, for a caller (the prompt) that extends it.
func FileOptions() *syntax.FileOptions {
	o := Dialect
	return &o
}

// PlainText refuses source text that contains a NUL: the scanner would take it for the
// end and drop the rest without an error. line is the number of the first line.
func PlainText(file string, line int, src string) error {
	before, _, found := strings.Cut(src, "\x00")
	if !found {
		return nil
	}
	start := strings.LastIndexByte(before, '\n') + 1
	pos := syntax.MakePosition(&file, int32(line+strings.Count(before, "\n")), int32(utf8.RuneCountInString(before[start:])+1))
	return syntax.Error{Pos: pos, Msg: "unexpected NUL; is this a text file?"}
}

// AtLineEnd returns e at the end of the line that misses something, such as a colon: the
// parser reports the newline at the beginning of the next line. src is the file.
func AtLineEnd(e syntax.Error, src string) syntax.Error {
	lines := strings.Split(src, "\n")
	if n := int(e.Pos.Line) - 2; strings.HasPrefix(strings.TrimPrefix(e.Msg, "syntax error: "), "got newline") && e.Pos.Col == 1 && n >= 0 && n < len(lines) {
		file := e.Pos.Filename()
		e.Pos = syntax.MakePosition(&file, e.Pos.Line-1, int32(utf8.RuneCountInString(lines[n])+1))
	}
	return e
}
