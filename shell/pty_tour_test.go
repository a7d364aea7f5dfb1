//go:build linux

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminalTour types the tour through: at 80 columns, resized on the way, and left
// and taken up; then by other inputs that get the same.
func TestTerminalTour(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	start := func(columns uint16, args ...string) *screen {
		return startTerminalOf(t, terminalOf{home: home, columns: columns, pager: "cat"}, append([]string{"tour"}, args...)...)
	}
	// step types lines, and waits for what the tour says then.
	step := func(s *screen, says string, lines ...string) {
		t.Helper()
		for _, l := range lines {
			s.expect("> ")
			s.send(l + "\r")
			s.expect(l + "\r\n")
		}
		seen := s.expect(says)
		if strings.Contains(seen, "rror:") || strings.Contains(seen, "undefined") {
			t.Errorf("%q: %s", lines, seen)
		}
	}
	s := start(80)
	for line := range strings.SplitSeq(s.expect("1/8  Discover the fabric"), "\r\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	step(s, "Hint: call discover", "hint")
	step(s, "Type: f = discover()", "hint")
	step(s, "Step 1 of 8: hint helps", "discover", "1 + 1", "2 + 2", "3", "4")
	step(s, "Reads an attribute of subnet management", "help smp_get") // is no try
	step(s, "2/8  Read one node", "f = discover()")
	step(s, "another node; leaf-2 is needed", `smp_get("NodeInfo", 1)`)
	step(s, "3/8  Tables", `smp_get("NodeInfo", "leaf-2")`)
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 200}); err != nil {
		t.Fatal(err)
	}
	step(s, "4/8  Counters", `get_lft("leaf-2")[14]`)
	step(s, "fabsh tour continues here, at step 4 of 8.", "quit")
	s.exit(0)

	s = start(200)
	s.expect("The tour continues at step 4")
	s.expect("(Done for you: f = discover())")
	step(s, "3/8  Tables", "back")
	step(s, "4/8  Counters", "skip")
	step(s, "5/8  A fault found", `perf_rates("leaf-2/6")`)
	step(s, "That audit finds nothing here.", "audit links")
	step(s, "6/8  A policy verified", "audit counters")
	step(s, "they still route packets over the bad link", `t = f.graph().route("updn")`, "t.verify()")
	step(s, "Now verify them", `t = f.graph(exclude=[f.node("leaf-2").ports[6]]).route("updn")`)
	step(s, "7/8  A plan", "t.verify()")
	step(s, "The plan is proven.", "p = t.plan(get_routes())")
	step(s, "8/8  A report", "p.apply()")
	step(s, "This was the tour.", "report html --out fabric.html")
	if page, err := os.ReadFile(filepath.Join(home, "fabric.html")); err != nil || !strings.Contains(string(page), "leaf-2/6") {
		t.Errorf("the page: %v", err)
	}
	step(s, "42", "6 * 7") // the prompt stays
	s.send(ctrlD)
	s.exit(0)

	// What cannot be read does no harm.
	state := filepath.Join(home, ".local/state/fabsh/tour")
	if err := os.WriteFile(state, []byte("{\"schema\":\"fabsh.tour/1\",\"step\":99}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(80)
	s.expect("beginning.") // the word that is not wrapped: the state cannot be read
	step(s, "2/8", "x = [discover()]")
	step(s, "3/8", "n = smp_get('NodeInfo', f.switches)")
	step(s, "4/8", "get_routes().trace(17, 14)")
	step(s, "5/8", `c = perf_get("PortCounters", f.ports)`)
	step(s, "6/8", "audit")
	step(s, "7/8", `f.graph(exclude=[l for l in f.links if l.a.name == "leaf-2/6"]).route("ftree").verify().ok`)
	s.expect("> ")
	s.send(ctrlC)
	s.expect("Ctrl-D or exit ends fabsh")
	step(s, "8/8", "t.plan(get_routes()).apply()")
	step(s, "This was the tour.", "sminfo")
	s.send(ctrlD)
	s.exit(0)
}
