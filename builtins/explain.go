package builtins

import (
	"errors"
	"fmt"
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
)

// Explain renders an error for people: what is wrong, where, and where a habit
// from elsewhere led astray, what to write instead. The end that exit() makes
// needs no words.
func (s *Session) Explain(err error) string {
	var exit *lang.ExitError
	if err == nil || errors.As(err, &exit) {
		return ""
	}
	var b strings.Builder
	var se syntax.Error
	var re resolve.ErrorList
	switch {
	case errors.As(err, &se):
		fmt.Fprintf(&b, "%s: syntax error: %s\n", position(se.Pos), strings.TrimPrefix(se.Msg, "syntax error: "))
		s.quote(&b, se.Pos)
		s.hint(&b, s.lineAt(se.Pos), se.Msg)
	case errors.As(err, &re):
		for _, e := range re {
			fmt.Fprintf(&b, "%s: %s\n", position(e.Pos), s.spell(e.Pos.Filename(), e.Msg))
			s.quote(&b, e.Pos)
			s.hint(&b, s.lineAt(e.Pos), e.Msg)
		}
	default:
		fmt.Fprintln(&b, nearestMember(err.Error()))
		s.trace(&b, err)
		s.hint(&b, "", err.Error())
		var bug *lang.BugError
		if s.verbose > 1 && errors.As(err, &bug) {
			b.WriteString(bug.Stack)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func position(p syntax.Position) string {
	return fmt.Sprintf("%s:%d:%d", p.Filename(), p.Line, p.Col)
}

// spell adds the nearest known name, which the resolver, who does not know the
// global names, cannot suggest.
func (s *Session) spell(file, msg string) string {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok || strings.Contains(name, " ") || toolHint(name) != "" || len(typesWith(name)) > 0 {
		return msg
	}
	names := slices.Concat(s.predeclared.Keys(), starlark.Universe.Keys(), boundNames(file, s.sources[file]))
	if s.defined != nil {
		names = append(names, s.defined()...)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == name }) // it is defined further down
	return msg + fabric.DidYouMean(name, names)
}

var noMember = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\w+) has no \.(\w+) field or method$`)
})

// nearestMember adds the nearest attribute to the error of one that a value does
// not have.
func nearestMember(msg string) string {
	if m := noMember().FindStringSubmatch(msg); m != nil {
		if near := fabric.Nearest(m[2], AttrNames(m[1])); near != "" {
			return msg + " (did you mean ." + near + "?)"
		}
	}
	return msg
}

// boundNames are those that a file gives a meaning to; none where it has
// errors.
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

// trace writes the calls that led to err, outermost first: those of the main
// thread, then those of an item of parallel.
func (s *Session) trace(b *strings.Builder, err error) {
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
				fmt.Fprintf(b, "  ... %s left out\n", lang.Count(left, "call"))
				continue
			case left > 0 && i > tracedEnds && i < tracedEnds+left:
				continue
			}
			at := s.pointed(fr.Pos)
			fmt.Fprintf(b, "  %s: in %s\n", position(at), fr.Name)
			if i == len(calls)-1 {
				s.quote(b, at)
			}
		}
		err = ee.Unwrap()
	}
}

// pointed moves a position of the interpreter's to the token that is meant: from
// the bracket of a call to the name of the function, from a dot to the attribute,
// from the bracket of an index to the index.
func (s *Session) pointed(p syntax.Position) syntax.Position {
	line := []rune(s.lineAt(p))
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

// tracedEnds is how many calls are shown at either end of a long trace: one
// that never returns ends a hundred thousand deep.
const tracedEnds = 10

// A longer line is cut: so much stands before the column, and in all.
const (
	quotedBefore = 100
	quotedLine   = 160
)

// quote writes the source line at p with a caret below the column.
func (s *Session) quote(b *strings.Builder, p syntax.Position) {
	line := s.lineAt(p)
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

// lineAt is the source line at p, fit for a terminal, and without keys.
func (s *Session) lineAt(p syntax.Position) string {
	lines := strings.Split(s.sources[p.Filename()], "\n")
	if p.Line < 1 || int(p.Line) > len(lines) || strings.Contains(lines[p.Line-1], "\x00") { // no text
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, records.MaskKeys(strings.TrimRight(lines[p.Line-1], "\r")))
}

// hint adds what to write instead of what is no Starlark.
func (s *Session) hint(b *strings.Builder, line, msg string) {
	for _, h := range hints {
		if matches(h.line, line) || matches(h.msg, msg) {
			fmt.Fprintf(b, "hint: %s\n", h.text)
			return
		}
	}
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok { // ibdiagnet -r: no expression at all
		name, _, _ = strings.Cut(strings.TrimSpace(line), " ")
	}
	if text := toolHint(name); text != "" {
		fmt.Fprintf(b, "hint: %s\n", text)
	} else if ok {
		memberHint(b, name)
	}
}

// hints are for habits from elsewhere. The patterns are compiled when there is an
// error: at the start of each run that would take time for nothing.
var hints = []struct {
	line string // a pattern of the source line of a syntax error; "": of none
	msg  string // a pattern of the message
	text string
}{
	{`\b[fF]["']`, "", `there are no f-strings; write "port %d of %s" % (n, name), or "{} of {}".format(n, name)`},
	{`^\s*(try|except|finally|raise)\b`, "", "there are no exceptions; catch(fn, arg) returns the result or a falsy error value, fail(text) stops the script"},
	{`^\s*(import|from)\b`, "", `there is no import; write load("file.star", "name"); json, math, re and time are there already`},
	{`^\s*with\b`, "", "there is no with statement; nothing here has to be closed"},
	{`^\s*class\b`, "", "there are no classes; use dicts and functions"},
	{`\b(async|await)\b`, "", "there is no async; parallel(fn, items) runs many calls at once"},
	{`^\s*print\s+[^(\s]`, "", "print is a function; write print(x)"},
	{"", `^Starlark stack overflow$`, "100,000 calls are under way at once, which is as many as there may be; is there a function that calls itself for ever?"},
	{"", `unknown conversion %[-+ #0-9.]`, `% takes no width or precision; write fmt("5d", x) or fmt(".2f", x)`},
	{"", `format spec features not supported`, `format takes no width or precision; write fmt("5d", x) or fmt(".2f", x)`},
}

func matches(pattern, text string) bool {
	return pattern != "" && text != "" && regexp.MustCompile(pattern).MatchString(text)
}
