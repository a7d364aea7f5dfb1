package check

import (
	"regexp"
	"strings"
	"sync"

	"go.starlark.net/syntax"
)

// membership is the text before an element of a list or tuple that a value is searched in.
var membership = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:not\s+)?in\s*[\[(][^\[\](){}\n]*$`)
})

// comparedWords returns the words that the attribute before a comparison may have: before
// ends where the string begins, as in `port.state == "`.
func (c *Completer) comparedWords(before, after string) []string {
	before = strings.TrimRight(before, " \t")
	left, equal := strings.CutSuffix(before, "==")
	if !equal {
		left, equal = strings.CutSuffix(before, "!=")
	}
	if !equal {
		m := membership().FindStringIndex(before)
		if m == nil {
			return nil
		}
		left = before[:m[0]]
	}
	e, err := new(syntax.FileOptions).ParseExpr("", primaryBefore(left), 0)
	if err != nil {
		return nil
	}
	dot, ok := e.(*syntax.DotExpr)
	if !ok {
		return nil
	}
	return Words(c.infer(dot.X, scope{left, after}).TypeName(), dot.Name.Name)
}
