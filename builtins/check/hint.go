package check

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// hints adds the hint for a line that may be text as fabsh shows it, or else the others.
func (x *Explainer) hints(b *strings.Builder, line string, others func() (any bool)) {
	text, sure := "", false
	if x.Shown != nil {
		text, sure = x.Shown(strings.TrimSpace(line))
	}
	if text != "" && (sure || !others()) {
		fmt.Fprintf(b, "hint: %s\n", text)
	} else if text == "" {
		others()
	}
}

// hint adds a hint for code that is not Starlark, and reports whether there is one.
func hint(b *strings.Builder, line, msg string) bool {
	for _, h := range hints {
		if matches(h.line, line) || matches(h.msg, msg) {
			fmt.Fprintf(b, "hint: %s\n", h.text)
			return true
		}
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
	{"", `^Starlark stack overflow$`, "calls are nested 100,000 deep, which is the limit; does a function call itself without end?"},
	{"", `unknown conversion %[-+ #0-9.]`, `% does not support width or precision; write fmt("5d", x) or fmt(".2f", x)`},
	{"", `format spec features not supported`, `format does not support width or precision; write fmt("5d", x) or fmt(".2f", x)`},
}

func matches(pattern, text string) bool {
	return pattern != "" && text != "" && regexp.MustCompile(pattern).MatchString(text)
}

// typesWith returns the types that have an attribute or a method of a name; none for names of
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
