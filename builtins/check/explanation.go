package check

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Explainer renders the errors of a session for people.
type Explainer struct {
	Sources map[string]string // texts of the code that ran, by file name
	Globals starlark.StringDict
	// Defined returns other names that are defined, such as names of the prompt; may be nil.
	Defined func() []string
	// Shown returns a hint for a line that is not a statement, but text as fabsh shows it;
	// sure: it is, else it may be. Nil: no such hints.
	Shown func(line string) (hint string, sure bool)
	// IsCommand reports whether name is a command of the program; may be nil.
	IsCommand func(name string) bool
	Stack     bool // print the stack trace of a bug in fabsh
}

// Explain renders an error for people: the cause, the position and, for habits of other
// languages, a hint. It returns "" for exit().
func (x *Explainer) Explain(err error) string {
	var exit *lang.ExitError
	if err == nil || errors.As(err, &exit) {
		return ""
	}
	var b strings.Builder
	var se syntax.Error
	var re resolve.ErrorList
	switch {
	case errors.As(err, &se):
		se = lang.AtLineEnd(se, x.Sources[se.Pos.Filename()])
		fmt.Fprintf(&b, "%s: syntax error: %s\n", PositionText(se.Pos), strings.TrimPrefix(se.Msg, "syntax error: "))
		x.quote(&b, se.Pos)
		x.hints(&b, x.lineAt(se.Pos), func() bool { return writeHint(&b, x.lineAt(se.Pos), se.Msg) })
	case errors.As(err, &re):
		for i, e := range re {
			spelled := x.Spell(e.Pos.Filename(), e.Msg)
			fmt.Fprintf(&b, "%s: %s\n", PositionText(e.Pos), spelled)
			x.quote(&b, e.Pos)
			if line := x.lineAt(e.Pos); i == len(re)-1 || x.lineAt(re[i+1].Pos) != line {
				x.hints(&b, line, func() bool {
					onLine := func(e resolve.Error) bool { return x.lineAt(e.Pos) == line && x.undefinedHint(&b, line, e.Msg) }
					return slices.ContainsFunc(re, onLine) || writeHint(&b, line, e.Msg) || spelled != e.Msg
				})
			}
		}
	case !x.Stack && shippedOf(err) != "": // the cause is the command line, a file of the user or the fabric
		text := err.Error()
		if rest, failed := strings.CutPrefix(text, "fail: "); failed {
			text = shippedOf(err) + ": " + rest
		}
		fmt.Fprintln(&b, nearestMember(strings.Replace(text, ": fail: ", ": ", 1)))
		writeHint(&b, "", err.Error())
	default:
		fmt.Fprintln(&b, nearestMember(err.Error()))
		x.trace(&b, err)
		writeHint(&b, "", err.Error())
		var bug *lang.BugError
		if x.Stack && errors.As(err, &bug) {
			b.WriteString(bug.Stack)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// shippedOf returns the name of the shipped script of which a call has failed, if no other script
// runs: then the position means nothing to users. "": there is no such script.
func shippedOf(err error) (name string) {
	var ee *starlark.EvalError
	var bug *lang.BugError
	if !errors.As(err, &ee) || errors.As(err, &bug) || ee.CallStack.At(0).Pos.Filename() != "<builtin>" {
		return ""
	}
	for ; errors.As(err, &ee); err = ee.Unwrap() {
		for _, fr := range ee.CallStack {
			switch file := fr.Pos.Filename(); {
			case file == "<builtin>":
			case !strings.HasPrefix(file, "@"):
				return ""
			case name == "":
				name = strings.TrimSuffix(path.Base(file), ".star")
			}
		}
	}
	return name
}

// HasPosition reports whether an error has a position in a script.
func HasPosition(err error) bool {
	var se syntax.Error
	var re resolve.ErrorList
	var ee *starlark.EvalError
	return errors.As(err, &se) || errors.As(err, &re) || errors.As(err, &ee)
}

// ExplainExit renders an error like Explain, for code that exit() must not end; why is as for
// lang.NotExit.
func (x *Explainer) ExplainExit(err error, why string) string {
	var exit *lang.ExitError
	if !errors.As(err, &exit) {
		return x.Explain(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, lang.NotExit(err, why))
	x.trace(&b, err)
	return strings.TrimRight(b.String(), "\n")
}

// PositionText returns a position in a script for messages.
func PositionText(p syntax.Position) string {
	return fmt.Sprintf("%s:%d:%d", p.Filename(), p.Line, p.Col)
}

// Spell adds the nearest known name, which the resolver, without the global names, cannot
// suggest.
func (x *Explainer) Spell(file, msg string) string {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok || strings.Contains(name, " ") || ToolHint(name) != "" || len(typesWith(name)) > 0 {
		return msg
	}
	names := slices.Concat(x.Globals.Keys(), starlark.Universe.Keys(), boundNames(file, x.Sources[file]))
	if x.Defined != nil {
		names = append(names, x.Defined()...)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == name }) // it is defined further down
	return msg + fabric.DidYouMean(name, names)
}

// noMember matches the error of a missing attribute.
var noMember = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\w+) has no \.(\w+) field or method$`)
})

// nearestMember adds the nearest attribute to the error of a missing one.
func nearestMember(msg string) string {
	if m := noMember().FindStringSubmatch(msg); m != nil {
		if near := fabric.Nearest(m[2], AttrNames(m[1])); near != "" {
			return msg + " (did you mean ." + near + "?)"
		}
	}
	return msg
}

// boundNames returns the names that a file defines; none if it has errors.
func boundNames(name, src string) (names []string) {
	f, err := lang.Dialect.Parse(name, src, 0)
	if err != nil {
		return nil
	}
	bind := func(e syntax.Node) {
		syntax.Walk(e, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				names = append(names, id.Name)
			}
			return true
		})
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DefStmt:
			bind(n.Name)
		case *syntax.AssignStmt:
			if id, ok := n.LHS.(*syntax.Ident); ok {
				bind(id)
			}
		case *syntax.ForStmt:
			bind(n.Vars)
		case *syntax.ForClause:
			bind(n.Vars)
		case *syntax.LoadStmt:
			for _, to := range n.To {
				bind(to)
			}
		}
		return true
	})
	return names
}

// trace writes the calls that led to err, outermost first: the calls of the main thread, then the
// calls of an item of parallel.
func (x *Explainer) trace(b *strings.Builder, err error) {
	for {
		var ee *starlark.EvalError
		if !errors.As(err, &ee) {
			return
		}
		calls := slices.DeleteFunc(slices.Clone(ee.CallStack), func(fr starlark.CallFrame) bool {
			return fr.Pos.Filename() == "<builtin>"
		})
		for i, fr := range calls {
			switch left := len(calls) - 2*tracedEnds; {
			case left > 0 && i == tracedEnds:
				fmt.Fprintf(b, "  ... %s omitted\n", plural.Count(left, "call", "calls"))
				continue
			case left > 0 && i > tracedEnds && i < tracedEnds+left:
				continue
			}
			at := x.tokenAt(fr.Pos)
			fmt.Fprintf(b, "  %s: in %s\n", PositionText(at), fr.Name)
			if i == len(calls)-1 {
				x.quote(b, at)
			}
		}
		err = ee.Unwrap()
	}
}

// tokenAt moves a position of the interpreter to the token that caused the error: from the
// bracket of a call to the name of the function, from a dot to the attribute, from the bracket
// of an index to the index.
func (x *Explainer) tokenAt(p syntax.Position) syntax.Position {
	line := []rune(x.lineAt(p))
	i := int(p.Col) - 1
	if i < 0 || i >= len(line) {
		return p
	}
	isName := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	switch line[i] {
	case '(':
		for i > 0 && isName(line[i-1]) {
			i--
		}
	case '.', '[':
		for i++; i < len(line) && line[i] == ' '; {
			i++
		}
		if i == len(line) {
			return p // it is on the next line
		}
	}
	p.Col = int32(i + 1)
	return p
}

// tracedEnds is the number of calls that are shown at either end of a long trace: endless
// recursion ends a hundred thousand calls deep.
const tracedEnds = 10

// A longer line is cut to this many characters before the column, and in total.
const (
	quotedBefore = 100
	quotedLine   = 160
)

// quote writes the source line at p with a caret below the column.
func (x *Explainer) quote(b *strings.Builder, p syntax.Position) {
	line := x.lineAt(p)
	if line == "" || p.Col < 1 {
		return
	}
	text := []rune(line)
	before := text[:min(int(p.Col)-1, len(text))]
	if cut := len(before) - quotedBefore; cut > 0 {
		text, before = text[cut:], before[cut:]
		text[0] = '…'
	}
	if len(text) > quotedLine {
		text = append(text[:quotedLine-1:quotedLine-1], '…')
	}
	line = string(text)
	before = slices.Clone(before)
	for i, r := range before {
		if r != '\t' {
			before[i] = ' '
		}
	}
	fmt.Fprintf(b, "    %s\n    %s^\n", line, string(before))
}

// lineAt returns the source line at p, safe for a terminal, with keys masked.
func (x *Explainer) lineAt(p syntax.Position) string {
	lines := strings.Split(x.Sources[p.Filename()], "\n")
	if p.Line < 1 || int(p.Line) > len(lines) || strings.Contains(lines[p.Line-1], "\x00") { // no text
		return ""
	}
	line := records.MaskKeys(strings.TrimRight(lines[p.Line-1], "\r"))
	if fabric.HoldsKey(line) { // it is not a script
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// undefinedHint adds the hint for a name that is undefined: of a command used as a function, or
// of a name that documents use. It reports whether there is one.
func (x *Explainer) undefinedHint(b *strings.Builder, line, msg string) bool {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	hint := ""
	switch called, used := strings.Contains(line, name+"("), firstValues[name]; {
	case !ok:
	case called && x.IsCommand != nil && x.IsCommand(name):
		hint = commandHint(name, x.Shown != nil)
	case used != "" && !called:
		hint = fmt.Sprintf("define it first: %s = %s", name, used)
	}
	if hint != "" {
		fmt.Fprintf(b, "hint: %s\n", hint)
	}
	return hint != ""
}

// commandLine returns the hint for a line of a script that is the command line of a command, with or without
// the words behind its name; "": it is another line.
func (x *Explainer) commandLine(line string) string {
	line = strings.TrimSpace(line)
	name, words, _ := strings.Cut(line, " ")
	if x.IsCommand == nil || !x.IsCommand(name) || words != "" && !commandWord().MatchString(words) {
		return ""
	}
	return fmt.Sprintf("%s is a command; run fabsh %s in a shell, or type it at the prompt", name, line)
}

// commandWord matches what stands behind the name of a command, but behind no name in a statement.
var commandWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ *(--?[a-z]|[\w./@"'])`) })

