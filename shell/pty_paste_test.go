//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminalPaste: a block that is pasted has blank lines in it.
func TestTerminalPaste(t *testing.T) {
	home := t.TempDir()
	s := startTerminal(t, home, "-F", "sim:ring:n=2")
	s.expect("\x1b[?2004h")
	s.expect("TAB completes")
	block := "def f(a):\n\tb = a # two\n\n    \n\tif b:\n\n\t\tb += 1\n\treturn b\n\nf(41)\n"
	s.send("\x1b[200~" + strings.ReplaceAll(block, "\n", "\r") + "\x1b[201~")
	if seen := s.expect("\n42\r\n"); strings.Contains(seen, "error") {
		t.Errorf("the screen shows %q", seen)
	}
	s.expect("rw> ")
	for _, line := range []string{"def g():", "return 3"} { // typed
		s.send(line + "\r")
		s.expect("... ")
	}
	s.send("\r")
	s.expect("rw> ")
	s.send("g()\r")
	s.expect("\n3\r\n")
	s.expect("rw> ")
	// Without brackets, as on a serial console, it is the same program.
	s.send(strings.ReplaceAll(strings.Replace(block, "f(41)", "f(42)", 1), "\n", "\r"))
	if seen := s.expect("\n43\r\n"); strings.Contains(seen, "error") {
		t.Errorf("without brackets, the screen shows %q", seen)
	}
	s.expect("rw> ")
	s.send(ctrlD)
	s.exit(0)
	if !strings.Contains(s.text, "\x1b[?2004l") {
		t.Errorf("the terminal is left in its mode: %q", s.text)
	}
	history, err := os.ReadFile(filepath.Join(home, ".local/state/fabsh/history"))
	if want := strings.ReplaceAll("def f(a):|\tb = a # two||    |\tif b:||\t\tb += 1|\treturn b\nf(41)\ndef g():|    return 3\ng()\n", "|", "\u2028"); err != nil || !strings.HasPrefix(string(history), want) {
		t.Errorf("history %q, %v, want %q first", history, err, want)
	}
}
