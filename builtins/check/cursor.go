package check

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/script"
)

// location describes the position of the cursor in a statement.
type location struct {
	comment bool
	quote   string    // of the string around the cursor, or empty
	start   int       // where that string's text begins
	call    *openCall // the innermost open bracket, if it is the bracket of a call
}

// openCall is a call without its closing bracket.
type openCall struct {
	callee   string   // source
	args     []string // source of the arguments before this one, all kinds
	given    []string // the keywords used so far
	keyword  string   // of this argument
	argStart int      // where this argument's value begins
	bracket  int      // where it opens
}

// locate scans text up to its end, the cursor.
func locate(text string) location {
	var stack []*openCall // nil: a bracket that is not round
	end := func(i int) {
		if n := len(stack); n > 0 && stack[n-1] != nil {
			c := stack[n-1]
			if c.keyword == "" {
				c.args = append(c.args, strings.TrimSpace(text[c.argStart:i]))
			}
			c.keyword, c.argStart = "", i+1
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return location{comment: true}
			}
			i += n
		case '"', '\'':
			quote := text[i : i+1]
			if t := strings.Repeat(quote, 3); strings.HasPrefix(text[i:], t) {
				quote = t
			}
			start := i + len(quote)
			n := stringEnd(text[start:], quote)
			if n < 0 {
				return location{quote: quote, start: start, call: innermost(text, stack)}
			}
			i = start + n + len(quote) - 1
		case '(':
			stack = append(stack, &openCall{argStart: i + 1, bracket: i})
		case '[', '{':
			stack = append(stack, nil)
		case ')', ']', '}':
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
		case ',':
			end(i)
		case '=':
			if call := top(stack); call != nil && call.keyword == "" {
				if k := strings.TrimSpace(text[call.argStart:i]); isName(k) && !strings.HasPrefix(text[i:], "==") {
					call.keyword, call.argStart = k, i+1
					call.given = append(call.given, k)
				}
			}
		}
	}
	return location{call: innermost(text, stack)}
}

// innermost returns the innermost open bracket, nil if it is not the bracket of a call.
func innermost(text string, stack []*openCall) *openCall {
	call := top(stack)
	if call == nil {
		return nil
	}
	before := text[:call.bracket]
	call.callee = primaryBefore(before)
	if call.callee == "" || isDef(before, call.callee) {
		return nil
	}
	return call
}

// top returns the last element of a stack, nil if it is empty.
func top(stack []*openCall) *openCall {
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

// stringEnd returns the offset of the closing quote in text, or -1.
func stringEnd(text, quote string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i
		case text[i] == '\n' && len(quote) == 1:
			return i - 1 // broken off; go on with the next line
		}
	}
	return -1
}

// isDef reports whether callee is the name of a function being defined.
func isDef(before, callee string) bool {
	words := strings.Fields(strings.TrimSuffix(strings.TrimRight(before, " "), callee))
	return len(words) > 0 && words[len(words)-1] == "def"
}

// isName reports whether s is an identifier.
func isName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !IsWordByte(s[i]) {
			return false
		}
	}
	return true
}

// HasWord reports whether l begins with one of words as a whole word.
func HasWord(l string, words ...string) bool {
	n := 0
	for n < len(l) && IsWordByte(l[n]) {
		n++
	}
	return slices.Contains(words, l[:n])
}

// IsWordByte reports whether c can be part of a name.
func IsWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// scope is the text around an expression, which defines the variables of loops and comprehensions,
// and the variables that a block assigns.
type scope struct{ before, after string }

// infer returns the shape of an expression. It calls nothing: the type of the result of a call is
// known from the declaration of the function.
func (c *Completer) infer(e syntax.Expr, at scope) Shape {
	in := Inference{
		Value: func(e syntax.Expr) starlark.Value {
			if id, ok := e.(*syntax.Ident); ok && at.binds(id.Name) {
				return nil
			}
			return c.value(e)
		},
		Variable: func(id *syntax.Ident) Shape { return c.variable(id.Name, at) },
	}
	return in.Infer(e)
}

