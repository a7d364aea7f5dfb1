package lang

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Harmless returns s escaped for a terminal. Line breaks and tabs stay.
//
// Any tenant of a fabric can choose names in it. Therefore the following are shown as the
// escapes of a string literal: control characters, which terminals interpret, including C1
// (U+0080 to U+009F); changes of the writing direction; line and paragraph separators; and
// bytes that are not UTF-8.
func Harmless(s string) string {
	return escapeRunes(s, func(r rune) bool { return r != '\n' && r != '\t' && isUnsafeRune(r) })
}

// OneLine returns s escaped for a cell or a line of text: line breaks and tabs are
// escaped too.
func OneLine(s string) string { return escapeRunes(s, isUnsafeRune) }

// Fit wraps a text at the width of the session's terminal.
func (r *Runtime) Fit(s string) string { return Fit(s, r.Columns()) }

// Columns returns the maximum of columns in a line of text; 0: unlimited.
func (r *Runtime) Columns() int {
	if r.Width == nil {
		return 0
	}
	return r.Width()
}

// Fit wraps the lines of a text for people that are longer than width, between words.
// The rest of a line such as "name  value" is indented below the value, the rest of any
// other line by two more columns. A longer word stays whole. Width 0 is unlimited.
func Fit(s string, width int) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		fitLine(&b, line, width, hangingIndent(strings.TrimSuffix(line, "\n"), width))
	}
	return b.String()
}

// Prose is Fit for help: the rest of a paragraph is not indented.
func Prose(s string, width int) string {
	return wrapParagraphs(s, width, func(string, string, string) bool { return false })
}

// Reflow is Prose for text that is already wrapped: it first joins the lines of a
// paragraph.
func Reflow(s string, width int) string { return wrapParagraphs(s, width, continuesLine) }

// wrapParagraphs wraps lines without indenting the rest of prose. continues reports whether
// next is a part of the line before it.
func wrapParagraphs(s string, width int, continues func(whole, last, next string) bool) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := 0; i < len(lines); {
		whole := lines[i]
		for i++; i < len(lines) && continues(whole, lines[i-1], lines[i]); i++ {
			whole += " " + strings.TrimLeft(lines[i], " ")
		}
		hang := hangingIndent(whole, width)
		if isProse := strings.HasSuffix(whole, ".") || strings.Contains(whole, ". "); isProse && !strings.HasPrefix(whole, " ") && !strings.Contains(whole, "  ") {
			hang = 0
		}
		fitLine(&b, whole+"\n", width, hang)
	}
	return b.String()
}

// continuesLine reports whether next continues a wrapped line: of prose, whose last part is
// long, with the same indentation; of "name  value", below the value.
func continuesLine(whole, last, next string) bool {
	const long = 56 // columns; wrapped prose has few shorter lines
	bare := strings.TrimLeft(next, " ")
	indent := len(next) - len(bare)
	first := len(whole) - len(strings.TrimLeft(whole, " "))
	if bare == "" || strings.TrimSpace(whole) == "" {
		return false
	}
	if gap := strings.Index(whole[first:], "  "); gap > 0 {
		after := first + gap
		return indent == len(whole)-len(strings.TrimLeft(whole[after:], " "))
	}
	code := indent == 2 // in prose, such as the examples of help
	return indent == first && !code && textWidth(last) >= long && !strings.Contains(bare, "  ") && !strings.HasPrefix(bare, "-") && !strings.HasSuffix(whole, ":")
}

// fitLine wraps a line; all parts except the first begin with hang blanks.
func fitLine(b *strings.Builder, line string, width, hang int) {
	bare, end := strings.CutSuffix(line, "\n")
	if width > 0 && textWidth(bare) > width {
		bare = strings.TrimRight(bare, " ") // after which nothing follows
	}
	for width > 0 && textWidth(bare) > width {
		at := breakAt(bare, width, hang)
		if at < 0 {
			break
		}
		b.WriteString(strings.TrimRight(bare[:at], " ") + "\n")
		bare = strings.Repeat(" ", hang) + strings.TrimLeft(bare[at:], " ")
	}
	b.WriteString(bare)
	if end {
		b.WriteByte('\n')
	}
}

// hangingIndent returns the indentation of the rest of a line that is too long: below the
// text after the last gap of two blanks in its first half, if there is one.
func hangingIndent(line string, width int) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	hang := indent + 2
	if gap := strings.Index(line[indent:], "  "); gap > 0 {
		after := indent + gap
		value := len(line) - len(strings.TrimLeft(line[after:], " "))
		if w := textWidth(line[:value]); w <= width/2 {
			hang = w
		}
	}
	return min(hang, width/2)
}

// breakAt returns the index of the last blank that a line of that width may end at,
// else of the first blank after it; -1: no blank follows the first n.
func breakAt(line string, width, n int) int {
	last, w := -1, 0
	for i, c := range line {
		if c == ' ' && i > n && strings.TrimLeft(line[:i], " ") != "" {
			if w > width && last >= 0 {
				return last
			}
			if last = i; w > width {
				return last
			}
		}
		w += text.RuneWidth(c)
	}
	return last
}

func textWidth(s string) int { return text.StringWidthWithoutEscSequences(s) }

// WrapWords breaks the lines that are longer than columns and not indented.
func WrapWords(s string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, " ") {
			b.WriteString(line)
			continue
		}
		fitLine(&b, line, columns, 0)
	}
	return b.String()
}

// isUnsafeRune reports whether r has an effect other than its display.
func isUnsafeRune(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true // Unicode standard annex 9, explicit directional formatting
	}
	return false
}

// escapeRunes escapes the runes for which bad returns true, and bytes that are not UTF-8.
func escapeRunes(s string, bad func(rune) bool) string {
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

// Shades of a cell: numbers from 0, and unknown or absent.
const (
	Shades       = 8 // from low to high
	ShadeUnknown = 8
	ShadeNone    = 9
)

// shadeMarks are the characters of shades, also of unknown and absent: cells differ without colour.
const shadeMarks = ".:-=+*#@? "

// ShadeMark returns the character for a cell of a shade.
func ShadeMark(shade int) string { return shadeMarks[shade : shade+1] }

// firstCell is the first of the runes that stand for cells in colour. They are in Unicode's
// private use area, so that they have no other meaning.
const firstCell = 0xf_0000

// Cell returns the rune for a cell of a shade in colour. The writer to the terminal replaces it by
// the mark of the shade on its colour.
func Cell(shade int) rune { return rune(firstCell + shade) }

// CellOf returns the shade of a rune of Cell; false: r is another rune.
func CellOf(r rune) (shade int, ok bool) {
	return int(r - firstCell), r >= firstCell && r <= firstCell+ShadeNone
}
