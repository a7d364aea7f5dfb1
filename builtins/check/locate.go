package check

import (
	"slices"
	"strings"
)

// location describes the position of the cursor in a statement.
type location struct {
	comment bool
	quote   string    // of the string around the cursor, or empty
	start   int       // where that string's text begins
	call    *openCall // the innermost open bracket, if that is a call's
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

// innermost returns the innermost open bracket, nil if that is not a call's.
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
