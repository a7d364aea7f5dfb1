package lang

import (
	"strings"
	"testing"
)

// TestWrapWords: messages break at words, and the lines of scripts do not.
func TestWrapWords(t *testing.T) {
	long := strings.Repeat("x", 30)
	for text, want := range map[string]string{
		"": "", "\n": "\n", "one two three": "one two\nthree", "one two three\n": "one two\nthree\n", "0123456789\n": "0123456789\n", "0123456789 a": "0123456789\na",
		"    indented and long\n    ^\n": "    indented and long\n    ^\n", long: long, long + " y": long + " y", "a " + long: "a\n" + long,
		"one two three\nfour five six": "one two\nthree\nfour five\nsix", "äöü äöü äöü": "äöü äöü\näöü",
	} {
		if got := WrapWords(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
