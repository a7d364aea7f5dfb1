//go:build kernelibtest

package umadtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		{"tools of a newer release", testNewer},
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

// testNewer runs tools of a release that libumad2sim does not serve, beside the ones
// that the other tests run: they read the same.
func testNewer(t *testing.T, s *subnet) {
	if _, err := os.Stat(Newer); err != nil {
		t.Skip("FABSH_RDMA_CORE names no source of rdma-core")
	}
	version, _ := exec.CommandContext(t.Context(), Newer+"smpquery", "-V").CombinedOutput()
	t.Log(strings.TrimSpace(string(version)))
	lid := strings.TrimSpace(fabsh(t.Context(), `discover().switches[0].lid`))
	// Times, and fields that older releases do not print.
	varies := regexp.MustCompile(`(?m)^# Topology file: generated on .*|activity count \d+|^\s*LinkSpeedExt(Active|Supported|Enabled)2:.*\n?`)
	for _, line := range []string{
		"ibnetdiscover", "iblinkinfo -l", "ibqueryerrors", "sminfo", "ibtracert 1 " + lid,
		"ibroute -n " + lid, // names are asked for with a limit of 100 ms each
		"smpquery nodeinfo " + lid, "smpquery portinfo " + lid + " 1", "smpquery switchinfo " + lid,
		"perfquery " + lid + " 1", "perfquery -x " + lid + " 1",
		"saquery NR", "saquery PIR", "saquery PR",
	} {
		words := strings.Fields(line)
		read := func(run func(t *testing.T, name string, args ...string) string) string {
			args := append([]string{"-t", "5000"}, words[1:]...) // milliseconds: processors are emulated
			return strings.TrimSpace(varies.ReplaceAllString(run(t, words[0], args...), ""))
		}
		want, got := read(diag), read(newer)
		if len(want) < 40 {
			t.Errorf("%s prints %q", line, want)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-older +newer)\n%s", line, diff)
		}
	}
}

// newer runs a tool of the newer release on our adapter.
func newer(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), Newer+name, append([]string{"-C", "vib1", "-P", "1"}, args...)...)
	return ibsimtest.Output(t, c)
}