// hints adds the hint for a line that may be text as fabsh shows it, or a command line, or else the others.
func (x *Explainer) hints(b *strings.Builder, line string, others func() (found bool)) {
	text, sure := "", false
	if x.Shown == nil {
		text, sure = x.commandLine(line), true
	}
	if x.Shown != nil {
		text, sure = x.Shown(strings.TrimSpace(line))
	}
	if text != "" && (sure || !others()) {
		fmt.Fprintf(b, "hint: %s\n", text)
	} else if text == "" {
		others()
	}
}

// writeHint adds a hint for code that is not Starlark, and reports whether there is one.
func writeHint(b *strings.Builder, line, msg string) bool {
	for _, h := range hints {
		if matches(h.line, line) || matches(h.msg, msg) {
			fmt.Fprintf(b, "hint: %s\n", h.text)
			return true
		}
	}
	if text := halfHint(line, msg); text != "" {
		fmt.Fprintf(b, "hint: %s\n", text)
		return true
	}
	name, ok := strings.CutPrefix(msg, "undefined: ")
	typed, words, _ := strings.Cut(strings.TrimSpace(line), " ")
	if !ok { // ibdiagnet -r: not an expression
		name = typed
	}
	if name != typed {
		words = ""
	}
	if text := ToolEquivalent(name, words); text != "" {
		fmt.Fprintf(b, "hint: %s\n", text)
		return true
	}
	return ok && memberHint(b, name)
}

