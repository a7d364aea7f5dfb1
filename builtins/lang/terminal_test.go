package lang

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestHarmless: nothing that a terminal would obey comes through.
func TestHarmless(t *testing.T) {
	for _, test := range []struct{ text, terminal, cell string }{
		{"leaf-1 ä 日", "leaf-1 ä 日", "leaf-1 ä 日"},
		{"a\nb\tc", "a\nb\tc", `a\nb\tc`},
		{"\x1b]0;title\a", `\x1b]0;title\a`, `\x1b]0;title\a`},
		{"\u009b31m", `\u009b31m`, `\u009b31m`},
		{"\u202egnp.exe", `\u202egnp.exe`, `\u202egnp.exe`},
		{"x\x9b\xff", `x\x9b\xff`, `x\x9b\xff`},
		{"a\rb\x7f", `a\rb\x7f`, `a\rb\x7f`},
	} {
		if got := Harmless(test.text); got != test.terminal {
			t.Errorf("Harmless(%q) = %s, want %s", test.text, got, test.terminal)
		}
		if got := OneLine(test.text); got != test.cell {
			t.Errorf("OneLine(%q) = %s, want %s", test.text, got, test.cell)
		}
	}
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		width    int
		in, want string
	}{
		{0, "as it is, however long\n", "as it is, however long\n"},
		{10, "short\n", "short\n"},
		{10, "one two three four\n", "one two\n  three\n  four\n"},
		{10, "supercalifragilistic word\n", "supercalifragilistic\n  word\n"},
		{10, "", ""},
		{20, "name  value with words\n", "name  value with\n      words\n"},
		{20, "a very long name  and value\n", "a very long name\n  and value\n"},
		{14, "  indented text goes on\n", "  indented\n    text goes\n    on\n"},
		{8, "\u4e2d\u6587 \u4e2d\u6587 \u4e2d\u6587\n", "\u4e2d\u6587\n  \u4e2d\u6587\n  \u4e2d\u6587\n"},
		{12, "no end of line", "no end of\n  line"},
		{1, "a b c", "a\nb\nc"},
	} {
		if got := Fit(test.in, test.width); got != test.want {
			t.Errorf("%d %q: got %q, want %q", test.width, test.in, got, test.want)
		}
	}
	// No text hangs it, and no word is lost.
	for width := range 12 {
		for _, in := range []string{strings.Repeat(" ", 30) + "x", "x" + strings.Repeat(" ", 30) + "y z", "a  b  c  d  e f g h i j k l m"} {
			if got := Fit(in, width); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(in), " ") {
				t.Errorf("%d %q: %q", width, in, got)
			}
		}
	}
}

// TestReflow: prose that is wrapped fills the width, and what is no prose keeps its lines.
func TestReflow(t *testing.T) {
	const text = `An audit is a .star file that defines audit(fabric, *, ...), or one that is
shipped, by name. Without names the standard set runs.

Usage:
  fabsh audit [NAME] [flags]

link.width  narrower than both ends support (error). False positives: a cable
            that carries no more.
link.flap   the link was up and not active.
`
	const want = `An audit is a .star file that defines
audit(fabric, *, ...), or one that is
shipped, by name. Without names the
standard set runs.

Usage:
  fabsh audit [NAME] [flags]

link.width  narrower than both ends
            support (error). False
            positives: a cable that
            carries no more.
link.flap   the link was up and not
            active.
`
	if diff := cmp.Diff(want, Reflow(text, 37)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := Reflow(text, 0); got != text {
		t.Errorf("without a width: %q", got)
	}
}
