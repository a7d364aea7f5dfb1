package lang

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

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
// The rest of a line such as "name  value" is indented below the value, that of any
// other by two more columns. A longer word stays whole. Width 0 is unlimited.
func Fit(s string, width int) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		fitLine(&b, line, width, hanging(strings.TrimSuffix(line, "\n"), width))
	}
	return b.String()
}

// Prose is Fit for help: the rest of a paragraph is not indented.
func Prose(s string, width int) string {
	return wrap(s, width, func(string, string, string) bool { return false })
}

// Reflow is Prose for text that is already wrapped: it first joins the lines of a
// paragraph.
func Reflow(s string, width int) string { return wrap(s, width, goesOn) }

func wrap(s string, width int, goesOn func(whole, last, next string) bool) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := 0; i < len(lines); {
		whole := lines[i]
		for i++; i < len(lines) && goesOn(whole, lines[i-1], lines[i]); i++ {
			whole += " " + strings.TrimLeft(lines[i], " ")
		}
		hang := hanging(whole, width)
		if isProse := strings.HasSuffix(whole, ".") || strings.Contains(whole, ". "); isProse && !strings.HasPrefix(whole, " ") && !strings.Contains(whole, "  ") {
			hang = 0
		}
		fitLine(&b, whole+"\n", width, hang)
	}
	return b.String()
}

// goesOn reports whether next continues a wrapped line: of prose, whose last part is
// long, with the same indentation; of "name  value", below the value.
func goesOn(whole, last, next string) bool {
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

// hanging returns the indentation of the rest of a line that is too long: below the
// text after the last gap of two blanks in its first half, if there is one.
func hanging(line string, width int) int {
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
