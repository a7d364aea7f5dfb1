package check

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// halves match what a syntax error of an incomplete expression is about.
var halves = sync.OnceValue(func() (m struct{ open, operator, start *regexp.Regexp }) {
	m.open = regexp.MustCompile(`unexpected '([)\]}])'|got '([)\]}])'`)
	m.operator = regexp.MustCompile(`(?:^|[\w\s)\]"'])(==|!=|<=|>=|[-+*/%|&^]?=|//|<<|>>|[-+*/%<>|&^]|\b(?:and|or|not|in|if|else|return|lambda|for))$`)
	m.start = regexp.MustCompile(`^(\.\w+|==|!=|<=|>=|=|//|[*/%<>|&^]|(?:and|or|in|else)\b)`)
	return m
})

// halfHint returns a hint for a line that is a part of a statement; "": it is not one.
func halfHint(line, msg string) string {
	line = strings.TrimSpace(line)
	atEnd := strings.Contains(msg, "got newline") || strings.Contains(msg, "got end of file")
	switch m := halves(); {
	case strings.HasSuffix(line, ".") && strings.Contains(msg, "not an identifier"):
		return fmt.Sprintf("a name is missing after the dot; TAB lists the names, dir(%s) too", strings.TrimSuffix(line, "."))
	case strings.Contains(msg, "unexpected newline in string"):
		return "the closing quote is missing"
	case m.open.MatchString(msg):
		found := m.open.FindStringSubmatch(msg)
		closing := found[1] + found[2]
		opening := map[string]string{")": "(", "]": "[", "}": "{"}[closing]
		if strings.Count(line, closing) > strings.Count(line, opening) {
			return fmt.Sprintf("%s has no %s before it: type the whole expression, or remove it", closing, opening)
		}
	case m.start.MatchString(line) && !atEnd:
		what := m.start.FindString(line)
		if strings.HasPrefix(what, ".") {
			return fmt.Sprintf("a value is missing before the dot: VALUE%s, or _%[1]s for the last value", what)
		}
		return fmt.Sprintf("a value is missing before %s", what)
	case atEnd && m.operator.MatchString(line):
		return fmt.Sprintf("an expression is missing after %s", m.operator.FindStringSubmatch(line)[1])
	}
	return ""
}

// firstValues are statements that define the names that documents use.
var firstValues = map[string]string{
	"f": "discover()", "fabric": "discover()", "g": "discover().graph()", "graph": "discover().graph()", "routes": "get_routes()",
}

// commandCode is the code that does what a command does, where a script needs no command.
var commandCode = map[string]string{
	"diff": "f.diff(OTHER)", "report": `load("@std//report/NAME.star", "main"); main()`, "route": `f.graph().route("updn")`,
	"snapshot": `save(get_routes(), "FILE.snap")`, "verify": "get_routes().verify()",
}

// commandHint returns the hint for the name of a command that is used as a function.
func commandHint(name string, atPrompt bool) string {
	how := "run fabsh " + name + " in a shell"
	if atPrompt {
		how = "write words after it and no parentheses, as in a shell: " + name
		switch name {
		case "audit":
			how += " counters"
		case "report":
			how += " iblinkinfo"
		case "route":
			how += " updn"
		}
	}
	hint := name + " is a command; " + how
	if code := commandCode[name]; code != "" {
		hint += "; as code, " + code
	}
	return hint
}
