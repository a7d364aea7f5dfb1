package lsp

import (
	"errors"
	"iter"
	"maps"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
)

// part is top-level statements of a script, parsed by themselves: while a line is typed in a script
// of 15,000 lines, the other parts are kept.
type part struct {
	stmts []syntax.Stmt
	names starlark.StringDict // that it defines; nil: it loads modules, which may change
}

// parts are a script without syntax errors. Lines of a part begin after those before it.
type parts []struct {
	*part
	before int32
}

// partsOf returns the parts of a text; nil: it has syntax errors, or isDivided is false: its parts
// are unknown. Parts that were parsed before are not parsed again.
func (d *document) partsOf(text string) (list parts, isDivided bool) {
	starts := topLines(text)
	if starts == nil {
		return nil, false
	}
	list, kept := make(parts, len(starts)), make(map[string]*part, len(starts))
	for i, source := range sources(text, starts) {
		p, err := d.part(source)
		if err != nil {
			return nil, true
		}
		kept[source] = p
		list[i].part = p
		if i > 0 {
			list[i].before = list[i-1].before + int32(strings.Count(text[starts[i-1]:starts[i]], "\n"))
		}
	}
	d.kept = kept // only what the text has
	return list, true
}

// syntaxError returns the first syntax error of a text. Only its position in lines is right.
func (d *document) syntaxError(text string) error {
	starts := topLines(text)
	for i, source := range sources(text, starts) {
		if _, err := d.part(source); err == nil {
			continue
		}
		_, err := lang.Dialect.Parse(d.path, text[starts[i]:], 0) // up to the error, which may be in the next line
		var wrong syntax.Error
		if errors.As(err, &wrong) {
			wrong.Pos.Line += int32(strings.Count(text[:starts[i]], "\n"))
			return wrong
		}
		starts = nil
		break
	}
	if starts != nil {
		return nil
	}
	_, err := lang.Dialect.Parse(d.path, text, 0)
	return err
}

// sources returns the texts that begin at offsets.
func sources(text string, starts []int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, start := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			if !yield(i, text[start:end]) {
				return
			}
		}
	}
}

// maxKept is how many parts are kept that are not of the latest text without errors.
const maxKept = 10000

// part parses a part, or returns the one that was parsed before.
func (d *document) part(source string) (*part, error) {
	if p := d.kept[source]; p != nil {
		return p, nil
	}
	file, err := lang.Dialect.Parse(d.path, source, 0)
	if err != nil {
		return nil, err
	}
	if d.kept == nil || len(d.kept) > maxKept {
		d.kept = map[string]*part{}
	}
	p := newPart(file.Stmts)
	d.kept[strings.Clone(source)] = p // not the whole text
	return p, nil
}

func newPart(stmts []syntax.Stmt) *part {
	names, loads := starlark.StringDict{}, false
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			_, isLoad := n.(*syntax.LoadStmt)
			loads = loads || isLoad
			return true
		})
	}
	if loads {
		return &part{stmts: stmts}
	}
	define(names, stmts, nil)
	return &part{stmts, names}
}

// topLines returns the offsets of the lines that begin a top-level statement, the first of which
// is 0; nil: it is unknown.
func topLines(text string) (starts []int) {
	starts = []int{0}
	depth := 0     // of brackets
	continued := 0 // the begin of a line that continues the one before
	for i := 0; i < len(text); i++ {
		c := text[i]
		if depth == 0 && i > continued && text[i-1] == '\n' && strings.IndexByte(" \t\r\n#", c) < 0 && !check.HasWord(text[i:], "else", "elif") {
			starts = append(starts, i)
		}
		switch c {
		case 0:
			return nil
		case '\\':
			if !strings.HasPrefix(text[i:], "\\\n") {
				return nil
			}
			i++
			continued = i + 1
		case '\r':
			if !strings.HasPrefix(text[i:], "\r\n") {
				return nil
			}
		case '#':
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			if strings.Contains(strings.TrimSuffix(text[i:i+n], "\r"), "\r") {
				return nil
			}
			i += n - 1
		case '"', '\'':
			n := stringLength(text[i:])
			if n < 0 {
				return nil
			}
			i += n - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return nil
			}
		}
	}
	if depth > 0 {
		return nil
	}
	return starts
}

// stringLength returns the length of the string literal at the begin of a text; -1: it does not end.
func stringLength(text string) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n' && len(quote) == 1 || text[i] == 0:
			return -1
		case text[i] == quote[0] && strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// names returns the names that a script defines at a line: the names of the top level, and of the
// functions around the line.
func (list parts) names(line int32, load func(module, name string) *lang.Builtin) starlark.StringDict {
	names := starlark.StringDict{}
	for _, p := range list {
		if p.names != nil {
			maps.Copy(names, p.names)
		} else {
			define(names, p.stmts, load)
		}
	}
	for _, p := range list {
		line := line - p.before
		for stmts := p.stmts; stmts != nil; {
			var inner []syntax.Stmt
			for _, stmt := range stmts {
				if def, ok := stmt.(*syntax.DefStmt); ok {
					if start, end := def.Span(); start.Line <= line && line <= end.Line {
						parameters(names, def)
						inner = def.Body
					}
				}
			}
			define(names, inner, load)
			stmts = inner
		}
	}
	return names
}
