package shell

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// The benchmarks here run whole processes. Those that compare take turns, so
// that what else the machine does falls on all alike.

// builtFabsh builds fabsh, for the test's own binary is larger and starts more
// slowly.
func builtFabsh(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fabsh")
	build := exec.Command("go", "build", "-o", path, "./fabsh")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// output runs a command that must succeed.
func output(b *testing.B, c *exec.Cmd) string {
	b.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v\n%s", c, err, out)
	}
	return string(out)
}

// numberIn finds pattern's group in text.
func numberIn(b *testing.B, text, pattern string) float64 {
	b.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		b.Fatalf("no %q in:\n%s", pattern, text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkStart(b *testing.B) {
	path := builtFabsh(b)
	for b.Loop() {
		if out := output(b, exec.Command(path, "-F", "sim:ring:n=2", "-c", "1")); out != "1\n" {
			b.Fatal(out)
		}
	}
}

// BenchmarkDiscoverIbsim sweeps 648 hosts and 54 switches of 36 ports on ibsim,
// beside ibnetdiscover, which by itself keeps 2 MADs on their way.
func BenchmarkDiscoverIbsim(b *testing.B) {
	path := builtFabsh(b)
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.FixtureOptions{})
	fabsh := func(code string) *exec.Cmd { return exec.Command(path, "-F", "ibsim:"+f.Name, "-c", code) }
	ibnetdiscover := func(args ...string) *exec.Cmd { return f.Command(b, "", "ibnetdiscover", args...) }
	const fabric = "fabric: 702 nodes (54 switches, 648 CAs), 1296 links, complete"

	var ours, theirs, slow time.Duration
	for b.Loop() { // medians of 15, by turns: one process more or less on the machine doubles a turn
		var turns [3][]time.Duration
		for range 15 {
			turns[0] = append(turns[0], elapsed(b, fabsh("discover()")))
			turns[1] = append(turns[1], elapsed(b, ibnetdiscover("-o", "64")))
		}
		turns[2] = append(turns[2], elapsed(b, ibnetdiscover()))
		for i, sum := range []*time.Duration{&ours, &theirs, &slow} {
			slices.Sort(turns[i])
			*sum += turns[i][len(turns[i])/2]
		}
	}
	report(b, ours, "fabsh-sec")
	report(b, theirs, "ibnetdiscover-o64-sec")
	report(b, slow, "ibnetdiscover-sec")
	b.ReportMetric(100*ours.Seconds()/theirs.Seconds(), "%of-ibnetdiscover-o64")
	b.ReportMetric(100*ours.Seconds()/slow.Seconds(), "%of-ibnetdiscover")
	b.ReportMetric(numberIn(b, output(b, fabsh("print(discover(), stats())")), regexp.QuoteMeta(fabric)+`.* stats.sent=(\d+)`), "fabsh-MADs")
	b.ReportMetric(numberIn(b, output(b, ibnetdiscover("-m")), `Total MADs used: (\d+)`), "ibnetdiscover-MADs")
	b.ReportMetric(0, "ns/op") // of all three: of no use
}

// BenchmarkPortCounters reads the counters of all 2,592 ports, beside
// ibqueryerrors; both have the topology from ibnetdiscover's cache. The MADs are
// those that the local port counts.
func BenchmarkPortCounters(b *testing.B) {
	path := builtFabsh(b)
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.FixtureOptions{SM: "host-35-17"})
	fabsh := func(code string) *exec.Cmd {
		c := exec.Command(path, "-F", "ibsim:"+f.Name, "--sl", "0", "-c", code)
		c.Dir = f.Dir
		return c
	}
	output(b, f.Command(b, "", "ibnetdiscover", "--cache", "cache"))
	read := func() *exec.Cmd {
		return fabsh(`
counters = perf_get("PortCounters", load_fabric("cache").ports)
print(len(counters), [c for c in counters if not c or c.symbol_error_counter > 10 or c.link_downed_counter > 10])`)
	}
	if out := output(b, read()); out != "2592 []\n" {
		b.Fatal(out)
	}
	ibqueryerrors := func() *exec.Cmd { return f.Command(b, "", "ibqueryerrors", "--load-cache", "cache", "--skip-sl") }
	sent := func() float64 {
		return numberIn(b, output(b, fabsh(`print(perf_get("PortCounters", smp_get("PortInfo", dr("0"), 1).lid, 1).port_xmit_pkts)`)), `^(\d+)\n$`)
	}

	var took, theirs time.Duration
	for b.Loop() {
		took += elapsed(b, read())
		theirs += elapsed(b, ibqueryerrors())
	}
	report(b, took, "fabsh-sec")
	report(b, theirs, "ibqueryerrors-sec")
	b.ReportMetric(100*took.Seconds()/theirs.Seconds(), "%of-ibqueryerrors")
	at0 := sent()
	at1 := sent() // what asking costs
	output(b, read())
	at2 := sent()
	output(b, ibqueryerrors())
	b.ReportMetric(at2-at1-(at1-at0), "fabsh-MADs")
	b.ReportMetric(sent()-at2-(at1-at0), "ibqueryerrors-MADs")
	b.ReportMetric(0, "ns/op") // of both: of no use
}

