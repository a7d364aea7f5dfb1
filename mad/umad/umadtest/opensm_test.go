//go:build kernelibtest

package umadtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// These tests run in a virtual machine with two virtual InfiniBand adapters:
// OpenSM is on the one, fabsh and infiniband-diags are on the other, all as they
// are and over the kernel's ib_umad; between them is ibsim: make kernel-ib-test.

func TestKernelOpenSM(t *testing.T) {
	s := start(t, ibsimtest.Start(t, ibsimtest.FatTree(9, 9, 9), ibsimtest.FixtureOptions{}), "host-0-0", "host-8-8")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *subnet)
	}{
		{"discovery", testDiscovery},
		{"smp_get", testSMPGet},
		{"smp_set", testSMPSet},
		{"sa_gettable", testSAGetTable},
		{"all tables of saquery", testSATables},
		{"via sa", testViaSA},
		{"records", testRecords},
		{"paths", testPaths},
		{"perf_get", testPerfGet},
		{"set_lft", testSetLFT},
		{"whole tables", testWholeTables},
		{"reports", testReports},
		{"audits", testAudits},
		{"accept", testAccept},
		{"audit host", testAuditHost},
		{"at once", testAtOnce},
		{"change", testChange},
		{"keys", testKeys}, // OpenSM's log has an error then
		{"subscribe", testSubscribe},
		{"trap agent", testTrapAgent},
		{"speed", testSpeed},
		{"port choice", testPortChoice},
		{"links", testLinks},     // ibsim does not train a link again
		{"removal", testRemoval}, // the last: of vib1 nothing is left
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// is compares the whole of an output.
func is(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", what, got, want)
	}
}

func testDiscovery(t *testing.T, s *subnet) {
	out := "\n" + diag(t, "ibnetdiscover")
	got := fmt.Sprintf("%d switches, %d CAs", strings.Count(out, "\nSwitch\t"), strings.Count(out, "\nCa\t"))
	is(t, "ibnetdiscover", got, fmt.Sprintf("%d switches, %d CAs", switches, hosts))
	is(t, "fabsh", fabsh(t.Context(), "discover()"),
		fmt.Sprintf("fabric: %d nodes (%d switches, %d CAs), %d links, complete\n", hosts+switches, switches, hosts, hosts+9*9))
	is(t, "fabsh by LID", fabsh(t.Context(), `f = discover(); len(set([smp_get("NodeInfo", n.lid).node_guid for n in f.nodes]))`), fmt.Sprintln(hosts+switches))
}

func testSMPGet(t *testing.T, s *subnet) {
	out := diag(t, "smpquery", "-D", "portinfo", "0,1", "9")
	got := fabsh(t.Context(), `p = smp_get("PortInfo", dr("0,1"), 9); print(p.port_state, p.neighbor_mtu, p.local_port_num)`)
	is(t, "fabsh", got, fmt.Sprintln(strings.ToLower(field(t, out, "LinkState")), field(t, out, "NeighborMTU"), field(t, out, "LocalPort")))
	is(t, "a route that begins elsewhere", fabsh(t.Context(), `smp_get("NodeInfo", dr("0,2"))`), `smp_get: for parameter target: route 0,2 leaves the local node through port 2, but this session is on port 1 of vib1; begin with 0,1
  <command>:1:1: in <toplevel>
    smp_get("NodeInfo", dr("0,2"))
    ^
[exit status 2]
`)
}

func testSMPSet(t *testing.T, s *subnet) {
	const set = `smp_set("SwitchInfo", dr("0,1"), life_time_value=%d).life_time_value`
	got := fabsh(t.Context(), fmt.Sprintf(set, 7), "--write")
	if !strings.Contains(got, "a subnet manager with GUID ") || !strings.HasSuffix(got, "[exit status 2]\n") {
		t.Errorf("beside OpenSM: %s", got)
	}
	for _, v := range []int{7, 18} {
		is(t, "fabsh", fabsh(t.Context(), fmt.Sprintf(set, v), "--write", "--override-sm"), fmt.Sprintln(v))
		is(t, "smpquery's LifeTime", field(t, diag(t, "smpquery", "-D", "switchinfo", "0,1"), "LifeTime"), strconv.Itoa(v))
	}
}

