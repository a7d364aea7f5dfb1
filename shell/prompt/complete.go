package prompt

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/types"
)

// A completer proposes completions of the word before the cursor. It evaluates only
// names, attributes and constant indexes, and attributes do no I/O, so completion has
// no side effects. The result of a call is known from the declaration of the function
// (infer.go).
type completer struct {
	globals func() starlark.StringDict
	// keywords returns the names that a call accepts by keyword; args are the source
	// texts of the arguments before the cursor.
	keywords func(callee starlark.Value, args []string) []string
	// words returns the possible texts of an argument. If isPath, files are proposed.
	words func(callee starlark.Value, arg argument) (words []string, isPath bool)
	// files returns the names that begin with prefix; directories end in a slash.
	files func(prefix string) []string
	// exports returns the names that a module defines.
	exports func(module string) []string
	// reports returns the names of reports, each of which begins a line, and options
	// those of one.
	reports  func() []string
	options  func(report string) []string
	commands Commands
	// follow returns the words that may follow those of a command; files reports that
	// names of files may.
	follow func(words []string, typed string) (list []string, files bool)
	// own reports whether the user has defined a name.
	own func(name string) bool
}

// argument is one argument of a call, a text that is being typed: by keyword, or else
// by position. before are the source texts of the previous arguments.
type argument struct {
	keyword string
	before  []string
	typed   string
}

// complete returns the proposals for text, which ends at the cursor and may have
// several lines: each a whole word that replaces text[start:]. after is the text after
// the cursor.
func (c *completer) complete(text, after string) (words []string, start int) {
	line := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.TrimLeft(line, " \t") == "" {
		return []string{indentUnit}, len(text)
	}
	if words, start, ok := c.inCommand(text); ok {
		return words, start
	}
	if words, start, ok := c.inReport(text); ok {
		return words, start
	}
	at := locate(text)
	switch {
	case at.comment:
		return nil, len(text)
	case at.quote != "":
		return c.inString(text, after, at), at.start
	}
	start = len(text)
	for start > 0 && isWordByte(text[start-1]) {
		start--
	}
	word := text[start:]
	if word != "" && word[0] >= '0' && word[0] <= '9' {
		return nil, len(text)
	}
	if start > 0 && text[start-1] == '.' {
		of := c.known(primaryBefore(text[:start-1]), scope{text[:start-1], after})
		return Matching(of.Attributes(), word), start
	}
	if at.call != nil && at.call.keyword == "" && strings.TrimSpace(text[at.call.argStart:start]) == "" {
		if callee := c.callee(at.call, text, after); callee != nil {
			for _, k := range c.keywords(callee, at.call.args) {
				if !slices.Contains(at.call.given, k) {
					words = append(words, k+"=")
				}
			}
		}
		words = Matching(words, word)
	}
	if word == "" {
		return words, start // too many names to be useful
	}
	if start == 0 {
		words = append(words, Matching(c.reports(), word)...)
		words = append(words, Matching(c.commands.here(), word)...)
	}
	return append(words, Matching(c.names(), word)...), start
}

// inCommand proposes completions in the line of a command; ok reports whether text is
// such a line. A variable of that name makes it a statement.
func (c *completer) inCommand(text string) (words []string, start int, ok bool) {
	l, ok := c.commands.cutCommand(text)
	if !ok || !strings.Contains(text, " ") || c.own(l.first) {
		return nil, 0, false
	}
	start = strings.LastIndexByte(text, ' ') + 1
	before := strings.Fields(text[:start])
	if l.first == commandWord {
		before = before[1:]
	}
	words, files := c.follow(before, text[start:])
	if len(words) == 0 && files {
		words = c.files(text[start:])
	}
	return Matching(words, text[start:]), start, true
}

// inReport proposes the options of a report; ok reports whether text is its command
// line.
func (c *completer) inReport(text string) (words []string, start int, ok bool) {
	name, rest, isLine := strings.Cut(text, " ")
	if !isLine || !slices.Contains(c.reports(), name) || c.globals().Has(name) || strings.HasPrefix(strings.TrimSpace(rest), "=") {
		return nil, 0, false
	}
	start = strings.LastIndexByte(text, ' ') + 1
	return Matching(c.options(name), text[start:]), start, true
}

