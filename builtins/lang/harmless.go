package lang

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names that a fabric tells are any tenant's text. What a terminal would obey
// is shown as the escape that a string literal has for it: control characters,
// C1 (U+0080 to U+009F) included; what turns the direction of writing; line and
// paragraph separators; and bytes that are not UTF-8.

// Harmless is s for a terminal. Line breaks and tabs stay.
func Harmless(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && unsafe(r) })
}

// OneLine is s for a cell, or a line, of text: line breaks and tabs are escaped
// too.
func OneLine(s string) string { return escape(s, unsafe) }

// unsafe: r does something other than show.
func unsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true // Unicode standard annex 9, explicit directional formatting
	}
	return false
}

// escape escapes what bad says, and bytes that are not UTF-8.
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
