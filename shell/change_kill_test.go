//go:build linux

package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// served is a simulated subnet without a subnet manager, at a socket's name.
type served struct {
	t      *testing.T
	name   string
	subnet *sim.Subnet
	f      *fabric.Fabric
	dir    string
}

func serveForChange(t *testing.T, spec string) *served {
	t.Helper()
	s := serveSpec(t, spec, false)
	// Tables and LIDs stay, and nobody is asked who made them.
	for i := range s.f.Ports() {
		p := &s.f.Ports()[i]
		if p.Num() > 0 == p.Node().IsSwitch() {
			continue
		}
		if err := s.subnet.Edit.Port(p.Node().GUID(), p.Num(), func(info *mad.PortInfo) {
			info.MasterSMLID = 0
			info.CapabilityMask &^= mad.CapabilityMaskIsSM
		}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// serveSpec serves a simulated subnet.
func serveSpec(t *testing.T, spec string, bare bool) *served {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Bare = bare
	s := &served{t: t, name: fmt.Sprintf("change-%d-%d", os.Getpid(), rand.Uint32()), subnet: sim.New(f, o), f: f, dir: t.TempDir()}
	srv, err := server.Listen(s.subnet, f, server.Options{Name: s.name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return s
}

// fabsh is a fabsh on the subnet. What is lost is soon sent again, and a busy machine has
// 10 s to answer.
func (s *served) fabsh(args ...string) *exec.Cmd {
	return fabsh(s.t, nil, slices.Concat([]string{"-F", "ibsim:" + s.name, "--state", s.dir, "-t", "1s", "--retries", "9"}, args)...)
}

// TestBringUp: bring_up.star brings up a bare subnet, whose paths all arrive, may be run
// again, and refuses beside a subnet manager.
func TestBringUp(t *testing.T) {
	s := serveSpec(t, "fattree:k=4", true)
	want := "14 LIDs, 6 switches with tables of updn, 32 ports active\n[exit status 0]\n"
	for range 2 { // as after a run that was broken off
		if got := outcome(s.fabsh("--write", "../examples/bring_up.star")); got != want {
			t.Error(got)
		}
	}
	got := outcome(s.fabsh("verify"))
	for _, line := range []string{"verdict      ok\n", "unreachable  0\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	managed := serveSpec(t, "fattree:k=4", false)
	if got := outcome(managed.fabsh("--write", "../examples/bring_up.star")); !strings.Contains(got, "refused: a subnet manager") || !strings.HasSuffix(got, "[exit status 2]\n") {
		t.Error(got)
	}
}

// TestChangeBesideSM: no change is made by Sets beside a subnet manager.
func TestChangeBesideSM(t *testing.T) {
	s := serveSpec(t, "fattree:k=4", false)
	old, file := s.tables(), filepath.Join(s.dir, "new.plan")
	outcome(s.fabsh("change", "plan", "--exact", "--routes", "updn", "--out", file))
	if got := outcome(s.fabsh("--write", "change", "apply", file)); !strings.Contains(got, "is active; nothing was sent") || !strings.HasSuffix(got, "[exit status 2]\n") || s.tables() != old {
		t.Error(got)
	}
}

// tables has the tables of all switches, in the order of f.
func (s *served) tables() (text string) {
	conn, err := s.subnet.Attach(s.f.OfType(mad.NodeTypeCA)[0].ID(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	e := engine.New(conn, engine.Options{Retries: 9})
	defer e.Close()
	f, err := discover.Sweep(context.Background(), e, discover.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; n.IsSwitch() {
			call := fabric.Dest{Route: n.Route()}.Put(new(engine.Call), mad.MethodGet, mad.AttrLinearForwardingTable, 0, nil)
			if err := e.Do(context.Background(), call); err != nil || call.Err != nil {
				s.t.Fatal(err, call.Err)
			}
			text += fmt.Sprintf("%v %x\n", n.GUID(), call.Data()[:64])
		}
	}
	return text
}

// guardOf is the guard process that a process has started; 0: there is none.
func guardOf(parent int) int {
	var out []byte // of all threads: any may have started it
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		more, _ := os.ReadFile(list)
		out = append(out, more...)
	}
	for _, word := range strings.Fields(string(out)) {
		pid, _ := strconv.Atoi(word)
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(line, []byte("guard")) {
			return pid
		}
	}
	return 0
}

// runs: the process is there, and more than an entry that nobody has waited for.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // after the name (proc_pid_stat(5))
	return err == nil && !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
}

// started reports whether a process runs that cmd, which has ended, has started: they have
// its environment, and with it a home that no other has.
func started(cmd *exec.Cmd) bool {
	home := cmd.Env[slices.IndexFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") })]
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	return slices.ContainsFunc(files, func(file string) bool {
		env, _ := os.ReadFile(file)
		return slices.Contains(strings.Split(string(env), "\x00"), home)
	})
}

// TestChangeKilled kills the process that makes a change, its guard, or both, at any
// moment. The change is then taken back or confirmed, or can be resumed or taken back,
// to exactly what was before or after. Of each second one a bit of the journal is flipped
// then. With FABSH_SOAK that is 1,040 times, on subnets
// side by side, of which one in four loses 5 % of all datagrams, and delays and doubles
// others: go test -parallel 16.
func TestChangeKilled(t *testing.T) {
	t.Parallel()
	subnets, kills := 1, 4
	if testing.Short() {
		kills = 1
	}
	if os.Getenv("FABSH_SOAK") != "" {
		subnets, kills = 16, 65
	}
	var mu sync.Mutex
	all := map[string]int{} // guarded by mu
	t.Run("", func(t *testing.T) {
		for n := range subnets {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				spec := "fattree:k=4"
				if n%4 == 3 {
					spec += fmt.Sprintf(",loss=5%%,dup=5%%,jitter=2ms,seed=%d", n)
				}
				count := serveForChange(t, spec).kill(kills, rand.New(rand.NewPCG(1, uint64(n))))
				mu.Lock()
				defer mu.Unlock()
				for what, n := range count {
					all[what] += n
				}
			})
		}
	})
	t.Log(subnets*kills, "kills:", all)
}

// kill makes a change so many times, kills, and counts how that ended.
func (s *served) kill(kills int, r *rand.Rand) map[string]int {
	t, old := s.t, s.tables()
	file := filepath.Join(s.dir, "new.plan")
	if got := outcome(s.fabsh("change", "plan", "--exact", "--routes", "updn", "--out", file)); !strings.HasSuffix(got, "[exit status 0]\n") {
		t.Fatal(got)
	}
	if got := outcome(s.fabsh("--write", "change", "apply", file, "--confirm-within", "300ms")); !strings.HasSuffix(got, "[exit status 1]\n") || s.tables() != old {
		t.Fatal(got)
	}
	made := s.made(file, old)
	count := map[string]int{}
	for n := range kills {
		before, _ := s.journal()
		cmd := s.fabsh("--write", "change", "apply", file, "--confirm-within", "300ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is what is tried: some time after the start, or when the journal
		// has so many lines: of the beginning, each round, its end, the confirmation.
		if lines := r.IntN(6); lines > 0 {
			s.reached(cmd, before, lines)
			time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond) // the kill comes at a random moment after the line
		} else {
			time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // or at any moment
		}
		guard := guardOf(cmd.Process.Pid)
		who := []string{"parent", "guard", "both", "parent, then guard"}[r.IntN(4)]
		if who != "guard" {
			cmd.Process.Kill()
		}
		if who == "parent, then guard" { // while it takes the change back
			s.reached(nil, before, 4+r.IntN(4))
		}
		if who != "parent" && guard != 0 {
			syscall.Kill(guard, syscall.SIGKILL)
		}
		cmd.Wait()
		for started(cmd) { // the guard takes the change back, also one that started just now
			time.Sleep(20 * time.Millisecond) // processes of others have no event to wait for
		}
		count["killed: "+who]++
		switch now := s.tables(); now {
		case old:
			count["then old"]++
		case made:
			count["then new"]++
		default:
			count["then between"]++
		}
		if r.IntN(2) == 0 {
			s.flip(r, old, made, file, count)
		}
		if now := s.tables(); n%2 == 0 && now != old {
			// Neither is left: go on to the end, or back.
			if got := s.end("resume"); s.tables() != old && s.tables() != made {
				t.Fatalf("kill %d, then resume: %s\n%s", n, got, s.tables())
			}
			count["resumed"]++
		}
		if s.tables() != old {
			if got := s.end("revert"); s.tables() != old {
				t.Fatalf("kill %d, then revert: %s\n%s", n, got, s.tables())
			}
			count["reverted"]++
		} else {
			s.end("revert") // a journal may be open yet
		}
	}
	return count
}

// flip flips a bit of the journal. What fabsh then reports must be true of the fabric; a
// journal in which it is found stays, until the change is reverted from the fabric.
func (s *served) flip(r *rand.Rand, old, made, file string, count map[string]int) {
	found, _ := filepath.Glob(filepath.Join(s.dir, "*", "change.journal"))
	if len(found) != 1 {
		return
	}
	text, err := os.ReadFile(found[0])
	if err != nil || len(text) == 0 {
		s.t.Fatal(err)
	}
	at := r.IntN(len(text))
	if r.IntN(2) == 0 { // the first line is by far the longest
		at = max(0, len(text)-1-r.IntN(min(len(text), 600)))
	}
	text[at] ^= 1 << r.IntN(8)
	if err := os.WriteFile(found[0], text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	count["flips"]++
	if got, want := s.end("status"), s.states(old, made); strings.Contains(got, "in the fabric: ") && !strings.Contains(got, "in the fabric: "+want) {
		s.t.Fatalf("flip at %d: the fabric has %s: %s", at, want, got)
	}
	got := s.end("revert")
	if strings.Contains(got, "the fabric is as before") && s.tables() != old {
		s.t.Fatalf("flip at %d: %s\n%s", at, got, s.tables())
	}
	if !strings.Contains(got, "journal "+found[0]+" line ") {
		return
	}
	count["flips found"]++
	if now, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(now, text) {
		s.t.Fatalf("flip at %d: the damaged journal was written: %s", at, got)
	}
	got = s.end("revert", "--from-fabric")
	if strings.Contains(got, "name the plan that was applied") {
		got = s.end("revert", "--from-fabric", file)
		count["reverted by the plan"]++
	}
	if !strings.HasSuffix(got, "reverted: the fabric is as before the change\n[exit status 0]\n") || s.tables() != old {
		s.t.Fatalf("flip at %d: %s\n%s", at, got, s.tables())
	}
}

// states are what the blocks of a change are in the fabric, as change status has it.
func (s *served) states(old, made string) string {
	was, is := strings.Split(made, "\n"), strings.Split(s.tables(), "\n")
	var olds, news, between int
	for i, before := range strings.Split(old, "\n") {
		switch {
		case was[i] == before: // not of the change
		case is[i] == before:
			olds++
		case is[i] == was[i]:
			news++
		default:
			between++
		}
	}
	return fmt.Sprintf("%d old, %d new, %d between, 0 foreign\n", olds, news, between)
}

// reached waits until the journal of another change than before has so many lines, or
// nobody is left who would write them.
func (s *served) reached(cmd *exec.Cmd, before string, lines int) {
	for range 500 {
		begin, n := s.journal()
		if begin != before && n >= lines || cmd != nil && !runs(cmd.Process.Pid) {
			return
		}
		time.Sleep(time.Millisecond) // the file of another process is polled
	}
}

// journal is the first line of the journal, and how many lines it has.
func (s *served) journal() (begin string, lines int) {
	found, _ := filepath.Glob(filepath.Join(s.dir, "*", "change.journal"))
	for _, path := range found {
		text, _ := os.ReadFile(path)
		begin, _, _ = strings.Cut(string(text), "\n")
		lines = strings.Count(string(text), "\n")
	}
	return begin, lines
}

// end resumes the change or takes it back, when a guard that the test has not seen is not
// at it any more, nor too many datagrams are lost.
func (s *served) end(how ...string) string {
	for unanswered := 0; ; {
		got := outcome(s.fabsh(append([]string{"--write", "change"}, how...)...))
		if strings.HasSuffix(got, "[exit status 3]\n") && strings.Contains(got, "timed out") && unanswered < 20 {
			unanswered++
			continue
		}
		if !strings.Contains(got, "another process works on it") {
			return got
		}
		time.Sleep(50 * time.Millisecond) // the lock of another process is polled
	}
}

// made are the tables after the plan in file.
func (s *served) made(file, old string) string {
	f, err := os.Open(file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	p, err := change.LoadPlan(f, file)
	if err != nil {
		s.t.Fatal(err)
	}
	text := old
	for _, c := range p.Changes() {
		if c.Modifier == 0 {
			text = strings.Replace(text, fmt.Sprintf("%v %x\n", c.Node, c.Old), fmt.Sprintf("%v %x\n", c.Node, c.New), 1)
		}
	}
	if text == old {
		s.t.Fatal("the plan changes nothing")
	}
	return text
}

// guardEnds waits until the guard process of the change in dir has ended.
func (s *served) guardEnds(dir string) {
	s.t.Helper()
	for range 30000 {
		lock, err := format.AcquireLock(filepath.Join(dir, "change.guard"))
		if err == nil {
			lock.Release()
			return
		}
		time.Sleep(2 * time.Millisecond) // the lock of another process is polled
	}
	s.t.Fatal("the guard process does not end")
}

// TestChangeDamaged: with a damaged journal each command and each session names the file
// and the line, nothing is written, and what is reported of the fabric was just read.
func TestChangeDamaged(t *testing.T) {
	t.Parallel()
	s := serveForChange(t, "fattree:k=4")
	file, old := filepath.Join(s.dir, "new.plan"), s.tables()
	want := func(status string, texts []string, args ...string) {
		t.Helper()
		got := outcome(s.fabsh(args...))
		for _, text := range texts {
			if !strings.Contains(got, text) || !strings.HasSuffix(got, "[exit status "+status+"]\n") {
				t.Errorf("%v: no %q in\n%s", args, text, got)
			}
		}
	}
	want("0", nil, "change", "plan", "--exact", "--routes", "updn", "--out", file)
	made := s.made(file, old)
	for _, line := range []int{2, 1} {
		cmd := s.fabsh("--write", "change", "apply", file, "--confirm-within", "10m")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "applied;") {
				want("0", []string{"ok: the change is confirmed\n"}, "change", "confirm")
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(s.dir, "*", "change.journal"))
		path := found[0]
		s.guardEnds(filepath.Dir(path)) // it could read the file while it is written below, and revert the change for that damage
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		if line == 2 {
			at = bytes.IndexByte(text, '\n') + 1
		}
		text[at+40] ^= 4
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		damage := "journal " + path + " line " + string('0'+rune(line)) + ": checksum does not match; the file is unchanged"
		want("3", []string{damage, "and copied to " + path + ".damaged-"}, "--write", "change", "revert")
		want("3", []string{damage}, "--write", "change", "resume")
		want("3", []string{damage}, "change", "confirm")
		want("3", []string{damage}, "--write", "change", "apply", file)
		want("0", []string{"warning: ", damage}, "-c", "1")
		revert := []string{"--write", "change", "revert", "--from-fabric"}
		if line == 2 {
			want("3", []string{damage, "in the fabric: " + s.states(old, made)}, "change", "status")
		} else {
			want("3", []string{damage}, "change", "status")
			want("2", []string{"name the plan that was applied"}, revert...)
			revert = append(revert, file)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) || s.tables() != made {
			t.Errorf("line %d: the journal or the fabric was written (%v)", line, err)
		}
		want("0", []string{"reverted: the fabric is as before the change\n"}, revert...)
		if s.tables() != old {
			t.Errorf("line %d: not reverted", line)
		}
		want("0", []string{"in the fabric: " + s.states(old, made)}, "change", "status")
	}
	// A journal that cannot be read does not mean that there is no change.
	found, _ := filepath.Glob(filepath.Join(s.dir, "*", "change.journal"))
	if err := errors.Join(os.Remove(found[0]), os.Symlink(file, found[0])); err != nil {
		t.Fatal(err)
	}
	const unreadable = "a change may be open; its journal cannot be read: open "
	want("2", []string{"change status: " + unreadable + found[0]}, "change", "status")
	want("2", []string{"change revert: " + unreadable + found[0]}, "--write", "change", "revert")
	want("2", []string{"warning: " + unreadable + found[0]}, "--write", "change", "apply", file)
}

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
	// Its links are up nevertheless, and the next plan reports them.
	want("links that are up but not active, assumed to be active: 5 ports of switches, such as switch-3/3 (initialize)", "0",
		"-c", "plan(lambda: set_lft(discover().switches[0], {40: 1})).not_judged")
}