// Tables of one segment, of some, and of thousands, which the kernels make and
// join: more than the kernel's buffers, and than ours.
func testSAGetTable(t *testing.T, s *subnet) {
	nodes := strings.Count(diag(t, "saquery", "NR"), "NodeRecord dump:")
	is(t, "saquery", strconv.Itoa(nodes), strconv.Itoa(hosts+switches))
	for _, c := range []struct {
		code string
		want int
	}{
		{`sa_gettable("NodeRecord", lid=1)`, 1},
		{`sa_gettable("NodeRecord", node_type="switch")`, switches},
		{`sa_gettable("NodeRecord")`, hosts + switches},
		{`set([r.node_guid for r in sa_gettable("NodeRecord")])`, hosts + switches},
		{`sa_gettable("PortInfoRecord")`, hosts + 9*(1+18) + 9*(1+9)}, // switches have a port 0,
		{`sa_gettable("PathRecord", force=True)`, (hosts + switches) * (hosts + switches)},
	} {
		began := time.Now()
		got := fabsh(t.Context(), "len("+c.code+")", "-t", "20s")
		t.Logf("%s: %s in %v", c.code, strings.TrimSpace(got), time.Since(began).Round(10*time.Millisecond))
		is(t, c.code, got, fmt.Sprintln(c.want))
	}
}

