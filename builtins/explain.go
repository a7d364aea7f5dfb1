package builtins

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
			fmt.Fprintf(&b, "%s: %s\n", position(e.Pos), s.spell(e.Msg))
			s.quote(&b, e.Pos)
			s.hint(&b, s.lineAt(e.Pos), e.Msg)
		}
	default:
		fmt.Fprintln(&b, err)
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
func (s *Session) spell(msg string) string {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok || strings.Contains(name, " ") || habits[name] != "" {
		return msg
	}
	names := slices.Concat(s.predeclared.Keys(), starlark.Universe.Keys())
	return msg + fabric.DidYouMean(name, names)
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
			fmt.Fprintf(b, "  %s: in %s\n", position(fr.Pos), fr.Name)
			if i == len(calls)-1 {
				s.quote(b, fr.Pos)
			}
		}
		err = ee.Unwrap()
	}
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
		if (h.line != nil && line != "" && h.line.MatchString(line)) || (h.msg != nil && h.msg.MatchString(msg)) {
			fmt.Fprintf(b, "hint: %s\n", h.text)
			return
		}
	}
	if name, ok := strings.CutPrefix(msg, "undefined: "); ok && habits[name] != "" {
		fmt.Fprintf(b, "hint: %s\n", habits[name])
	}
}

var hints = []struct {
	line *regexp.Regexp // on the source line of a syntax error
	msg  *regexp.Regexp // in the message
	text string
}{
	{regexp.MustCompile(`\b[fF]["']`), nil, `there are no f-strings; write "port %d of %s" % (n, name), or "{} of {}".format(n, name)`},
	{regexp.MustCompile(`^\s*(try|except|finally|raise)\b`), nil, "there are no exceptions; catch(fn, arg) returns the result or a falsy error value, fail(text) stops the script"},
	{regexp.MustCompile(`^\s*(import|from)\b`), nil, `there is no import; write load("file.star", "name"); json, math, re and time are there already`},
	{regexp.MustCompile(`^\s*with\b`), nil, "there is no with statement; nothing here has to be closed"},
	{regexp.MustCompile(`^\s*class\b`), nil, "there are no classes; use dicts and functions"},
	{regexp.MustCompile(`\b(async|await)\b`), nil, "there is no async; parallel(fn, items) runs many calls at once"},
	{regexp.MustCompile(`^\s*print\s+[^(\s]`), nil, "print is a function; write print(x)"},
	{nil, regexp.MustCompile(`^Starlark stack overflow$`), "100,000 calls are under way at once, which is as many as there may be; is there a function that calls itself for ever?"},
	{nil, regexp.MustCompile(`unknown conversion %[-+ #0-9.]`), `% takes no width or precision; write fmt("5d", x) or fmt(".2f", x)`},
	{nil, regexp.MustCompile(`format spec features not supported`), `format takes no width or precision; write fmt("5d", x) or fmt(".2f", x)`},
}

// habits are commands of other tools, with what does the same here.
var habits = map[string]string{
	"iblinkinfo":    `load("@examples//links.star", "main"), then main()`,
	"ibnetdiscover": `print(discover().dump("ibnetdiscover"))`,
	"ibhosts":       "discover().cas",
	"ibswitches":    "discover().switches",
	"ibrouters":     "discover().routers",
	"ibnodes":       "discover().nodes",
	"ibtracert":     `load("@examples//trace.star", "main"), then main("from", "to")`,
	"ibroute":       "get_lft(target); with -M, get_mft(target)",
	"ibportstate":   `port_disable(port), port_enable(port), port_reset(port), port_set(port, speed="hdr", width="4x")`,
	"smpquery":      `smp_get("PortInfo", target, port)`,
	"perfquery":     `perf_get("PortCounters", target, port)`,
	"saquery":       `sa_gettable("NodeRecord")`,
	"ibstat":        `the command fabsh ports; of the port in use, smp_get("PortInfo", dr("0"), 0)`,
	"ibstatus":      "the command fabsh ports",
	"ibaddr":        `smp_get("PortInfo", target, port), with gid_prefix, lid and lmc; smp_get("NodeInfo", target).port_guid`,
	"smpdump":       `mad_get("NodeInfo", target, raw=True); smp_get("NodeInfo", target).data`,
	"vendstat":      `mad_get("GeneralInfo", target); mad_get("CounterGroupInfo", target, port=1); with --write`,
	"sminfo":        `smp_get("SMInfo", target)`,
	"ls":            "discover().nodes, or dir(value)",
}
