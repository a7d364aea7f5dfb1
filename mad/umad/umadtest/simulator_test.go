//go:build kernelibtest

package umadtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// A tree of 3 leaves with 2 hosts each, and 2 spines: osmtest takes its time.
const (
	simHosts    = 6
	simSwitches = 5
	simPorts    = simHosts + 3*(1+4) + 2*(1+3) // switches have a port 0
	simPaths    = (simHosts + simSwitches) * (simHosts + simSwitches)
)

// Our own simulator in place of ibsim: the tools do not have libumad2sim, so that
// they have whole MADs, and RMPP from the kernel.
func TestKernelSimulator(t *testing.T) {
	s := start(t, simulator(t, ibsimtest.FatTree(3, 2, 2)), "host-0-0", "host-2-1")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *subnet)
	}{
		{"osmtest", testOsmtest},
		{"all tables of saquery", testSATables},
		{"whole attributes", testWholeAttributes},
		{"records", testSimRecords},
		{"links", testLinks},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// simulator is fabsh sim with the net file, its links in INIT.
func simulator(t *testing.T, net string) *ibsimtest.Fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(path, []byte(net), 0o666); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("kernel-%d", os.Getpid())
	c := exec.CommandContext(t.Context(), "fabsh", "sim", path, "--listen", name, "--bare", "--console")
	console, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	f := ibsimtest.On(t, name, console, output.(*os.File))
	f.Console(t, "") // it answers once the sockets are there
	return f
}

// osmtest writes down all that the subnet administrator knows, and compares it with
// what that says afterwards, in many ways; then it tries services, multicast groups
// and subscriptions, with wrong requests among them.
func testOsmtest(t *testing.T, s *subnet) {
	dir := t.TempDir()
	inventory := filepath.Join(dir, "inventory")
	run := func(flow string) {
		log := filepath.Join(dir, "log-"+flow)
		c := ibsimtest.Command(t, "osmtest", "-g", portGUID(t, "vib1"), "-t", "2000", "-i", inventory, "-l", log, "-f", flow)
		c.Dir = dir
		began := time.Now()
		out, err := c.CombinedOutput()
		t.Logf("osmtest -f %s: %v", flow, time.Since(began).Round(10*time.Millisecond))
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), " PASS") {
			b, _ := os.ReadFile(log)
			t.Errorf("osmtest -f %s: %v\n%s\n%s", flow, err, out, tail(string(b)))
		}
	}
	run("c") // creates the inventory
	b, err := os.ReadFile(inventory)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		want int
	}{
		{"DEFINE_NODE", simHosts + simSwitches},
		{"DEFINE_PORT", simPorts},
		{"DEFINE_PATH", simPaths},
	} {
		is(t, c.what, strconv.Itoa(strings.Count(string(b), "\n"+c.what)), strconv.Itoa(c.want))
	}
	// Inventory, services, events, multicast, QoS. Flood has no end, and the trap flow
	// waits for a hand that makes some.
	for _, flow := range []string{"v", "s", "e", "m", "q"} {
		run(flow)
	}
}

// testWholeAttributes: libumad2sim hands over 224 bytes of 256, and of
// PortCountersExtended half.
func testWholeAttributes(t *testing.T, s *subnet) {
	lid := strings.TrimSpace(fabsh(t.Context(), `smp_get("PortInfo", dr("0,1"), 0).lid`))
	s.sim.Console(t, `PerformanceSet "leaf-2"[1] PortCounters.PortXmitWait=77`)
	s.sim.Console(t, `PerformanceSet "leaf-2"[1] PortCounters.SymbolErrorCounter=78`)
	out := diag(t, "perfquery", "-x", lid, "1")
	is(t, "PortXmitWait", field(t, out, "PortXmitWait"), "77")
	is(t, "SymbolErrorCounter", field(t, out, "SymbolErrorCounter"), "78")
}

func testSimRecords(t *testing.T, s *subnet) {
	for _, c := range []struct {
		code string
		want int
	}{
		{`sa_gettable("NodeRecord")`, simHosts + simSwitches},
		{`sa_gettable("PathRecord", force=True)`, simPaths},
	} {
		is(t, c.code, fabsh(t.Context(), "len("+c.code+")", "-t", "20s"), fmt.Sprintln(c.want))
	}
}
