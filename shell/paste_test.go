//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPaste(t *testing.T) {
	const blank = pastedBlank + "\r"
	tests := []struct{ name, in, want string }{
		{"typed", "a\r\rb\r", "a\r\rb\r"},
		{"keys", "\x1b[1~\x03\x1b", "\x01\x07\x03\x1b"},
		{"blank lines", pasteBegin + "def f():\r    a\r\r  \r    b\r" + pasteEnd + "\r", "def f():\r    a\r" + blank + "  " + blank + "    b\r\r"},
		{"line feeds", pasteBegin + "a\n\nb\r\n\r\nc" + pasteEnd, "a\r" + blank + "b\r" + blank + "c"},
		{"tabs", pasteBegin + "if a:\r\tb\tc" + pasteEnd, "if a:\r\tb c"},
		{"control characters", pasteBegin + "a\x03\x04\x1b[1~b" + pasteEnd + "\x03", "a[1~b\x07\x03"},
		{"two", pasteBegin + "a\r" + pasteEnd + "\r" + pasteBegin + "\rb" + pasteEnd, "a\r\r\rb"},
		{"other text", pasteBegin + "日本\r\r" + pasteEnd, "日本\r" + blank},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var whole paste
			if got := whole.keys(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			switch tt.name {
			case "keys", "line feeds", "other text":
				return // in pieces, \r\n counts twice, and names and runes break
			}
			// However the terminal's bytes come in: brackets are cut anywhere
			// but behind their escape, which alone is a key.
			for i := range tt.in {
				if i > 0 && tt.in[i-1] == '\x1b' {
					continue
				}
				var p paste
				if got := p.keys(tt.in[:i]) + p.keys(tt.in[i:]); got != tt.want {
					t.Errorf("cut at %d: got %q, want %q", i, got, tt.want)
				}
			}
		})
	}
}

// TestTerminalPaste: a block that is pasted has blank lines in it.
func TestTerminalPaste(t *testing.T) {
	home := t.TempDir()
	s := startTerminal(t, home, "-F", "sim:ring:n=2")
	s.expect(pasteOn)
	s.expect("TAB completes")
	block := "def f(a):\n\tb = a # two\n\n    \n\tif b:\n\n\t\tb += 1\n\treturn b\n\nf(41)\n"
	s.send(pasteBegin + strings.ReplaceAll(block, "\n", "\r") + pasteEnd)
	if seen := s.expect("\n42\r\n"); strings.Contains(seen, "error") {
		t.Errorf("the screen shows %q", seen)
	}
	s.expect("rw> ")
	s.send("def g():\r\treturn 3\r\rg()\r")
	s.expect("\n3\r\n")
	s.expect("rw> ")
	s.send(ctrlD)
	s.exit(0)
	if !strings.Contains(s.text, pasteOff) {
		t.Errorf("the terminal is left in its mode: %q", s.text)
	}
	history, err := os.ReadFile(filepath.Join(home, ".local/state/fabsh/history"))
	if want := "def f(a):\n\tb = a # two\n\tif b:\n\t\tb += 1\n\treturn b\nf(41)\ndef g():\n"; err != nil || !strings.HasPrefix(string(history), want) {
		t.Errorf("history %q, %v, want %q first", history, err, want)
	}
}
