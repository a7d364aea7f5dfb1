package lang

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Fit breaks the lines of a text for people that are longer than the screen,
// between words. What follows stands below the value of a line such as
// "name  value", else two further in. A word that is longer stays whole.
func (r *Runtime) Fit(s string) string {
	if r.Width == nil {
		return s
	}
	return fit(s, r.Width())
}

func fit(s string, width int) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		fitLine(&b, line, width)
	}
	return b.String()
}

func fitLine(b *strings.Builder, line string, width int) {
	bare, end := strings.CutSuffix(line, "\n")
	hang := hanging(bare, width)
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

// hanging is how far in the rest of a line begins that is too long: below the
// text after the last gap of two blanks in its first half, where there is one.
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

// breakAt is the index of the last blank that a line of that width may end at,
// else of the first after it; -1: there is none behind the first n.
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
