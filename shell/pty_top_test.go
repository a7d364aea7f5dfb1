//go:build linux

package shell

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// controls are the sequences that the table is drawn with, but for that of a frame's
// beginning.
var controls = regexp.MustCompile(`\x1b\[[?0-9]*[A-Za-z]`)

// frame waits for a frame of the table that has text, and gives its lines.
func (s *screen) frame(text string) []string {
	s.t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); { // one every 2 s, and one for each key
		s.expect("\x1b[H")
		drawn := s.expect("\x1b[J")
		if lines := strings.Split(controls.ReplaceAllString(drawn, ""), "\r\n"); strings.Contains(strings.Join(lines, "\n"), text) {
			return lines
		}
	}
	s.t.Fatalf("no frame with %q", text)
	return nil
}

// TestTerminalTop types at the live table, at 80 and at 200 columns.
func TestTerminalTop(t *testing.T) {
	t.Parallel()
	s := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 80}, "-F", "sim:ring:n=6", "-t", "1h", "--retries", "0", "top", "--every", "2s")
	s.expect("\x1b[?1049h")
	s.frame("first read; rates follow in 2s")
	check := func(lines []string, width, rows int) {
		t.Helper()
		if len(lines) != rows {
			t.Errorf("%d lines on %d", len(lines), rows)
		}
		for _, line := range lines {
			if n := len([]rune(line)); n >= width {
				t.Errorf("%d columns of %d: %q", n, width, line)
			}
		}
	}
	lines := s.frame("by wait: 24 ports, 24 datagrams per round")
	check(lines, 80, 24)
	if !strings.HasPrefix(lines[1], "PORT ") || strings.Contains(lines[1], "RECV") || !strings.Contains(lines[23], "1-21 of 24") {
		t.Errorf("at 80 columns: %q", lines)
	}
	s.send("\x1b[6~")
	s.frame("4-24 of 24")
	s.send("d/n*2")
	s.frame("/n*2_  Enter applies it")
	s.send("\r")
	if lines = s.frame(`by data: 24 ports, 24 datagrams per round; 2 like "n*2"`); !strings.Contains(lines[23], "1-2 of 2") {
		t.Errorf("filtered: %q", lines)
	}
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 200}); err != nil {
		t.Fatal(err)
	}
	check(s.frame("RECV b/s"), 200, 10)
	s.send("\x15") // nothing: no filter is typed
	s.send("\x1btb")
	lines = s.frame("by ber: 24 ports, 24 datagrams per round; tier host")
	for strings.Contains(lines[2], "?") { // before the second round, on a slow machine
		lines = s.frame("tier host")
	}
	if !strings.Contains(lines[1], " BER ") || !strings.Contains(lines[9], "1-6 of 6") || !strings.Contains(lines[2], "<") {
		t.Errorf("the hosts by bit errors: %q", lines)
	}
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 80}); err != nil {
		t.Fatal(err)
	}
	lines = s.frame(" BER ") // what it is sorted by is never left out
	for strings.Contains(lines[1], "RECV") {
		lines = s.frame(" BER ")
	}
	check(lines, 80, 10)
	s.send("?")
	s.expect("sort by waiting, data, errors, bit error rate")
	s.send("x") // back, and no key
	s.expect("q quit")
	s.send("q")
	s.expect("\x1b[?1049l")
	s.exit(0)
	if after := s.mode(); after != s.before {
		t.Errorf("the terminal was %+v, and is %+v", s.before, after)
	}

	s = startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 80}, "-F", "sim:ring:n=2", "top")
	s.frame("first read")
	s.send(ctrlC)
	s.expect("\x1b[?1049l")
	s.exit(130)
}
