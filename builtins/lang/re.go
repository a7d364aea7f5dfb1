package lang

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/fabric/plural"
)

// REModule is the part of Python's re that scripts need, on Go's regexp, whose time is
// linear in the length of the text for any pattern.
var REModule = &starlarkstruct.Module{
	Name: "re",
	Members: starlark.StringDict{
		"search":  NewFunction(&ReSearch),
		"match":   NewFunction(&ReMatch),
		"findall": NewFunction(&ReFindall),
		"sub":     NewFunction(&ReSub),
		"split":   NewFunction(&ReSplit),
	},
}

var (
	patternParam = Param{Name: "pattern", Kind: KindText, Doc: `a regular expression, best as a raw string: r"\d+"; look-around and back references are not supported`}
	textParam    = Param{Name: "text", Kind: KindText, Doc: "the text to search"}
)

// ReSearch is re.search.
var ReSearch = Builtin{
	Name:   "re.search",
	Group:  GroupRest,
	Params: []Param{patternParam, textParam},
	Doc: `Finds the first place in a text that a regular expression matches.
It returns a tuple of the match and its groups, with None for groups that did not take part; or None if nothing matches.`,
	Example: `
> re.search(r"([a-z]+)-(\d+)", "on leaf-12/3")
("leaf-12", "leaf", "12")
> re.search(r"spine", "leaf-12/3") == None
True
`,
	Run: Do(func(c *Call, a *matchArgs) (starlark.Value, error) { return firstMatch(c, a, "") }),
}

// ReMatch is re.match.
var ReMatch = Builtin{
	Name:   "re.match",
	Group:  GroupRest,
	Params: []Param{patternParam, textParam},
	Doc: `Matches a regular expression at the beginning of a text.
It returns the same as re.search. To match the whole text, end the pattern with $.`,
	Example: `
> [n.name for n in discover().nodes if re.match(r"leaf-[12]$", n.name)]
["leaf-1", "leaf-2"]
`,
	Run: Do(func(c *Call, a *matchArgs) (starlark.Value, error) { return firstMatch(c, a, `\A`) }),
}

// matchArgs are the arguments of functions that search for a pattern.
type matchArgs struct{ Pattern, Text string }

// ReFindall is re.findall.
var ReFindall = Builtin{
	Name:   "re.findall",
	Group:  GroupRest,
	Params: []Param{patternParam, textParam},
	Doc: `Lists all matches of a regular expression in a text.
If the pattern has one group, it lists the group; if it has more, tuples of the groups.`,
	Example: `
> re.findall(r"\d+", "leaf-12/3")
["12", "3"]
> re.findall(r"(\w+)=(\d+)", "k=8,levels=3")
[("k", "8"), ("levels", "3")]
`,
	Run: Do(func(c *Call, a *matchArgs) (starlark.Value, error) {
		re, err := patternOf(c, a.Pattern, "")
		if err != nil {
			return nil, err
		}
		found := []starlark.Value{}
		for _, at := range re.FindAllStringSubmatchIndex(a.Text, -1) {
			all := spans(a.Text, at)
			switch len(all) {
			case 1, 2:
				found = append(found, all[len(all)-1])
			default:
				found = append(found, all[1:])
			}
		}
		return starlark.NewList(found), nil
	}),
}

// ReSub is re.sub.
var ReSub = Builtin{
	Name:  "re.sub",
	Group: GroupRest,
	Params: []Param{
		patternParam,
		{Name: "repl", Kind: KindText, Doc: `the replacement; \1 or \g<name> is a group, \\ a backslash`},
		textParam,
	},
	Doc: "Replaces all matches of a regular expression and returns the text.",
	Example: `
> re.sub(r"(\w+)-(\d+)", r"\2 of \1", "leaf-12/3")
"12 of leaf/3"
`,
	Run: Do(func(c *Call, a *struct{ Pattern, Repl, Text string }) (starlark.Value, error) {
		re, err := patternOf(c, a.Pattern, "")
		if err != nil {
			return nil, err
		}
		repl, err := templateOf(c, re, a.Repl)
		if err != nil {
			return nil, err
		}
		return starlark.String(re.ReplaceAllString(a.Text, repl)), nil
	}),
}

