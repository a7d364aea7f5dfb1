package lang

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Any tenant of a fabric can choose names in it. The following are therefore shown as
// the escapes of a string literal: control characters, which terminals interpret,
// including C1 (U+0080 to U+009F); changes of the writing direction; line and
// paragraph separators; and bytes that are not UTF-8.

// Harmless returns s escaped for a terminal. Line breaks and tabs stay.
func Harmless(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && unsafe(r) })
}

// OneLine returns s escaped for a cell or a line of text: line breaks and tabs are
// escaped too.
func OneLine(s string) string { return escape(s, unsafe) }

// unsafe reports whether r has an effect other than its display.
func unsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true // Unicode standard annex 9, explicit directional formatting
	}
	return false
}

// escape escapes the runes for which bad returns true, and bytes that are not UTF-8.
func escape(s string, bad func(rune) bool) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, bad) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case bad(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