// The records make the fabric that a sweep finds, and that ibnetdiscover finds.
func testViaSA(t *testing.T, s *subnet) {
	got := fabsh(t.Context(), `
f = discover(via="sa")
print(f, f.problems)
print(f.dump() == discover().dump())
print(smp_get("NodeInfo", f.switches[-1]).node_type, perf_get("PortCounters", f.switches[0].ports[1]).port_select)
`, "-t", "20s")
	is(t, "fabsh", got, fmt.Sprintf("fabric: %d nodes (%d switches, %d CAs), %d links, complete by the records of the subnet administrator []\nTrue\nswitch 1\n",
		hosts+switches, switches, hosts, hosts+9*9))
	link := func(dump string) (lines []string) {
		for line := range strings.Lines(dump) {
			if strings.HasPrefix(line, "[") {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		return lines
	}
	ours, theirs := link(fabsh(t.Context(), `print(discover(via="sa").dump())`, "-t", "20s")), link(diag(t, "ibnetdiscover"))
	is(t, "links", strings.Join(ours, ""), strings.Join(theirs, ""))
}

// OpenSM shows P_KeyTableRecords to who has its SM_Key, which is 1.
func testKeys(t *testing.T, s *subnet) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("sa_key 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const code = `r = catch(sa_gettable, "P_KeyTableRecord"); print(len(r) if r else r.status)`
	is(t, "without", fabsh(t.Context(), code), "request invalid\n")
	if got := strings.TrimSpace(fabsh(t.Context(), code, "--keys", keys, "-t", "20s")); got == "request invalid" || len(got) < 2 {
		t.Errorf("with: %s", got)
	}
}

func testPerfGet(t *testing.T, s *subnet) {
	lid := strings.TrimSpace(fabsh(t.Context(), `smp_get("PortInfo", dr("0,1"), 0).lid`))
	for range 3 { // they count the MADs through that port
		out := diag(t, "perfquery", lid, "9")
		got := fabsh(t.Context(), fmt.Sprintf(`perf_get("PortCounters", %s, 9).port_xmit_pkts`, lid))
		before, err1 := strconv.Atoi(field(t, out, "PortXmitPkts"))
		after, err2 := strconv.Atoi(strings.TrimSpace(got))
		if err1 != nil || err2 != nil || after < before {
			t.Errorf("perfquery says %q, afterwards fabsh %q", field(t, out, "PortXmitPkts"), got)
		}
	}
}

func testSetLFT(t *testing.T, s *subnet) {
	const unused = 200
	lid := strings.TrimSpace(fabsh(t.Context(), `smp_get("PortInfo", dr("0,1"), 0).lid`))
	is(t, "fabsh", fabsh(t.Context(), fmt.Sprintf(`set_lft(%s, {%d: 3}); get_lft(%[1]s)[%[2]d]`, lid, unused), "--write", "--override-sm"), "3\n")
	out := diag(t, "ibroute", "-a", lid)
	if !regexp.MustCompile(fmt.Sprintf(`(?m)^%#04x 003 `, unused)).MatchString(out) {
		t.Errorf("ibroute knows nothing of it:\n%s", out)
	}
}

// OpenSM sweeps, again and again, while fabsh does: neither loses anything.
func testAtOnce(t *testing.T, s *subnet) {
	sweeps := func() int { return strings.Count(s.said(t), "SUBNET UP") }
	stop, before := make(chan struct{}), sweeps()
	var again sync.WaitGroup
	again.Go(func() {
		for asked := before; ; {
			if sweeps() == asked {
				asked++
				s.sm.Process.Signal(syscall.SIGHUP)
			}
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	got := fabsh(t.Context(), `
first = discover()
for i in range(5):
    f = discover()
    if [n.guid for n in f.nodes] != [n.guid for n in first.nodes]:
        fail("it is not the same")
print(f, stats().timed_out)`)
	close(stop)
	again.Wait()
	is(t, "fabsh", got, fmt.Sprintf("fabric: %d nodes (%d switches, %d CAs), %d links, complete 0\n", hosts+switches, switches, hosts, hosts+9*9))
	n := sweeps() - before
	t.Logf("6 sweeps of fabsh during %d of OpenSM", n)
	if n == 0 {
		t.Error("OpenSM did not sweep meanwhile")
	}
	for line := range strings.Lines(s.said(t)) {
		if strings.Contains(line, " ERR ") {
			t.Errorf("OpenSM: %s", line)
		}
	}
}

// How long a sweep takes, and ibnetdiscover's with 32 MADs at once. It is not
// judged: one processor is all there is, for five programs that take turns.
func testSpeed(t *testing.T, s *subnet) {
	var ours, theirs []time.Duration
	for range 5 {
		began := time.Now()
		if got := fabsh(t.Context(), "len(discover().nodes)"); got != fmt.Sprintln(hosts+switches) {
			t.Fatal(got)
		}
		between := time.Now()
		diag(t, "ibnetdiscover", "-o", "32")
		ours, theirs = append(ours, between.Sub(began)), append(theirs, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	t.Logf("fabsh %.2f s (%.2f to %.2f), ibnetdiscover -o 32 %.2f s (%.2f to %.2f)",
		ours[2].Seconds(), ours[0].Seconds(), ours[4].Seconds(), theirs[2].Seconds(), theirs[0].Seconds(), theirs[4].Seconds())
}

// Whatever state the ports are in, fabsh and infiniband-diags choose the same
// one if any is active. Otherwise fabsh wants one whose link is up; they take
// the first that is not disabled.
func testPortChoice(t *testing.T, s *subnet) {
	describe := regexp.MustCompile(`host-[0-9-]+`)
	const none = "no InfiniBand port is up: vib1/1 (down, polling), vib0/1 (down, polling); check cable and switch, or name a device to use it anyway (-C); fabsh ports lists them\n"
	states := []mad.PortState{mad.PortStateActive, mad.PortStateInitialize, mad.PortStateDown}
	set := func(c *cable, state mad.PortState) {
		t.Helper()
		p, err := c.far.Port()
		if err != nil {
			t.Fatal(err)
		}
		p.State = state
		if err := c.hca.Set(p); err != nil {
			t.Fatal(err)
		}
	}
	defer set(s.theirs, mad.PortStateActive)
	defer set(s.ours, mad.PortStateActive)
	for _, first := range states {
		for _, second := range states {
			set(s.theirs, first)
			set(s.ours, second)
			ways := [][]string{nil}
			if first == second {
				ways = append(ways, []string{"-P", "1"}, []string{"-C", "vib1"})
			}
			for _, flags := range ways {
				name := fmt.Sprintf("vib0 %v, vib1 %v, %q", first, second, flags)
				peer := describe.FindString(ibsimtest.Output(t, ibsimtest.Command(t, "smpquery", append(flags, "-t", "10000", "-D", "nodedesc", "0")...)))
				out, _ := exec.Command("fabsh", append(slices.Concat(slowly, flags), "-q", "-c", `smp_get("NodeDescription", dr("0")).node_string`)...).CombinedOutput()
				got := describe.FindString(string(out))
				linkUp := first == mad.PortStateInitialize && second == mad.PortStateDown
				switch named := len(flags) > 0 && flags[0] == "-C"; {
				case !named && first == mad.PortStateDown && second == first:
					if !strings.Contains(string(out), none) {
						t.Errorf("%s: got %s, want %s", name, out, none)
					}
				case !named && linkUp:
					is(t, name, string(out), "\"host-0-0 HCA-1\"\n")
				case got == "" || got != peer:
					t.Errorf("%s: fabsh is on %q, smpquery on %q", name, out, peer)
				}
			}
		}
	}
}

// The adapter is pulled out while fabsh sweeps.
func testRemoval(t *testing.T, s *subnet) {
	r := runFabsh(t, "discover()\nprint('swept')\nwhile True: discover()")
	r.says("swept")
	pulled := time.Now()
	s.ours.unplug()
	got := ""
	for r.out.Scan() {
		got += r.out.Text() + "\n"
	}
	r.Wait()
	t.Logf("fabsh ended %v later", time.Since(pulled).Round(time.Millisecond))
	if !strings.Contains(got, "vib1/1: the device was removed or reset, or its driver unloaded (") || r.ProcessState.ExitCode() != 3 {
		t.Errorf("fabsh: %v, %s", r.ProcessState, got)
	}
	is(t, "afterwards", fabsh(t.Context(), "1", "-F", "umad"), "fabsh: device vib1: unknown; devices: vib0; fabsh ports lists them\n[exit status 3]\n")
}

// testChange: OpenSM's engine file writes a change round by round, over the kernel's
// ib_umad: all pairs arrive between the rounds, its own dump equals the target in the
// end, and it reverts the change on request.
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
