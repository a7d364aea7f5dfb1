package lang

import (
	"slices"
	"strings"
	"testing"
)

// TestWrapWords: messages break at words, and the lines of scripts do not.
func TestWrapWords(t *testing.T) {
	long := strings.Repeat("x", 30)
	for text, want := range map[string]string{
		"": "", "\n": "\n", "one two three": "one two\nthree", "one two three\n": "one two\nthree\n", "0123456789\n": "0123456789\n", "0123456789 a": "0123456789\na",
		"    indented and long\n    ^\n": "    indented and long\n    ^\n", long: long, long + " y": long + "\ny", "a " + long: "a\n" + long,
		"one two three\nfour five six": "one two\nthree\nfour five\nsix", "äöü äöü äöü": "äöü äöü\näöü",
		"äöü äöü ää": "äöü äöü ää", long + " ": long, long + " \n": long + "\n", "one two   three": "one two\nthree",
	} {
		if got := WrapWords(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// FuzzWrapWords: no word is lost, and a line is within the width unless it is one word.
func FuzzWrapWords(f *testing.F) {
	for _, text := range []string{"", "one two three\n", "error: <command>:1:5: " + strings.Repeat("x", 74) + " ", "a  b \n\n  c d e", "äöü 網路 x\u0301", "\x1b[31mred\x1b[0m \xff \t"} {
		f.Add(text, 10)
		f.Add(text, 80)
	}
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == '\n' })
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		got := WrapWords(s, width)
		if !slices.Equal(words(got), words(s)) {
			t.Errorf("%q, width %d: got %q", s, width, got)
		}
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if width > 0 && textWidth(line) > width && !strings.HasPrefix(line, " ") && strings.Contains(line, " ") {
				t.Errorf("%q, width %d: a line is longer: %q", s, width, line)
			}
		}
	})
}
