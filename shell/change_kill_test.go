//go:build linux

package shell

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/plan"
	"fabsh/fabric/discover"
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
		if err := s.subnet.EditPort(p.Node().GUID(), p.Num(), func(info *mad.PortInfo) {
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

// fabsh is a fabsh on the subnet.
func (s *served) fabsh(args ...string) *exec.Cmd {
	cmd := fabsh(s.t, nil, slices.Concat([]string{"-F", "ibsim:" + s.name, "--state", s.dir, "-t", "200"}, args)...)
	return cmd
}

// TestBringUp: bring_up.star brings up a bare subnet, whose paths all arrive, and
// refuses beside a subnet manager.
func TestBringUp(t *testing.T) {
	s := serveSpec(t, "fattree:k=4", true)
	want := "14 LIDs, 6 switches with tables of updn, 32 ports active\n[exit status 0]\n"
	if got := outcome(s.fabsh("--write", "../examples/bring_up.star")); got != want {
		t.Error(got)
	}
	got := outcome(s.fabsh("verify"))
	for _, line := range []string{"verdict      ok\n", "unreachable  0\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	managed := serveSpec(t, "fattree:k=4", false)
	if got := outcome(managed.fabsh("--write", "../examples/bring_up.star")); !strings.Contains(got, "refused, for a subnet manager") || !strings.HasSuffix(got, "[exit status 2]\n") {
		t.Error(got)
	}
}

// TestChangeBesideSM: no change is made by Sets beside a subnet manager.
func TestChangeBesideSM(t *testing.T) {
	s := serveSpec(t, "fattree:k=4", false)
	old, file := s.tables(), filepath.Join(s.dir, "new.plan")
	outcome(s.fabsh("change", "plan", "--exact", "--routes", "updn", "--out", file))
	if got := outcome(s.fabsh("--write", "change", "apply", file)); !strings.Contains(got, "is at work, and nothing is sent") || !strings.HasSuffix(got, "[exit status 2]\n") || s.tables() != old {
		t.Error(got)
	}
}

// tables are those of all switches, in the order of f.
func (s *served) tables() (text string) {
	conn, err := s.subnet.Attach(s.f.OfType(mad.NodeTypeCA)[0].ID(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	e := engine.New(conn, engine.Options{})
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

// guardOf is the guard process whose journal is below dir; 0: there is none.
func guardOf(parent int) int {
	out, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
	for _, word := range strings.Fields(string(out)) {
		pid, _ := strconv.Atoi(word)
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(line, []byte("guard")) {
			return pid
		}
	}
	return 0
}

// TestChangeKilled kills the process that makes a change, its guard, or both, at any
// moment. The change is then taken back or confirmed, or can be resumed or taken back,
// to exactly what was before or after.
func TestChangeKilled(t *testing.T) {
	s := serveForChange(t, "fattree:k=4")
	old := s.tables()
	file := filepath.Join(s.dir, "new.plan")
	if got := outcome(s.fabsh("change", "plan", "--exact", "--routes", "updn", "--out", file)); !strings.HasSuffix(got, "[exit status 0]\n") {
		t.Fatal(got)
	}
	if got := outcome(s.fabsh("--write", "change", "apply", file, "--confirm-within", "300ms")); !strings.HasSuffix(got, "[exit status 1]\n") || s.tables() != old {
		t.Fatal(got)
	}
	made := s.made(file, old)
	kills := 6
	if os.Getenv("FABSH_SOAK") != "" {
		kills = 1000
	}
	r := rand.New(rand.NewPCG(1, 2))
	count := map[string]int{}
	for n := range kills {
		cmd := s.fabsh("--write", "change", "apply", file, "--confirm-within", "300ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // the moment is what is tried
		guard := guardOf(cmd.Process.Pid)
		both := r.IntN(3)
		if both != 1 {
			cmd.Process.Kill()
		}
		if both != 0 && guard != 0 {
			syscall.Kill(guard, syscall.SIGKILL)
		}
		cmd.Wait()
		for guard != 0 && syscall.Kill(guard, 0) == nil { // it takes the change back
			time.Sleep(20 * time.Millisecond)
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
			count["as before"]++
			s.end("revert") // a journal may be open yet
		}
		if n%50 == 49 {
			t.Log(n+1, "kills:", count)
		}
	}
	t.Log(count)
}

// end resumes the change or takes it back, when a guard that the test has not seen is not
// at it any more.
func (s *served) end(how string) string {
	for {
		got := outcome(s.fabsh("--write", "change", how))
		if !strings.Contains(got, "another process is at it") {
			return got
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// made are the tables after the plan in file.
func (s *served) made(file, old string) string {
	f, err := os.Open(file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.Load(f, file)
	if err != nil {
		s.t.Fatal(err)
	}
	text := old
	for _, c := range p.Changes() {
		if c.Modifier == 0 {
			text = strings.Replace(text, fmt.Sprintf("%v %x\n", c.Target.GUID, c.Set.Old), fmt.Sprintf("%v %x\n", c.Target.GUID, c.New), 1)
		}
	}
	if text == old {
		s.t.Fatal("the plan changes nothing")
	}
	return text
}
