package prompt

import (
	"testing"
)

func TestPaste(t *testing.T) {
	const key = string(pasteKey)
	tests := []struct{ name, in, want, pasted string }{
		{"typed", "a\r\rb\r", "a\r\rb\r", ""},
		{"keys", "\x1b[1~\x03\x1b", "\x01\x07\x03\x1b", ""},
		{"blank lines", pasteBegin + "def f():\r    a\r\r  \r    b\r" + pasteEnd + "\r", key + "\r\r", "def f():\n    a\n\n  \n    b|"},
		{"line feeds", pasteBegin + "a\n\nb\r\n\r\nc" + pasteEnd, key, "a\n\nb\n\nc|"},
		{"tabs", pasteBegin + "if a:\r\tb\tc" + pasteEnd, key, "if a:\n\tb\tc|"},
		{"control characters", pasteBegin + "a\x03\x04\x1b[1~b" + pasteEnd + "\x03", key + "\x07\x03", "a[1~b|"},
		{"what turns the writing, and C1", pasteBegin + "'a\u202e\u009b1m\x7f\u2028'\r" + pasteEnd, key + "\r", `'a\u202e\u009b1m\x7f\u2028'|`},
		{"the editor's own", "\ue000" + pasteBegin + "\ue004a\ue008" + pasteEnd + "\ue007b", key + "b", "a|"},
		{"two", pasteBegin + "a\r" + pasteEnd + "\r" + pasteBegin + "\rb" + pasteEnd, key + "\r\r" + key, "a|\nb|"},
		{"other text", pasteBegin + "日本\r\r" + pasteEnd, key + "\r", "日本|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			keys := func(parts ...string) (got, pasted string) {
				p := paste{deliver: func(text string) { pasted += text + "|" }}
				for _, part := range parts {
					got += p.keys(part)
				}
				return got, pasted
			}
			if got, pasted := keys(tt.in); got != tt.want || pasted != tt.pasted {
				t.Errorf("got %q, %q, want %q, %q", got, pasted, tt.want, tt.pasted)
			}
			if tt.name == "keys" || tt.name == "the editor's own" {
				return // in pieces, names and runes break
			}
			// However the terminal's bytes come in: brackets are cut anywhere
			// but behind their escape, which alone is a key.
			for i := range tt.in {
				if i > 0 && tt.in[i-1] == '\x1b' {
					continue
				}
				if got, pasted := keys(tt.in[:i], tt.in[i:]); got != tt.want || pasted != tt.pasted {
					t.Errorf("cut at %d: got %q, %q, want %q, %q", i, got, pasted, tt.want, tt.pasted)
				}
			}
		})
	}
}
