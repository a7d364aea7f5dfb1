package check

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// The definitions of variables by regular expressions over the whole text, which took seconds in
// long scripts. The functions that are used must find the same.
var (
	oldClause     = regexp.MustCompile(`\bfor\s+([\w\s,()]+?)\s+in\s+`)
	oldHead       = regexp.MustCompile(`(?m)^def[ \t]+(\w+)[ \t]*\(([^()]*)`)
	oldAssignment = regexp.MustCompile(`(?m)^[ \t]*(\w+)[ \t]*=[ \t]*([^=\s].*)$`)
	oldMembership = regexp.MustCompile(`\b(?:not\s+)?in\s*[\[(][^\[\](){}\n]*$`)
)

func oldBinding(s scope, name string) (src string, outer scope, inFor int, ok bool) {
	last := -1
	for _, m := range oldClause.FindAllStringSubmatchIndex(s.before, -1) {
		if i := placeIn(s.before[m[2]:m[3]], name); i >= 0 {
			last, inFor, src, outer = m[0], i, iteratedExpr(s.before[m[1]:]), scope{before: s.before[:m[0]]}
		}
	}
	for _, m := range oldAssignment.FindAllStringSubmatchIndex(s.before, -1) {
		if m[0] > last && s.before[m[2]:m[3]] == name && m[1] < len(s.before) {
			last, inFor, src, outer = m[0], -1, s.before[m[4]:m[5]], scope{before: s.before[:m[0]]}
		}
	}
	if last >= 0 {
		return src, outer, inFor, true
	}
	for _, m := range oldClause.FindAllStringSubmatchIndex(s.after, -1) {
		if i := placeIn(s.after[m[2]:m[3]], name); i >= 0 {
			return iteratedExpr(s.after[m[1]:]), scope{before: s.before, after: s.after[:m[0]]}, i, true
		}
	}
	return "", scope{}, 0, false
}

// same reports how the functions differ for a text with a cursor; "": they do not.
func same(text string, cursor int, name string) string {
	s := scope{text[:cursor], text[cursor:]}
	show := func(src string, outer scope, inFor int, ok bool) string {
		if !ok {
			return "unbound"
		}
		return fmt.Sprintf("%q %d %d %d", src, len(outer.before), len(outer.after), inFor)
	}
	if old, now := show(oldBinding(s, name)), show(s.binding(name)); old != now {
		return fmt.Sprintf("%q in %q and %q: %s, was %s", name, s.before, s.after, now, old)
	}
	head := "no function"
	if all := oldHead.FindAllStringSubmatch(s.before, -1); len(all) > 0 {
		head = fmt.Sprintf("%q", all[len(all)-1][1:])
	}
	now := "no function"
	if function, params, ok := functionHead(s.before); ok {
		now = fmt.Sprintf("%q", []string{function, params})
	}
	if now != head {
		return fmt.Sprintf("function in %q: %s, was %s", s.before, now, head)
	}
	left, ok := membership(s.before)
	m := oldMembership.FindStringIndex(s.before)
	if ok != (m != nil) || ok && left != s.before[:m[0]] {
		return fmt.Sprintf("membership in %q: %q %v, was %v", s.before, left, ok, m)
	}
	return ""
}

// scriptWords are the parts of random scripts.
var scriptWords = []string{"for", "in", "not", "def", "if", "x", "xy", "y", "x_1", "knot", "form", "ß", "\xff", "1", " ", " ", " ", "  ", "\t", "\n", "\n", "\n    ", "\r\n", "\f", "\v", "\"", "#", ",", "(", ")", "[", "]", "{", "}", "=", "==", ":", ".", "+", "for x in y:\n", "x = y\n", "def x(y, x = 1):\n", "[x for x, y in x]", "x in [", "x not in ("}

// TestDefinitions: in random scripts the definitions of variables are those of the regular
// expressions.
func TestDefinitions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			b.WriteString(scriptWords[r.IntN(len(scriptWords))])
		}
		text := b.String()
		for _, name := range []string{"x", "y", "xy", "ß"} {
			if diff := same(text, r.IntN(len(text)+1), name); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func FuzzDefinitions(f *testing.F) {
	f.Add("def f(a, b):\n    x = a\n    for x in x:\n        x.\n", uint(30), "x")
	f.Add("for  in x in y: (not in [", uint(9), "in")
	f.Fuzz(func(t *testing.T, text string, cursor uint, name string) {
		if !isName(name) {
			return
		}
		if diff := same(text, int(cursor%uint(len(text)+1)), name); diff != "" {
			t.Fatal(diff)
		}
	})
}
