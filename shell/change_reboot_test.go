//go:build linux

package shell

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/mad"
)

// TestChangeReboot: a switch that is restarted while a change waits to be confirmed has
// neither LIDs nor tables. What it has is neither old nor new, so nothing is written any
// more; which switch that is, and how far the change is, is told, until it is abandoned.
func TestChangeReboot(t *testing.T) {
	t.Parallel()
	s := serveSpec(t, "ring:n=6,hosts=1", true)
	file, levels := filepath.Join(s.dir, "new.plan"), filepath.Join(s.dir, "paths.sl")
	want := func(text, status string, args ...string) {
		t.Helper()
		got := outcome(s.fabsh(args...))
		for strings.Contains(got, "another process works on it") { // the guard tries to take it back, too
			got = outcome(s.fabsh(args...))
		}
		if !strings.Contains(got, text) || !strings.HasSuffix(got, "[exit status "+status+"]\n") {
			t.Errorf("%v: no %q in\n%s", args, text, got)
		}
	}
	want("", "0", "--write", "../examples/bring_up.star")
	want("", "0", "--write", "-c", `for s in discover().switches: smp_set("PortInfo", [p for p in s.ports if p.peer], hoq_life=5)`) // so that no drain takes long
	want("ok: ", "0", "change", "plan", "--routes", "lash", "--out", file, "--sl-out", levels)
	cmd := s.fabsh("--write", "change", "apply", file, "--sl", levels, "--confirm-within", "10m")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const foreign = `"switch-4" (0x0002c90300100030) LinearForwardingTable block 0: all LIDs are dropped, as after a restart of the switch`
	last := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); last = lines.Text() {
		if strings.HasPrefix(lines.Text(), "applied;") {
			if err := s.subnet.Cables.Reboot(s.f.OfType(mad.NodeTypeSwitch)[3].GUID()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(last, foreign+"; the change is neither applied nor reverted: see fabsh change status") {
		t.Errorf("exit status %d: %s", cmd.ProcessState.ExitCode(), last)
	}
	want(foreign, "3", "--write", "change", "revert")
	want("the change is not complete", "2", "change", "confirm")
	want("in the fabric: 0 old, 5 new, 0 between, 1 foreign\n", "1", "change", "status")
	want("left: "+foreign, "0", "change", "revert", "--abandon")
	want("abandoned ", "0", "change", "status")
	// Its links are up all the same, and the next plan tells of them.
	want("links that are up but not active, assumed to be active: 5 ports of switches, such as switch-3/3 (initialize)", "0",
		"-c", "plan(lambda: set_lft(discover().switches[0], {40: 1})).not_judged")
}
