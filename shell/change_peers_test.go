//go:build linux

package shell

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fabsh/fabric"
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

// TestLinksBesideOpenSM: a plan of links is applied beside OpenSM, which handles a disabled
// port like a pulled cable. fabsh waits for its tables, verifies them, and brings the link up
// again; also after kill -9 of the process that applies it, and of its guard. What would cut
// off a host is refused, and so is everything without the option.
func TestLinksBesideOpenSM(t *testing.T) {
	t.Parallel()
	s, sm := linksBesideOpenSM(t)
	file, host := filepath.Join(s.dir, "link.plan"), filepath.Join(s.dir, "host.plan")
	s.says("--plan", file, "-c", `discover(); port_disable("leaf-1/3", force=True)`)(`planned: leaf-1/3: link_up -> disabled
ok: 1 Set on 1 node; no forwarding table changes
effect: the tables route 12 pairs over links that go down: their packets are lost until the subnet manager writes new tables
prediction: 12 pairs rerouted, 0 lost; largest load 6 before and 12 after; no credit loop; by minhop, which could have made the tables in force
[exit status 0]
`)
	s.says("-q", "--plan", host, "-c", `discover(); port_disable("leaf-1/2", force=True)`)("")
	s.says("--write", "change", "apply", file)(fmt.Sprintf("change apply: %s is active; nothing was sent: the change is one of links only, which it handles like that of a cable; --override-sm applies it link by link, and checks its new tables\n[exit status 2]\n", sm))
	s.says("-q", "--write", "--override-sm", "change", "apply", host)(`refused: "leaf-1" (0x0002c90300100000) and "node-0002 HCA-1" (0x0002c90310000010) would lose the last path between them
[exit status 1]
`)
	s.link("link_up active")

	cmd := s.apply(file, func(line string) bool { return strings.HasPrefix(line, "applied;") })
	s.link("disabled down")
	if got := outcome(s.beside("verify")); !strings.HasPrefix(got, "verdict      ok\n") || !strings.Contains(got, "unreachable  0\n") {
		t.Error(got)
	}
	s.says("--write", "change", "confirm")("ok: the change is confirmed\n[exit status 0]\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	s.says("-q", "--write", "change", "revert")("reverted: the fabric is as before the change\n[exit status 0]\n")
	s.link("link_up active")

	cmd = s.apply(file, func(line string) bool { return strings.HasPrefix(line, "prediction: ") })
	guard := 0
	ibsimtest.Poll(t, "the guard process, and the Set", func() bool {
		guard = guardOf(cmd.Process.Pid)
		return guard > 0 && s.states() == "disabled down"
	})
	for _, pid := range []int{guard, cmd.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	cmd.Wait()
	ibsimtest.Poll(t, "the end of the guard process", func() bool { return !runs(guard) })
	s.says("-q", "--write", "change", "revert")("reverted: the fabric is as before the change\n[exit status 0]\n")
	s.link("link_up active")
}

// TestLinksBesideStoppedOpenSM: OpenSM stops after the link was disabled. The link is
// restored, and becomes active when OpenSM continues.
func TestLinksBesideStoppedOpenSM(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("half a minute: in make soak")
	}
	t.Parallel()
	s, _ := linksBesideOpenSM(t)
	file := filepath.Join(s.dir, "link.plan")
	s.says("-q", "--plan", file, "-c", `discover(); port_disable("leaf-1/3", force=True)`)("")
	cmd := s.apply(file, func(line string) bool { return strings.HasPrefix(line, "prediction: ") })
	ibsimtest.Poll(t, "the Set", func() bool { return s.states() == "disabled down" })
	syscall.Kill(s.opensm, syscall.SIGSTOP)
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 3 {
		t.Error(cmd.ProcessState)
	}
	s.link("link_up initialize")
	syscall.Kill(s.opensm, syscall.SIGCONT)
	ibsimtest.Poll(t, "OpenSM making the link active", func() bool { return s.states() == "link_up active" })
}

// besideOpenSM is a served subnet with an OpenSM.
type besideOpenSM struct {
	*served
	opensm int // its process
}

// linksBesideOpenSM starts OpenSM on a served subnet; sm is how fabsh names it.
func linksBesideOpenSM(t *testing.T) (s *besideOpenSM, sm string) {
	t.Helper()
	s = &besideOpenSM{served: serveSpec(t, "fattree:k=4", true)}
	started := ibsimtest.On(t, s.name, nil, nil).StartSM(t, ibsimtest.FixtureOptions{SM: "node-0001 HCA-1", SMArgs: []string{"-s", "1"}})
	started.Wait(t, "SUBNET UP")
	s.opensm = started.PID()
	return s, "a subnet manager with GUID 0x0002c90310000001 at LID 1, priority 0, state master"
}

// beside makes ready fabsh at another node than OpenSM's.
func (s *besideOpenSM) beside(args ...string) *exec.Cmd {
	return s.fabsh(append([]string{"-C", "node-0005 HCA-1"}, args...)...)
}

// says runs fabsh, and compares what it prints; "": it is not compared.
func (s *besideOpenSM) says(args ...string) func(want string) {
	got := outcome(s.beside(args...))
	return func(want string) {
		s.t.Helper()
		if want != "" && got != want {
			s.t.Errorf("%q: got\n%s\nwant\n%s", args, got, want)
		}
	}
}

// apply starts to apply a plan, and returns when it has printed a line.
func (s *besideOpenSM) apply(file string, until func(line string) bool) *exec.Cmd {
	s.t.Helper()
	cmd := s.beside("--write", "--override-sm", "change", "apply", file, "--confirm-within", "10m")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill() })
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if said = append(said, lines.Text()); until(lines.Text()) {
			return cmd
		}
	}
	cmd.Wait()
	s.t.Fatalf("it printed %q", said)
	return nil
}

// states are the states of the link.
func (s *besideOpenSM) states() string {
	leaf := slices.IndexFunc(s.f.Nodes(), func(n fabric.Node) bool { return n.Name() == "leaf-1" })
	info := s.subnet.View(leaf).Ports[3].Info
	return fmt.Sprintf("%v %v", info.PortPhysicalState, info.PortState)
}

// link compares the states of the link.
func (s *besideOpenSM) link(want string) {
	s.t.Helper()
	if got := s.states(); got != want {
		s.t.Errorf("the link is %s, want %s", got, want)
	}
}
