//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTerminalPagerLeft: a pager that is left before the end of the text is no
// reason to end fabsh.
func TestTerminalPagerLeft(t *testing.T) {
	s := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 80, pager: "head -c 10 >/dev/null; echo left"}, "-F", "sim:fattree:k=8,levels=3")
	s.expect("> ")
	s.send("x = 7\r")
	s.expect("> ")
	s.send("f = discover()\r")
	s.expect("208 nodes")
	for range 3 {
		s.send("f.ports\r")
		s.expect("left\r\n")
		s.expect("> ")
	}
	s.send("x * 6\r")
	s.expect("\n42\r\n")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalTerminated: SIGTERM has the status that it has elsewhere.
func TestTerminalTerminated(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2")
	s.expect("> ")
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.exit(143)
}

// TestTerminalStartup: values of the statements of rc.star are not shown.
func TestTerminalStartup(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, ".config/fabsh")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	rc := "\"\"\"Mine.\"\"\"\nsmp_get('NodeInfo', 1)\n'shown'\n"
	if err := os.WriteFile(filepath.Join(config, "rc.star"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startTerminal(t, home, "-F", "sim:ring:n=2")
	if seen := s.expect("> "); strings.Contains(seen, "Mine") || strings.Contains(seen, "shown") || strings.Contains(seen, "node_guid") {
		t.Errorf("the screen shows %q", seen)
	}
	s.send("'one'\r")
	s.expect("\n\"one\"\r\n")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalProgress: the progress line counts the MADs of this statement.
func TestTerminalProgress(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2")
	s.expect("> ")
	s.send("x = [smp_get('NodeInfo', 1) for _ in range(50)]\r")
	s.expect("> ")
	s.send("x = [smp_get('NodeInfo', 1), sleep(2)]\r")
	s.expect("1 MAD sent, 1 answered (")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalEndAhead: Ctrl-D that was typed while a statement runs ends fabsh.
func TestTerminalEndAhead(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2")
	s.expect("> ")
	s.send("sleep(1)\r")
	s.expect("Ctrl-C stops")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalQuit: q ends the session as quit does, unless it is a name of the
// user's.
func TestTerminalQuit(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2")
	s.expect("> ")
	s.send("q = 3\r")
	s.expect("> ")
	s.send("q\r")
	s.expect("\n3\r\n")
	s.send(ctrlD)
	s.exit(0)
	s = startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2")
	s.expect("> ")
	s.send("q\r")
	s.exit(0)
}
