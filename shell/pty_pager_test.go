//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestTerminalPager: less offers no shell, editor or files, and what was typed before it
// starts is for the prompt.
func TestTerminalPager(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(ibsimtest.Path(t, "less"))+":"+os.Getenv("PATH"))
	home := t.TempDir()
	s := startTerminalOf(t, terminalOf{home: home, columns: 80}, "-q", "-F", "sim:fattree:k=8,levels=3")
	s.expect("rw> ")
	s.send("f = discover()\r")
	s.expect("rw> ")
	// page types keys while a statement runs whose value is paged; the terminal echoes them.
	page := func(keys ...string) {
		t.Helper()
		s.send("print('runs'); x = [sleep('10ms') for _ in range(6000) if not fs.exists('typed')]; f.ports\r")
		s.expect("\nruns\r\n")
		for _, k := range keys {
			s.send(k)
			s.expect(strings.TrimSuffix(k, "\r"))
		}
		typed := filepath.Join(home, "typed")
		if err := os.WriteFile(typed, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.expect(":\x1b[K") // less waits for a command
		if err := os.Remove(typed); err != nil {
			t.Fatal(err)
		}
	}
	page("6*", "7\r") // for the prompt, in two parts
	for _, key := range []string{"!", "sowned\r", "v", "|"} {
		s.send(key)
		if seen := s.expect(" not available"); strings.Contains(seen, "42") {
			t.Errorf("less got what was typed before: %q", seen)
		}
		s.send("\r")
		s.expect(":\x1b[K")
	}
	s.send("q")
	s.expect("\n42\r\n")
	s.expect("> ")
	// Half a line is for the prompt too.
	page("8*")
	s.send("q")
	s.expect("> ")
	s.send("9\r")
	s.expect("\n72\r\n")
	s.expect("> ")
	// What fits on the screen, with the prompt, is not paged, unless requested.
	s.send("f.switches[:22]\r")
	s.expect("leaf-19")
	s.expect("rw> ")
	s.send("'not' + ' paged'\r")
	s.expect("\n\"not paged\"\r\n")
	s.expect("rw> ")
	s.send("show([1], pager=True)\r")
	s.expect("(END)")
	s.send("q")
	s.send("7*7\r")
	s.expect("\n49\r\n")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
	if entries, _ := os.ReadDir(home); len(entries) > 1 || len(entries) == 1 && !strings.HasPrefix(entries[0].Name(), ".") {
		t.Errorf("files: %v", entries)
	}
}
