//go:build kernelibtest

package umadtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// running is a fabsh that tells how far it has come.
type running struct {
	*exec.Cmd
	t   *testing.T
	out *bufio.Scanner
}

func runFabsh(t *testing.T, code string) *running {
	t.Helper()
	c := exec.Command("fabsh", slices.Concat([]string{"-q", "-C", "vib1"}, slowly, []string{"-c", code})...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	return &running{c, t, bufio.NewScanner(out)}
}

// says compares its next line.
func (r *running) says(want string) {
	r.t.Helper()
	hung := time.AfterFunc(2*time.Minute, func() { r.Process.Kill() })
	defer hung.Stop()
	if !r.out.Scan() {
		r.t.Fatalf("it said nothing more, want %q", want)
	}
	if got := r.out.Text(); got != want {
		r.t.Fatalf("it said %q, want %q", got, want)
	}
}

// subscriptions are those that OpenSM has, by saquery: their traps.
func subscriptions(t *testing.T) (traps []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^\s*trap_num\.+(\d+)$`).FindAllStringSubmatch(diag(t, "saquery", "-I"), -1) {
		traps = append(traps, m[1])
	}
	slices.Sort(traps)
	return traps
}

// A trap 128, raised by a cable pulled off in ibsim, reaches a script as a
// Report from OpenSM, and so do the ports that come and go. Of a port the
// kernel gives them to one program. A new OpenSM has the subscriptions again,
// and the script gets the number of lost events; at the end it has none.
func testSubscribe(t *testing.T, s *subnet) {
	r := runFabsh(t, `
links = sa_subscribe(trap=128)
ports = sa_subscribe(trap=[64, 65])
print("subscribed")
leaf = sa_gettable("NodeRecord", node_string="leaf-3")[0]
host = [n for n in sa_gettable("NodeRecord", node_string="host-3-1 HCA-1")][0]
def both():
    n = links.next(timeout="60s")
    print(n.trap_number, n.type, n.producer_type, n.lid_addr == leaf.lid, n.issuer_gid == gid(leaf.port_guid, prefix="0xfe80000000000000"))
    n = ports.next(timeout="60s")
    print(n.trap_number, n.gid_addr == gid(host.port_guid, prefix="0xfe80000000000000"))
both()
both()
l = links.next(timeout="90s")
while type(l) != "lost":
    l = links.next(timeout="90s")
print(l.reason.split("; ")[1])
n = links.next(timeout="60s")
print(n.trap_number, n.lid_addr == leaf.lid)
links.close()
ports.close()
print(len(sa_gettable("InformInfoRecord")), stats().dropped)
`)
	r.says("subscribed")
	is(t, "saquery", fmt.Sprint(subscriptions(t)), "[128 64 65]")
	other := fabsh(t.Context(), "sa_subscribe(trap=128)")
	if !strings.Contains(other, "vib1/1: another program receives each Report of class SubnAdm at this port") || !strings.HasSuffix(other, "[exit status 3]\n") {
		t.Errorf("another program: %s", other)
	}
	s.sim.Console(t, `Unlink "leaf-3"[2]`)
	r.says("128 urgent switch True True")
	r.says("65 True")
	s.sim.Console(t, `Link "leaf-3"[2] "host-3-1"[1]`)
	r.says("128 urgent switch True True")
	r.says("64 True")
	s.stopSM()
	if err := os.Remove(s.log); err != nil {
		t.Fatal(err)
	}
	s.startSM()
	began := time.Now()
	r.says("subscribed again, but events in between were not reported")
	t.Logf("subscribed again after %v", time.Since(began).Round(100*time.Millisecond))
	s.sim.Console(t, `Unlink "leaf-3"[2]`)
	r.says("128 True")
	r.says("0 0")
	if err := r.Wait(); err != nil {
		t.Error(err)
	}
	s.sim.Console(t, `Link "leaf-3"[2] "host-3-1"[1]`)

	// Also when it is interrupted.
	r = runFabsh(t, "sub = sa_subscribe()\nprint('subscribed')\nsub.next()")
	r.says("subscribed")
	r.Process.Signal(os.Interrupt)
	began = time.Now()
	r.Wait()
	if took := time.Since(began); took > time.Minute || r.ProcessState.ExitCode() != 130 {
		t.Errorf("interrupted, it ended after %v with %v", took, r.ProcessState)
	}
	is(t, "subscriptions that are left", fmt.Sprint(subscriptions(t)), "[]")
}

// --trap-agent registers for traps, but not beside a subnet manager. (That its
// port says so is not seen here: to ibsim it does not.)
func testTrapAgent(t *testing.T, s *subnet) {
	const code = `sa_subscribe(source="traps").next(timeout="100ms")`
	is(t, "fabsh", fabsh(t.Context(), code, "--write", "--trap-agent"), "")
	beside := fabsh(t.Context(), code, "--write", "--trap-agent", "-C", "vib0")
	if !strings.Contains(beside, "sa_subscribe: traps to this port: vib0/1: another program receives each Trap of class Subn at this port (a subnet manager the traps, ") || !strings.HasSuffix(beside, "[exit status 3]\n") {
		t.Errorf("beside OpenSM: %s", beside)
	}
}
