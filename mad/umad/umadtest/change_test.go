//go:build kernelibtest

package umadtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// testChange: OpenSM's engine file writes a change round by round, over the kernel's
// ib_umad: all pairs arrive between the rounds, its own dump equals the target in the
// end, and it takes the change back when it is told to.
func testChange(t *testing.T, s *subnet) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("three starts of OpenSM take a minute and a half: FABSH_SOAK")
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	run := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "fabsh", append([]string{"-C", "vib1", "-t", "5s", "--state", in("state")}, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	differs := func(name string) string {
		t.Helper()
		return must("-I", dir, "-I", s.sim.Dir, "-c", fmt.Sprintf("f = discover(); load_routes(%q, f).diff(get_routes(f)).entries", name))
	}
	must("route", "ftree", "--out", in("lfts.dump"))
	must("route", "updn", "--policy", "round_robin", "--out", in("target.dump"))
	s.stopSM()
	s.startSM("-s", "0", "-D", "0x43", "-R", "file,no_fallback", "-U", in("lfts.dump"))
	defer func() { // as the tests after it know it
		s.stopSM()
		s.startSM()
	}()
	t.Log(must("change", "plan", "--routes", in("target.dump"), "--out", in("new.plan")))
	cmd := run("--write", "change", "apply", in("new.plan"), "--stage", in("lfts.dump"), "--reload", strconv.Itoa(s.sm.Process.Pid), "--confirm-within", "10m")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	walks, made := 0, false
	var said []string
	for lines := bufio.NewScanner(stderr); !made && lines.Scan(); {
		said = append(said, lines.Text())
		if strings.HasPrefix(lines.Text(), "round ") {
			walks++
			if got := must("verify"); !strings.Contains(got, "unreachable  0\n") {
				t.Errorf("after %q: %s", lines.Text(), got)
			}
		}
		made = strings.HasPrefix(lines.Text(), "made;")
	}
	if !made || walks == 0 {
		t.Fatalf("it said %q, and ends with %v", said, cmd.Wait())
	}
	for _, name := range []string{in("target.dump"), filepath.Join(s.sim.Dir, "opensm-lfts.dump")} {
		if got := differs(name); got != "0\n" {
			t.Errorf("the switches differ from %s in %s", name, got)
		}
	}
	must("--write", "change", "confirm")
	if err := cmd.Wait(); err != nil {
		t.Errorf("apply: %v", err)
	}
	must("--write", "change", "revert")
	if got := differs(in("lfts.dump")); got != "0\n" {
		t.Errorf("taken back, the switches differ from the file in %s", got)
	}
}