// names returns all names and keywords, sorted.
func (c *completer) names() []string {
	names := []string{
		"and", "break", "continue", "def", "elif", "else", "for", "if", "in",
		"lambda", "load", "not", "or", "pass", "return", "while",
	}
	for name := range c.globals() {
		if !strings.Contains(name, " ") && name != "_" {
			names = append(names, name)
		}
	}
	for name := range starlark.Universe {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// known returns what is known about the expression src.
func (c *completer) known(src string, at scope) types.Shape {
	e, err := new(syntax.FileOptions).ParseExpr("", src, 0)
	if src == "" || err != nil {
		return types.Shape{}
	}
	return c.infer(e, at)
}

// callee returns the function that an open call calls; nil: unknown.
func (c *completer) callee(call *openCall, text, after string) starlark.Value {
	of := c.known(call.callee, scope{text, after})
	if of.Call != nil {
		return &lang.Function{Builtin: of.Call}
	}
	return of.Value
}

// inString proposes completions of the string under the cursor.
func (c *completer) inString(text, after string, at location) []string {
	if at.call == nil || strings.TrimSpace(text[at.call.argStart:at.start-len(at.quote)]) != "" {
		return nil
	}
	typed := text[at.start:]
	arg := argument{at.call.keyword, at.call.args, typed}
	if at.call.callee == "load" {
		if len(arg.before) == 0 {
			return c.files(typed)
		}
		return quoted(c.exports(strings.Trim(arg.before[0], `"'`)), typed, at.quote)
	}
	callee := c.callee(at.call, text, after)
	if callee == nil {
		return nil
	}
	words, isPath := c.words(callee, arg)
	if isPath {
		return c.files(typed)
	}
	return quoted(words, typed, at.quote)
}

// quoted returns the words that the text after quote may become.
func quoted(words []string, typed, quote string) []string {
	var out []string
	for _, w := range words {
		w = strings.ReplaceAll(w, `\`, `\\`)
		w = strings.ReplaceAll(w, quote[:1], `\`+quote[:1])
		if strings.HasPrefix(w, typed) {
			out = append(out, w)
		}
	}
	if len(out) == 1 {
		out[0] += quote
	}
	return out
}

// Matching returns the words that begin with prefix; without any, no private ones.
func Matching(words []string, prefix string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) && (prefix != "" || !strings.HasPrefix(w, "_")) {
			out = append(out, w)
		}
	}
	return out
}

// evaluate returns the value of a chain of names, attributes and constant indexes; nil
// if src is anything else, or fails.
func (c *completer) evaluate(src string) starlark.Value {
	e, err := new(syntax.FileOptions).ParseExpr("", src, 0)
	if src == "" || err != nil {
		return nil
	}
	return c.value(e)
}

func (c *completer) value(e syntax.Expr) starlark.Value {
	switch e := e.(type) {
	case *syntax.Ident:
		if v, ok := c.globals()[e.Name]; ok {
			return v
		}
		return starlark.Universe[e.Name]
	case *syntax.DotExpr:
		if h, ok := c.value(e.X).(starlark.HasAttrs); ok {
			if v, err := h.Attr(e.Name.Name); err == nil {
				return v
			}
		}
	case *syntax.IndexExpr:
		key := constant(e.Y)
		if key == nil {
			return nil
		}
		switch x := c.value(e.X).(type) {
		case starlark.Mapping:
			if v, found, err := x.Get(key); found && err == nil {
				return v
			}
		case starlark.Indexable:
			i, err := starlark.AsInt32(key)
			if err != nil {
				return nil
			}
			if i < 0 {
				i += x.Len()
			}
			if i >= 0 && i < x.Len() {
				return x.Index(i)
			}
		}
	}
	return nil
}

func constant(e syntax.Expr) starlark.Value {
	switch e := e.(type) {
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case string:
			return starlark.String(v)
		case int64:
			return starlark.MakeInt64(v)
		}
	case *syntax.UnaryExpr:
		if i, ok := constant(e.X).(starlark.Int); ok && e.Op == syntax.MINUS {
			return starlark.MakeInt(0).Sub(i)
		}
	}
	return nil
}