// forClause is the head of a loop or a comprehension.
var forClause = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bfor\s+([\w\s,()]+?)\s+in\s+`)
})

// clause is a for clause, from start: the names between begin and end, and the iterated expression
// from rest.
type clause struct{ start, begin, end, rest int }

// clausesIn returns the for clauses of a part of a text that bind a name. Such a part has no other
// bytes than those of inClause, and is as long as possible, so no clause is beyond its ends.
func clausesIn(text string, begin, end int, name string) (list []clause) {
	part := text[begin:end]
	if !strings.Contains(part, "for") || !strings.Contains(part, name) {
		return nil
	}
	for _, m := range forClause().FindAllStringSubmatchIndex(part, -1) {
		if placeIn(part[m[2]:m[3]], name) >= 0 {
			list = append(list, clause{begin + m[0], begin + m[2], begin + m[3], begin + m[1]})
		}
	}
	return list
}

// inClause are the bytes that a for clause consists of: [\w\s,()].
var inClause = func() (set [256]bool) {
	for c := range set {
		set[c] = isWord(byte(c)) || isSpace(byte(c)) || strings.IndexByte(",()", byte(c)) >= 0
	}
	return set
}()

// isWord and isSpace are \w and \s of regular expressions.
func isWord(c byte) bool  { return c < 0x80 && IsWordByte(c) }
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

// lastClause returns the last for clause of a text that binds a name. The text is read from its
// end: it may have 15,000 lines.
func lastClause(text, name string) (found clause, ok bool) {
	for end := len(text); end > 0; {
		begin := end
		for begin > 0 && inClause[text[begin-1]] {
			begin--
		}
		if list := clausesIn(text, begin, end, name); len(list) > 0 {
			return list[len(list)-1], true
		}
		end = begin - 1
	}
	return found, false
}

// firstClause returns the first for clause of a text that binds a name.
func firstClause(text, name string) (found clause, ok bool) {
	for begin := 0; begin < len(text); {
		end := begin
		for end < len(text) && inClause[text[end]] {
			end++
		}
		if list := clausesIn(text, begin, end, name); len(list) > 0 {
			return list[0], true
		}
		begin = end + 1
	}
	return found, false
}

// lastAssignment returns the start of the last line of a text that assigns a name, behind an
// offset, and the assigned expression. Only whole lines count.
func lastAssignment(text, name string, behind int) (start int, src string, ok bool) {
	for end := strings.LastIndexByte(text, '\n'); end >= 0 && end > behind; end = start - 1 {
		start = strings.LastIndexByte(text[:end], '\n') + 1
		if start <= behind {
			break
		}
		rest, isName := strings.CutPrefix(strings.TrimLeft(text[start:end], " \t"), name)
		if !isName {
			continue
		}
		rest, isAssigned := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "=")
		if rest = strings.TrimLeft(rest, " \t"); isAssigned && rest != "" && rest[0] != '=' && !isSpace(rest[0]) {
			return start, rest, true
		}
	}
	return 0, "", false
}

// binds reports whether the text around defines a variable with a name.
func (s scope) binds(name string) bool {
	_, _, _, ok := s.binding(name)
	return ok
}

// binding returns the expression that a variable comes from: the last one before the
// cursor, else the first one after it, where a comprehension has it. inFor is the index
// of the name among the clause's variables; -1: it was assigned.
func (s scope) binding(name string) (src string, outer scope, inFor int, ok bool) {
	last := -1
	m, isFor := lastClause(s.before, name)
	if isFor {
		last = m.start
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		if start, src, ok := lastAssignment(s.before, name, last); ok {
			return src, scope{before: s.before[:start]}, -1, true
		}
	}
	if isFor {
		return iteratedExpr(s.before[m.rest:]), scope{before: s.before[:m.start]}, placeIn(s.before[m.begin:m.end], name), true
	}
	if m, ok := firstClause(s.after, name); ok {
		return iteratedExpr(s.after[m.rest:]), scope{before: s.before, after: s.after[:m.start]}, placeIn(s.after[m.begin:m.end], name), true
	}
	return "", scope{}, 0, false
}

// functionHead returns the name and the parameters of the last function that a text defines at the
// begin of a line.
func functionHead(text string) (name, params string, ok bool) {
	for at := 0; at < len(text); {
		if at > 0 && text[at-1] != '\n' || !strings.HasPrefix(text[at:], "def") {
			n := strings.Index(text[at:], "\ndef")
			if n < 0 {
				break
			}
			at += n + 1
		}
		at += len("def")
		rest := strings.TrimLeft(text[at:], " \t")
		n := 0
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
		list, isHead := strings.CutPrefix(strings.TrimLeft(rest[n:], " \t"), "(")
		if n == 0 || len(rest) == len(text[at:]) || !isHead {
			continue
		}
		end := strings.IndexAny(list, "()")
		if end < 0 {
			end = len(list)
		}
		name, params, ok = rest[:n], list[:end], true
		at = len(text) - len(list) + end
	}
	return name, params, ok
}

// parameter returns the shape of a parameter of the function around the cursor.
func (s scope) parameter(name string) Shape {
	function, params, ok := functionHead(s.before)
	if !ok {
		return Shape{}
	}
	for i, param := range strings.Split(params, ",") {
		if param, _, _ = strings.Cut(param, "="); strings.TrimSpace(param) == name {
			return OfType(script.ParamType(function, i, name))
		}
	}
	return Shape{}
}

// placeIn returns the index of a name among a clause's variables, or -1.
func placeIn(vars, name string) int {
	return slices.Index(strings.FieldsFunc(vars, func(r rune) bool { return strings.ContainsRune(" \t\n,()", r) }), name)
}

// iteratedExpr returns the expression at the start of text, which follows "in".
func iteratedExpr(text string) string {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; ch {
		case '"', '\'':
			n := stringEnd(text[i+1:], string(ch))
			if n < 0 {
				return text[:i]
			}
			i += n + 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return text[:i]
			}
		case ':', '\n', '#':
			if depth == 0 {
				return text[:i]
			}
		case ' ':
			if depth == 0 && HasWord(strings.TrimLeft(text[i:], " "), "for", "if", "else") {
				return text[:i]
			}
		}
	}
	return text
}

// variable returns the shape of a variable from the text around it.
func (c *Completer) variable(name string, at scope) Shape {
	src, outer, inFor, ok := at.binding(name)
	if !ok {
		return at.parameter(name)
	}
	e, err := new(syntax.FileOptions).ParseExpr("", strings.TrimSpace(src), 0)
	if err != nil {
		return Shape{}
	}
	if inFor < 0 {
		return c.infer(e, outer)
	}
	if call, ok := e.(*syntax.CallExpr); ok && inFor > 0 && len(call.Args) > 0 {
		if id, ok := call.Fn.(*syntax.Ident); ok && id.Name == "enumerate" {
			return c.infer(call.Args[0], outer).Element()
		}
	}
	if inFor > 0 {
		return Shape{}
	}
	return c.infer(e, outer).Element()
}

// primaryBefore returns the primary expression at the end of text: names, literals and
// brackets, with calls, indexes and attributes of them. It is empty without one.
func primaryBefore(text string) string {
	type level struct {
		start   int  // of the primary; -1: none
		operand bool // an operand has just ended
		dot     bool // a dot stands before
	}
	levels := []level{{start: -1}}
	for i := 0; i < len(text); i++ {
		l := &levels[len(levels)-1]
		begin := func() {
			if !l.dot {
				l.start = i
			}
			l.operand, l.dot = true, false
		}
		switch ch := text[i]; {
		case ch == ' ' || ch == '\t' || ch == '\n':
		case ch == '#':
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return ""
			}
			i += n
		case ch == '"' || ch == '\'':
			quote := text[i : i+1]
			if t := strings.Repeat(quote, 3); strings.HasPrefix(text[i:], t) {
				quote = t
			}
			begin()
			n := stringEnd(text[i+len(quote):], quote)
			if n < 0 {
				return ""
			}
			i += len(quote) + n + len(quote) - 1
		case IsWordByte(ch):
			n := i
			for n < len(text) && IsWordByte(text[n]) {
				n++
			}
			if HasWord(text[i:n], "and", "or", "not", "in", "if", "else", "for", "return", "lambda", "def", "while", "elif") && !l.dot {
				l.start, l.operand = -1, false
			} else {
				begin()
			}
			i = n - 1
		case ch == '.' && l.operand:
			l.operand, l.dot = false, true
		case ch == '(' || ch == '[' || ch == '{':
			if !l.operand || ch == '{' {
				begin()
			}
			levels = append(levels, level{start: -1})
		case ch == ')' || ch == ']' || ch == '}':
			if len(levels) > 1 {
				levels = levels[:len(levels)-1]
				levels[len(levels)-1].operand = true
			}
		default:
			*l = level{start: -1}
		}
	}
	l := levels[len(levels)-1]
	if l.start < 0 || !l.operand {
		return ""
	}
	return strings.TrimSpace(text[l.start:])
}