// elapsed is how long c takes, which writes to /dev/null.
func elapsed(b *testing.B, c *exec.Cmd) time.Duration {
	b.Helper()
	start := time.Now()
	if err := c.Run(); err != nil {
		b.Fatalf("%v: %v", c, err)
	}
	return time.Since(start)
}

func report(b *testing.B, sum time.Duration, unit string) {
	b.ReportMetric(sum.Seconds()/float64(b.N), unit)
}

// BenchmarkParallel asks 208 nodes, 5 ms away, one after the other and at once,
// without start and discovery.
func BenchmarkParallel(b *testing.B) {
	path := builtFabsh(b)
	const script = `
f = discover()
get = lambda n: smp_get("NodeInfo", n)
def took(fn):
    start = time.now()
    if len(fn()) != 208:
        fail()
    return (time.now() - start).seconds
print(took(lambda: [get(n) for n in f.nodes]), took(lambda: parallel(get, f.nodes)))`
	var loop, parallel float64
	for b.Loop() {
		out := output(b, exec.Command(path, "-F", "sim:fattree:k=8,levels=3,delay=5ms", "--window", "64", "-c", script))
		loop += numberIn(b, out, `^(\S+) `)
		parallel += numberIn(b, out, ` (\S+)\n$`)
	}
	b.ReportMetric(loop/float64(b.N), "loop-sec")
	b.ReportMetric(parallel/float64(b.N), "parallel-sec")
	b.ReportMetric(loop/parallel, "loop/parallel")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTable asks the simulated subnet administration for 104,976
// PathRecords, which come in 33,593 MADs, and makes values of them. The memory
// is the CPU time of the whole process, the simulated subnet included.
func BenchmarkTable(b *testing.B) {
	path := builtFabsh(b)
	const script = `
start = time.now()
n = len(sa_gettable("PathRecord", force=True))
print(n, (time.now() - start).seconds)`
	var took, memory float64
	for b.Loop() {
		c := exec.Command(path, "-F", "sim:fattree:k=24,levels=2", "-c", script)
		took += numberIn(b, output(b, c), `^104976 (\S+)\n$`)
		memory = max(memory, float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1000)
	}
	b.ReportMetric(took/float64(b.N), "sec")
	b.ReportMetric(memory, "MB-at-most")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAuditIbsim audits 702 nodes and 2,592 ports on ibsim, compared with what the
// run before has read, beside ibqueryerrors: the standard set, where both sweep; and
// the audit of counters, where both have the topology from ibnetdiscover's cache. ibqueryerrors asks a switch for the sums of all its ports and
// goes on where these are 0; the audit reads two attributes of each port, for the
// rates of traffic and of each error are a port's. The baseline has what ibsim's
// settings make the audits find, so nothing waits for a second reading.
func BenchmarkAuditIbsim(b *testing.B) {
	path := builtFabsh(b)
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.FixtureOptions{SM: "host-35-17", RMPP: true})
	fabsh := func(args ...string) *exec.Cmd {
		c := exec.Command(path, append([]string{"-q", "-F", "ibsim:" + f.Name, "--sl", "0", "--state", filepath.Join(f.Dir, "state")}, args...)...)
		c.Dir = f.Dir
		return c
	}
	output(b, f.Command(b, "", "ibnetdiscover", "--cache", "cache"))
	output(b, fabsh("snapshot", "base.fab"))
	standard := func() *exec.Cmd { return fabsh("audit", "--over", "last", "--baseline", "base.fab") }
	counters := func() *exec.Cmd { return fabsh("audit", "counters", "--over", "last", "--load-cache", "cache") }
	for _, c := range []*exec.Cmd{standard(), counters()} {
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	var all, some, theirs, cached time.Duration
	for b.Loop() {
		all += elapsed(b, standard())
		theirs += elapsed(b, f.Command(b, "", "ibqueryerrors", "--skip-sl"))
		some += elapsed(b, counters())
		cached += elapsed(b, f.Command(b, "", "ibqueryerrors", "--load-cache", "cache", "--skip-sl"))
	}
	report(b, all, "fabsh-standard-sec")
	report(b, theirs, "ibqueryerrors-sec")
	b.ReportMetric(100*all.Seconds()/theirs.Seconds(), "standard-%of-ibqueryerrors")
	report(b, some, "fabsh-counters-sec")
	report(b, cached, "ibqueryerrors-cached-sec")
	b.ReportMetric(100*some.Seconds()/cached.Seconds(), "counters-%of-ibqueryerrors-cached")
	b.ReportMetric(0, "ns/op") // of all four: of no use
}

// largeFabric has 11,664 hosts and 1,620 switches.
const largeFabric = "sim:pgft:m=18/18/36,w=1/18/18,p=1/1/1"

// BenchmarkAudit audits 11,664 hosts in process: the standard set, and with what reads
// whole tables. The times of the simulator and of the sweep are included.
func BenchmarkAudit(b *testing.B) {
	path := builtFabsh(b)
	for _, run := range []struct {
		name string
		args []string
	}{{"standard", nil}, {"deep", []string{"--deep"}}} {
		b.Run(run.name, func(b *testing.B) {
			args := append([]string{"-F", largeFabric, "-q", "--state", b.TempDir(), "audit"}, run.args...)
			costs(b, 0, path, args...)
		})
	}
}

// BenchmarkDiff compares files of 11,664 hosts with their tables: equal, and with a link
// less.
func BenchmarkDiff(b *testing.B) {
	path := builtFabsh(b)
	dir := b.TempDir()
	old, less := filepath.Join(dir, "old"), filepath.Join(dir, "less")
	output(b, exec.Command(path, "-F", largeFabric, "-q", "snapshot", old))
	output(b, exec.Command(path, "-F", largeFabric+",remove_links=1,seed=5", "-q", "snapshot", less))
	b.Run("same", func(b *testing.B) { costs(b, 0, path, "-q", "diff", old, old) })
	b.Run("link_gone", func(b *testing.B) { costs(b, 1, path, "-q", "diff", old, less) })
}

// costs runs fabsh, which must end with that status, and reports the time it took of all
// cores, and the most memory that it had.
func costs(b *testing.B, status int, path string, args ...string) {
	var user, system time.Duration
	most := int64(0)
	for b.Loop() {
		c := exec.Command(path, args...)
		if out, _ := c.CombinedOutput(); c.ProcessState == nil || c.ProcessState.ExitCode() != status {
			b.Fatalf("%v ended with %v\n%s", args, c.ProcessState, out)
		}
		user, system = user+c.ProcessState.UserTime(), system+c.ProcessState.SystemTime()
		most = max(most, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	report(b, user, "user-sec")
	report(b, system, "system-sec")
	b.ReportMetric(float64(most)/1024, "MiB") // in KiB on Linux
}

// BenchmarkBringUp is how long bring_up.star takes for a bare subnet of 5,832 hosts,
// beside opensm -o on equal simulated subnets, each with a server of its own.
func BenchmarkBringUp(b *testing.B) {
	const spec = "pgft:m=18/18/18,w=1/18/18,p=1/1/1"
	f, _, err := sim.Parse(spec)
	if err != nil {
		b.Fatal(err)
	}
	path := builtFabsh(b)
	serve := func() string {
		name := fmt.Sprintf("bench-%d", rand.Uint32())
		c := exec.Command(path, "sim", spec, "--listen", name, "--bare")
		out, err := c.StderrPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Process.Kill(); c.Wait() })
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		return name
	}
	node := fmt.Sprintf("H-%016x", uint64(f.OfType(mad.NodeTypeCA)[0].GUID()))
	var ours, theirs time.Duration
	for b.Loop() {
		name := serve()
		start := time.Now()
		output(b, exec.Command(path, "-F", "ibsim:"+name, "--write", "../examples/bring_up.star", "--engine", "ftree"))
		ours += time.Since(start)
		on := ibsimtest.On(b, serve(), nil, nil)
		start = time.Now()
		sm := on.StartSM(b, ibsimtest.FixtureOptions{SM: node, SMArgs: []string{"-o", "-R", "ftree"}})
		sm.WaitLong(b, "SUBNET UP", 10*time.Minute)
		theirs += time.Since(start)
		sm.Stop()
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "s")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "opensm-s")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "of-opensm")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkExporterIbsim is a cycle of the exporter at 702 nodes on ibsim, from the
// first request to the text, beside the processes that the incumbents run for one; what
// these do with the output is not counted.
//
// treydock 0.10.0 as it comes: ibnetdiscover --ports, then for each switch perfquery -l
// -x -G GUID PORTS, one at a time (collectors/ibnetdiscover.go, ibnetdiscoverArgs;
// switch.go, collect; perfquery.go, perfqueryArgs, --perfquery.max-concurrent). With
// --collector.hca it runs perfquery -l -x -G GUID PORT for each HCA, too (hca.go): only
// then does it read all that ours reads. guilbaults: one ibqueryerrors
// (infiniband-exporter.py, collect), which asks a switch for the sums of its ports, and
// where these are below its thresholds tells no counter at all.
func BenchmarkExporterIbsim(b *testing.B) {
	f := ibsimtest.Start(b, ibsimtest.FatTree(36, 18, 18), ibsimtest.FixtureOptions{SM: "host-35-17", RMPP: true})
	x := startExporter(b, []string{"-F", "ibsim:" + f.Name}, "--every", "1s")
	var ours, switches, hcas, guilbaults time.Duration
	for b.Loop() {
		cycles := value(x.metrics(b), "fabsh_exporter_cycles_total", "outcome=whole")
		ibsimtest.Poll(b, "a cycle", func() bool { return value(x.metrics(b), "fabsh_exporter_cycles_total", "outcome=whole") > cycles })
		ours += time.Duration(value(x.metrics(b), "fabsh_exporter_cycle_duration_seconds") * float64(time.Second))
		x.Process.Signal(syscall.SIGSTOP) // so that each has ibsim to itself
		start := time.Now()
		devices := devicesOf(f.Run(b, "ibnetdiscover", "--ports"))
		if len(devices["SW"]) != 54 || len(devices["CA"]) != 648 {
			b.Fatalf("ibnetdiscover --ports tells %d switches and %d HCAs", len(devices["SW"]), len(devices["CA"]))
		}
		perfquery := func(kind string) {
			for guid, ports := range devices[kind] {
				f.Run(b, "perfquery", "-l", "-x", "-G", guid, strings.Join(ports, ","))
			}
		}
		perfquery("SW")
		switches += time.Since(start)
		perfquery("CA")
		hcas += time.Since(start)
		start = time.Now()
		f.Run(b, "ibqueryerrors", "--verbose", "--details", "--suppress-common", "--skip-sl", "--data", "--report-port", "--switch", "--ca")
		guilbaults += time.Since(start)
		x.Process.Signal(syscall.SIGCONT)
	}
	report(b, ours, "fabsh-cycle-sec")
	report(b, switches, "treydock-switches-sec")
	report(b, hcas, "treydock-with-hcas-sec")
	report(b, guilbaults, "ibqueryerrors-sec")
	b.ReportMetric(100*ours.Seconds()/switches.Seconds(), "%of-treydock-switches")
	b.ReportMetric(100*ours.Seconds()/hcas.Seconds(), "%of-treydock-with-hcas")
	b.ReportMetric(100*ours.Seconds()/guilbaults.Seconds(), "%of-ibqueryerrors")
	b.ReportMetric(0, "ns/op") // of all: of no use
}

// devicesOf are the ports with a link that ibnetdiscover --ports tells, by type of
// node and GUID: TYPE LID PORT GUID WIDTH SPEED - ...
func devicesOf(text string) map[string]map[string][]string {
	all := map[string]map[string][]string{"SW": {}, "CA": {}}
	for _, m := range regexp.MustCompile(`(?m)^(SW|CA)\s+\d+\s+(\d+)\s+(0x\w+)\s+\S+\s+\S+\s+-`).FindAllStringSubmatch(text, -1) {
		all[m[1]][m[3]] = append(all[m[1]][m[3]], m[2])
	}
	return all
}