// hints are for habits of other languages. The patterns are compiled only after an error, to
// save time at the start.
var hints = []struct {
	line string // a pattern of the source line of a syntax error, or ""
	msg  string // a pattern of the message
	text string
}{
	{`\b[fF]["']`, "", `there are no f-strings; write "port %d of %s" % (n, name), or "{} of {}".format(n, name)`},
	{`^\s*(try|except|finally|raise)\b`, "", "there are no exceptions; catch(fn, arg) returns the result or a falsy error value, fail(text) stops the script"},
	{`^\s*(import|from)\s+\S`, "", `there is no import; write load("file.star", "name"); json, math, re and time are predeclared`},
	{`^\s*with\b`, "", "there is no with statement; nothing has to be closed"},
	{`^\s*class\b`, "", "there are no classes; use dicts and functions"},
	{`\b(async|await)\b`, "", "there is no async; parallel(fn, items) runs many calls at once"},
	{`^\s*print\s+[^(\s]`, "", "print is a function; write print(x)"},
	{`\.select\(\s*\w+\s*(==|!=|[<>]|(not )?in\b)`, "", `select takes a condition as text: rows.select("lid > 10 and type == 'ca'")`},
	{"", `has no \.(where|filter|query|find) field or method`, `rows.select("lid > 10 and type == 'ca'") selects rows`},
	{"", `has no \.(sort_by|order_by|orderby|sorted) field or method`, `rows.sort("name", reverse=True) sorts rows`},
	{"", `has no \.(head|first|top|limit|take) field or method`, `rows[:10] are the first ten`},
	{"", `has no \.(len|length|size) field or method`, `len(x) is the number of items`},
	{"", `^Starlark stack overflow$`, "calls are nested 100,000 deep, which is the limit; does a function call itself without end?"},
	{"", `unknown conversion %[-+ #0-9.]`, `% does not support width or precision; write fmt("5d", x) or fmt(".2f", x)`},
	{"", `format spec features not supported`, `format does not support width or precision; write fmt("5d", x) or fmt(".2f", x)`},
}

// matches reports whether a text matches a pattern; neither may be empty.
func matches(pattern, text string) bool {
	return pattern != "" && text != "" && regexp.MustCompile(pattern).MatchString(text)
}

// typesWith returns the types that have an attribute or a method with a name; none for names of
// one or two letters, which are too common.
func typesWith(name string) (list []string) {
	if len(name) < 3 {
		return nil
	}
	for _, d := range Types() {
		for _, m := range d.Members {
			if m.ShortName() == name {
				list = append(list, d.Name)
			}
		}
	}
	return list
}

// memberHint adds the types that have a name as an attribute or a method, and reports
// whether there are any.
func memberHint(b io.Writer, name string) bool {
	list := typesWith(name)
	if len(list) == 0 {
		return false
	}
	if len(list) > 3 {
		list = append(list[:3:3], "others")
	}
	of := list[0]
	if n := len(list); n > 1 {
		of = strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	example := "value." + name
	if list[0] == "fabric" {
		example = "discover()." + name
	}
	fmt.Fprintf(b, "hint: %s is an attribute of %s; write %s\n", name, of, example)
	return true
}
