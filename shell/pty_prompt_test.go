//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTerminalPagerLeft quits a pager before the end of the text, which does not end
// fabsh, and checks that less would offer no shell, editor or files.
func TestTerminalPagerLeft(t *testing.T) {
	s := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 80, pager: "head -c 10 >/dev/null; echo left, LESSSECURE=$LESSSECURE"}, "-F", "sim:fattree:k=8,levels=3")
	s.expect("> ")
	s.send("x = 7\r")
	s.expect("> ")
	s.send("f = discover()\r")
	s.expect("208 nodes")
	for range 3 {
		s.send("f.ports\r")
		s.expect("left, LESSSECURE=1\r\n")
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
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2", "-t", "1h", "--retries", "0") // nothing is sent twice
	s.expect("> ")
	s.send("x = [smp_get('NodeInfo', 1) for _ in range(50)]\r")
	s.expect("> ")
	s.send("x = [smp_get('NodeInfo', 1), sleep('1h')]\r")
	s.expect("1 MAD sent, 1 answered (")
	s.send(ctrlC)
	s.expect("interrupted")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalEndAhead: Ctrl-D that was typed while a statement runs ends fabsh.
func TestTerminalEndAhead(t *testing.T) {
	home := t.TempDir()
	pipe := filepath.Join(home, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	lets, err := os.OpenFile(pipe, os.O_RDWR, 0) // waits for no reader
	if err != nil {
		t.Fatal(err)
	}
	defer lets.Close()
	// The statement runs until the test lets its pager go on.
	s := startTerminalOf(t, terminalOf{home: home, columns: 80, pager: "cat >/dev/null; echo waits; head -n 1 pipe"}, "-F", "sim:ring:n=2")
	s.expect("> ")
	s.send("help\r")
	s.expect("waits\r\n")
	s.send(ctrlD)
	if _, err := lets.WriteString("goes on\n"); err != nil {
		t.Fatal(err)
	}
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

// TestTerminalBlock: a block is typed, comes back whole, and is edited as one:
// what is on the screen after each key.
func TestTerminalBlock(t *testing.T) {
	for _, columns := range []int{80, 200} {
		s := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: uint16(columns), pager: "cat"}, "-q", "-F", "sim")
		v := &vt{columns: columns}
		long := strings.Repeat("n + ", 30) + "0"
		for _, step := range []struct{ keys, want string }{
			{"def f(n):", "sim rw> def f(n):▮\n"},
			{"\r", "sim rw> def f(n):\n...     ▮\n"},
			{"x = n\r", "sim rw> def f(n):\n...     x = n\n...     ▮\n"},
			{"\r", "sim rw> def f(n):\n...     x = n\n...\n...     ▮\n"}, // a blank line inside
			{"if x:\r", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         ▮\n"},
			{"x += 1\r", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x += 1\n...         ▮\n"},
			{"\x7f", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x += 1\n...     ▮\n"}, // one level back
			{"return x", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x += 1\n...     return x▮\n"},
			{"\r", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x += 1\n...     return x\n... ▮\n"},
			{"\r", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x += 1\n...     return x\n...\nsim rw> ▮\n"},
			{"f(41)\r", "sim rw> f(41)\n42\nsim rw> ▮\n"},
			{"f(41)\r", "sim rw> f(41)\n42\nsim rw> ▮\n"},
			{up, "sim rw> f(41)▮\n"}, // once in the history
			{up, "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x += 1\n...     return x▮\n"},
			{up, "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n...         x +=▮ 1\n...     return x\n"},
			{"\x01", "sim rw> def f(n):\n...     x = n\n...\n...     if x:\n... ▮        x += 1\n...     return x\n"},
			{"\x1b[D", "sim rw> def f(n):\n...     x = n\n...\n...     if x:▮\n...         x += 1\n...     return x\n"},
			{" # so", "sim rw> def f(n):\n...     x = n\n...\n...     if x: # so▮\n...         x += 1\n...     return x\n"},
			{"\x1b[C\x0b", "sim rw> def f(n):\n...     x = n\n...\n...     if x: # so\n... ▮\n...     return x\n"},
			{"        x += 2", "sim rw> def f(n):\n...     x = n\n...\n...     if x: # so\n...         x += 2▮\n...     return x\n"},
			{"\x1b[B\x05", "sim rw> def f(n):\n...     x = n\n...\n...     if x: # so\n...         x += 2\n...     return x▮\n"},
			{"\r\r", "sim rw> def f(n):\n...     x = n\n...\n...     if x: # so\n...         x += 2\n...     return x\n...\nsim rw> ▮\n"},
			{"f(40)\r", "sim rw> f(40)\n42\nsim rw> ▮\n"},
			{up + up + "\r", "sim rw> def f(n):\n...     x = n\n...\n...     if x: # so\n...         x += 2\n...     return x\nsim rw> ▮\n"}, // runs as it is
			// Who indents by hand gets just that.
			{"def h(n):\r", "sim rw> def h(n):\n...     ▮\n"},
			{"  if n:\r", "sim rw> def h(n):\n...   if n:\n...       ▮\n"},
			{"\t", "sim rw> def h(n):\n...   if n:\n...       ▮\n"},
			{"return 1\r", "sim rw> def h(n):\n...   if n:\n...       return 1\n...   ▮\n"},
			{"  return 0\r", "sim rw> def h(n):\n...   if n:\n...       return 1\n...   return 0\n... ▮\n"},
			{"\r", "sim rw> def h(n):\n...   if n:\n...       return 1\n...   return 0\n...\nsim rw> ▮\n"},
			// Lines that are longer than the screen.
			{"def g(n):\r", "sim rw> def g(n):\n...     ▮\n"},
			{"return " + long, wrap(columns, "sim rw> def g(n):", "...     return "+long+"▮")},
			{"\x1b[A" + "\x05", wrap(columns, "sim rw> def g(n):▮", "...     return "+long)},
			{"\x1b[B" + "\x05" + "\r\r", wrap(columns, "sim rw> def g(n):", "...     return "+long, "...", "sim rw> ▮")},
			{"g(1)\r", "sim rw> g(1)\n30\nsim rw> ▮\n"},
		} {
			s.send(step.keys)
			if !s.becomes(v, step.want) {
				t.Fatalf("%d columns, after %q: the screen ends in\n%s\nwant\n%s", columns, step.keys, v.screen(), step.want)
			}
		}
		s.send(ctrlD)
		s.exit(0)
	}
}

// wrap breaks lines where a screen of so many columns does.
func wrap(columns int, lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		r := []rune(line)
		for len([]rune(strings.ReplaceAll(string(r), "▮", ""))) > columns {
			b.WriteString(strings.TrimRight(string(r[:columns]), " ") + "\n")
			r = r[columns:]
		}
		b.WriteString(string(r) + "\n")
	}
	return b.String()
}

// becomes waits until the screen ends in want.
func (s *screen) becomes(v *vt, want string) bool {
	limit := time.After(time.Minute)
	for {
		v.write(s.text)
		s.text = ""
		if got := v.screen(); got == want || strings.HasSuffix(got, "\n"+want) {
			return true
		}
		select {
		case c, ok := <-s.chunks:
			if !ok {
				return false
			}
			s.text += c
		case <-limit:
			return false
		}
	}
}