// ReSplit is re.split.
var ReSplit = Builtin{
	Name:   "re.split",
	Group:  GroupRest,
	Params: []Param{patternParam, textParam},
	Doc:    "Splits a text at the matches of a regular expression.",
	Example: `
> re.split(r"[-/]", "leaf-12/3")
["leaf", "12", "3"]
`,
	Run: Do(func(c *Call, a *matchArgs) (starlark.Value, error) {
		re, err := patternOf(c, a.Pattern, "")
		if err != nil {
			return nil, err
		}
		parts := []starlark.Value{}
		for _, s := range re.Split(a.Text, -1) {
			parts = append(parts, starlark.String(s))
		}
		return starlark.NewList(parts), nil
	}),
}

// patterns holds compiled patterns of the session, by prefix and text: scripts search
// for one pattern in the names of all nodes.
type patterns struct {
	compiled map[[2]string]*regexp.Regexp
}

// Limits of the patterns that a session keeps. The size of a pattern with counts depends
// on its numbers, not on its text.
const (
	maxPatterns    = 64
	maxPatternText = 256 // bytes
)

// patternOf compiles the argument pattern, after prefix.
func patternOf(c *Call, text, prefix string) (*regexp.Regexp, error) {
	kept := StateOf[patterns](c.Runtime())
	key := [2]string{prefix, text}
	if re := kept.compiled[key]; re != nil {
		return re, nil
	}
	re, err := compilePattern(text, prefix)
	if err == nil && len(text) <= maxPatternText && !strings.Contains(text, "{") {
		if kept.compiled == nil || len(kept.compiled) >= maxPatterns {
			kept.compiled = map[[2]string]*regexp.Regexp{}
		}
		kept.compiled[key] = re
	}
	return re, err
}

func compilePattern(text, prefix string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if err == nil && prefix != "" {
		re, err = regexp.Compile(prefix + "(?:" + text + ")")
	}
	if se := (*syntax.Error)(nil); errors.As(err, &se) {
		if strings.HasPrefix(se.Expr, "(?=") || strings.HasPrefix(se.Expr, "(?!") || strings.HasPrefix(se.Expr, "(?<") {
			return nil, ParamError("pattern", "%q: look-around (%s) is not supported; match more and select a part with a group", text, se.Expr)
		}
		return nil, ParamError("pattern", "%q: %s: %s", text, se.Code, se.Expr)
	}
	return re, err
}

func firstMatch(c *Call, a *matchArgs, prefix string) (starlark.Value, error) {
	re, err := patternOf(c, a.Pattern, prefix)
	if err != nil {
		return nil, err
	}
	at := re.FindStringSubmatchIndex(a.Text)
	if at == nil {
		return starlark.None, nil
	}
	return spans(a.Text, at), nil
}

// spans returns the parts of text at the pairs of indices of a match.
func spans(text string, at []int) starlark.Tuple {
	all := make(starlark.Tuple, 0, len(at)/2)
	for i := 0; i < len(at); i += 2 {
		if at[i] < 0 {
			all = append(all, starlark.None)
			continue
		}
		all = append(all, starlark.String(text[at[i]:at[i+1]]))
	}
	return all
}

var backslash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(?:(\d+)|g<(\w+)>|(.?))`) })

// templateOf converts the argument repl to the form of regexp.Expand: ${1} for \1.
func templateOf(c *Call, re *regexp.Regexp, repl string) (string, error) {
	var bad error
	// Escape $ first: it has no meaning in Python.
	out := backslash().ReplaceAllStringFunc(strings.ReplaceAll(repl, "$", "$$"), func(s string) string {
		m := backslash().FindStringSubmatch(s)
		name := m[1] + m[2]
		if n, err := strconv.Atoi(name); err == nil {
			name = strconv.Itoa(n)
		}
		switch {
		case m[3] == `\`:
			return `\`
		case name == "":
			bad = ParamError("repl", `%q is not a group; a group is \1 or \g<name>, a backslash \\`, s)
		case !hasGroup(re, name):
			bad = ParamError("repl", "%q: no such group; the pattern has %s", s, plural.Count(re.NumSubexp(), "group", "groups"))
		}
		return "${" + name + "}"
	})
	return out, bad
}

func hasGroup(re *regexp.Regexp, name string) bool {
	if n, err := strconv.Atoi(name); err == nil {
		return n <= re.NumSubexp()
	}
	return re.SubexpIndex(name) >= 0
}
