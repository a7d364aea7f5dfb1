//go:build linux

package shell

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestChangeStaged: OpenSM's engine file writes a change round by round: all pairs arrive
// between the rounds, its own dump equals the target in the end, and it takes the change
// back when it is told to. Beside OpenSM with another engine nothing is sent.
func TestChangeStaged(t *testing.T) {
	t.Parallel()
	net := ibsimtest.FatTree(4, 2, 4)
	dir := t.TempDir()
	dump, target, file, state := filepath.Join(dir, "lfts.dump"), filepath.Join(dir, "target.dump"), filepath.Join(dir, "new.plan"), filepath.Join(dir, "state")
	must := func(f *ibsimtest.Fixture, args ...string) string {
		t.Helper()
		got := outcome(on(t, f, args...))
		if !strings.HasSuffix(got, "[exit status 0]\n") {
			t.Fatalf("%v: %s", args, got)
		}
		return got
	}
	minhop := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0"}})
	must(minhop, "route", "ftree", "--out", dump)
	must(minhop, "route", "updn", "--policy", "round_robin", "--out", target)
	must(minhop, "change", "plan", "--routes", target, "--out", file)
	for _, how := range [][]string{nil, {"--stage", dump, "--reload", strconv.Itoa(minhop.SMPID())}} {
		got := outcome(on(t, minhop, append([]string{"--state", state, "--write", "change", "apply", file}, how...)...))
		if !strings.Contains(got, "-R file,no_fallback -U FILE") || !strings.HasSuffix(got, "[exit status 2]\n") {
			t.Errorf("beside minhop, %v: %s", how, got)
		}
	}

	f := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "0", "-D", "0x43", "-R", "file,no_fallback", "-U", dump}})
	before, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	lanes := filepath.Join(dir, "lanes.plan")
	must(f, "--plan", lanes, "-c", "set_sl2vl(discover().switches[0], {(1, 2): [0] * 16})")
	if got := outcome(on(t, f, "--state", state, "--write", "change", "apply", lanes, "--stage", dump, "--reload", strconv.Itoa(f.SMPID()))); !strings.Contains(got, "contains only forwarding tables, but the plan changes ") || !strings.HasSuffix(got, "[exit status 2]\n") {
		t.Errorf("lanes that OpenSM's file has not: %s", got)
	}
	must(f, "change", "plan", "--routes", target, "--out", file)
	cmd := on(t, f, "-C", "host-0-2", "--state", state, "--write", "change", "apply", file, "--stage", dump, "--reload", strconv.Itoa(f.SMPID()), "--confirm-within", "10m")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	walks, made := 0, false
	var said []string
	for !made && lines.Scan() {
		said = append(said, lines.Text())
		if strings.HasPrefix(lines.Text(), "round ") {
			if got := outcome(on(t, f, "-C", "host-0-1", "verify")); !strings.Contains(got, "unreachable  0\n") {
				t.Errorf("after %q: %s", lines.Text(), got)
			}
			walks++
		}
		made = strings.HasPrefix(lines.Text(), "applied;")
	}
	if !made || walks == 0 {
		cmd.Wait()
		t.Fatalf("it said %q", said)
	}
	differs := func(name string) string {
		return outcome(on(t, f, "-C", "host-0-1", "-I", dir, "-c", fmt.Sprintf("f = discover(); load_routes(%q, f).diff(get_routes(f)).entries", name)))
	}
	if got := differs(target); got != "0\n[exit status 0]\n" {
		t.Errorf("the switches differ from the target: %s", got)
	}
	copyOf := func(name, path string) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyOf("opensm.dump", filepath.Join(f.Dir, "opensm-lfts.dump"))
	if got := differs(filepath.Join(dir, "opensm.dump")); got != "0\n[exit status 0]\n" {
		t.Errorf("OpenSM's own dump differs from what the switches have: %s", got)
	}
	must(f, "-C", "host-0-2", "--state", state, "--write", "change", "confirm")
	if err := cmd.Wait(); err != nil {
		t.Errorf("apply: %v", err)
	}
	must(f, "-C", "host-0-2", "--state", state, "--write", "change", "revert")
	after, err := os.ReadFile(dump)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file is not as before: %v", err)
	}
	if got := differs(dump); got != "0\n[exit status 0]\n" {
		t.Errorf("taken back, the switches differ from the file: %s", got)
	}
}
