package engines

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad/ibsim/ibsimtest"
)

// opensm lets OpenSM bring a net up in ibsim, and reads what it dumps.
func opensm(t testing.TB, f *fabric.Fabric, args ...string) *routes.Routes {
	t.Helper()
	r, _ := opensmIn(t, f, args...)
	return r
}

// opensmIn is opensm, and where the rest of what it dumps is.
func opensmIn(t testing.TB, f *fabric.Fabric, args ...string) (*routes.Routes, string) {
	t.Helper()
	var net bytes.Buffer
	if err := format.Dump(&net, f, "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
	s := ibsimtest.Start(t, net.String(), ibsimtest.FixtureOptions{SM: first, SMArgs: append([]string{"-D", "0x43"}, args...)})
	r, notes := dumpedTables(t, s.Dir)
	if notes != nil {
		t.Fatal(notes)
	}
	return r, s.Dir
}

// dumpedTables returns the tables that OpenSM dumped to dir, and what was not understood there.
func dumpedTables(t testing.TB, dir string) (*routes.Routes, []string) {
	t.Helper()
	read := func(name string) *os.File {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	found, err := format.Load(read("opensm-subnet.lst"), "opensm-subnet.lst", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(found, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := routes.New(g, 0)
	notes, err := format.ReadLFTs(read("opensm-lfts.dump"), "opensm-lfts.dump", found, func(n *fabric.Node) []byte { return r.Row(g.SwitchOf(n)) })
	if err != nil {
		t.Fatal(err)
	}
	return r, notes
}

// TestOpenSM compares our tables with the tables that OpenSM computes for a fabric: paths
// are as long, or shorter, and on trees the busiest link has no more routes.
func TestOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, x := range []struct {
		spec    string
		engines string
	}{
		{"fattree:k=4,levels=3", "minhop updn ftree sssp nue"},
		{"fattree:k=8,levels=3,remove_links=4%", "minhop sssp nue"},
		{"pgft:m=4/4,w=1/2,p=1/3", "minhop updn ftree"},
		{"hyperx:dims=4/4,hosts=2", "minhop sssp dor nue"},
		{"random:n=24,degree=4,hosts=3", "minhop sssp nue"},
		{"torus:dims=4/4,hosts=2", "minhop sssp nue"},
		{"dragonfly:a=4,p=2,h=1", "minhop nue"},
		{"mesh:dims=3/4,hosts=2", "minhop dor"},
	} {
		f := routingtest.Topology(t, x.spec)
		for engine := range strings.FieldsSeq(x.engines) {
			t.Run(x.spec+" "+engine, func(t *testing.T) {
				theirs := opensm(t, f, "-R", engine+",no_fallback")
				ours := compute(t, theirs.Graph(), engine, Options{})
				a, b := routingtest.Verified(t, ours, verify.Options{}), routingtest.Verified(t, theirs, verify.Options{})
				if !a.Acyclic && engine != "minhop" && engine != "sssp" || a.Unreachable != 0 || b.Unreachable != 0 {
					t.Errorf("acyclic %v, unreachable %d; OpenSM: %v, %d", a.Acyclic, a.Unreachable, b.Acyclic, b.Unreachable)
				}
				if d := cmp.Diff(check(t, theirs), judgedByIbdmchk(t, theirs)); d != "" {
					t.Errorf("OpenSM's tables (-ibdmchk +fabsh):\n%s", d)
				}
				if links(a) > links(b) && engine != "nue" || engine != "nue" && !slices.Equal(a.Hops, b.Hops) && engine != "updn" {
					t.Errorf("hops %v, OpenSM: %v", a.Hops, b.Hops)
				}
				p, err := traffic.MeasureBalance(t.Context(), ours, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				q, err := traffic.MeasureBalance(t.Context(), theirs, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tree := strings.Contains(x.spec, "tree:") || strings.Contains(x.spec, "pgft:"); tree && p.Routes.Max > q.Routes.Max {
					t.Errorf("the busiest link has %d routes, OpenSM: %d", p.Routes.Max, q.Routes.Max)
				}
				t.Logf("hops %v, busiest link %d routes; OpenSM: %v, %d", a.Hops, p.Routes.Max, b.Hops, q.Routes.Max)
			})
		}
	}
}

// TestQuality: on a tree of 1,728 hosts, shifts meet no contention, and random
// permutations get as much bandwidth as with OpenSM's ftree, or more.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	theirs := opensm(t, routingtest.Topology(t, "ft1728"), "-R", "ftree,no_fallback")
	measure := func(r *routes.Routes, pattern string) *traffic.Congestion {
		t.Helper()
		c, err := traffic.MeasureCongestion(t.Context(), r, traffic.CongestionOptions{Pattern: pattern, Seed: 1, Samples: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := measure(theirs, traffic.Permutation)
	t.Logf("OpenSM's ftree: bandwidth %.4f", want.Bandwidth)
	for _, engine := range []string{"ftree", "minhop", "updn", "sssp", "nue"} {
		r := compute(t, theirs.Graph(), engine, Options{})
		got := measure(r, traffic.Permutation)
		t.Logf("%s: bandwidth %.4f", engine, got.Bandwidth)
		if got.Bandwidth < want.Bandwidth || got.Bandwidth < 0.52 {
			t.Errorf("%s: bandwidth %.4f, OpenSM's ftree: %.4f", engine, got.Bandwidth, want.Bandwidth)
		}
		if shift := measure(r, traffic.Shift); shift.Max != 1 || shift.Bandwidth != 1 {
			t.Errorf("%s: %+v", engine, shift)
		}
	}
}

// TestQualityDegraded: with parts missing, ftree and minhop are no worse than sssp, which
// balances globally, in shifts, and in random permutations by a few per cent at most.
func TestQualityDegraded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, spec := range []string{
		routingtest.Nets["ft648"] + ",remove_links=3%", routingtest.Nets["ft648"] + ",remove_switches=2,seed=2",
		routingtest.Nets["ft1728"] + ",remove_links=1%", routingtest.Nets["ft1728"] + ",remove_links=5%", routingtest.Nets["ft1728"] + ",remove_switches=8",
		"pgft:m=20/20/4,w=1/10/2,p=1/1/5,remove_links=2%",
	} {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		bandwidth := func(engine, pattern string) float64 {
			t.Helper()
			c, err := traffic.MeasureCongestion(t.Context(), compute(t, g, engine, Options{}), traffic.CongestionOptions{Pattern: pattern, Seed: 1, Samples: 100})
			if err != nil {
				t.Fatal(err)
			}
			return c.Bandwidth
		}
		for _, pattern := range []string{traffic.Permutation, traffic.Shift} {
			want := bandwidth("sssp", pattern)
			for _, engine := range []string{"ftree", "minhop"} {
				allowed := want
				if pattern == traffic.Permutation {
					allowed *= 0.94
				}
				if got := bandwidth(engine, pattern); got < allowed {
					t.Errorf("%s, %s: bandwidth of %s %.4f, of sssp %.4f", spec, pattern, engine, got, want)
				}
			}
		}
	}
}

// links is the length of all paths together.
func links(v *verify.Verdict) (n int64) {
	for hops, pairs := range v.Hops {
		n += int64(hops) * pairs
	}
	return n
}

// BenchmarkOpenSM is the CPU time of our engines with lanes on tori, beside the time that
// OpenSM's engines take there, from its lines "building routing with" to "tables
// configured"; it is ended after openSMLimit. Measured on 2 cores, in ms: lash 5/5/5 4
// (OpenSM 290), 6/6/6 24 (OpenSM refuses: 8 lanes are not enough for it), 16/16/16 4,130
// (OpenSM not done after 120,000); torus-2QoS 16/16/16 830 (OpenSM 11,390).
func BenchmarkOpenSM(b *testing.B) {
	for _, x := range []struct {
		engine string // OpenSM's spelling
		dims   []int
	}{
		{"lash", []int{5, 5, 5}}, {"lash", []int{6, 6, 6}}, {"lash", []int{16, 16, 16}}, {"torus-2QoS", []int{16, 16, 16}},
	} {
		spec := strings.ReplaceAll(strings.Trim(fmt.Sprint(x.dims), "[]"), " ", "/")
		b.Run(x.engine+"/"+spec, func(b *testing.B) {
			if x.engine == "lash" && x.dims[0] > 8 && os.Getenv("FABSH_SOAK") == "" {
				b.Skip("minutes, and 4 GB: with FABSH_SOAK=1")
			}
			f := routingtest.Topology(b, "torus:hosts=1,dims="+spec)
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				b.Fatal(err)
			}
			before := routingtest.UsedTime(b)
			for b.Loop() {
				compute(b, g, strings.ToLower(x.engine), Options{})
			}
			ours := (routingtest.UsedTime(b) - before) / time.Duration(b.N)
			args := []string{"-o", "-Q", "-D", "0x07", "-R", x.engine}
			if x.engine == "torus-2QoS" {
				config, _ := torusConfig(b, f, x.dims)
				args = append(args, "--torus_config", config)
			}
			var net bytes.Buffer
			if err := format.Dump(&net, f, "ibnetdiscover"); err != nil {
				b.Fatal(err)
			}
			node := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net.String())[1]
			theirs, end := routingTime(b, ibsimtest.Start(b, net.String(), ibsimtest.FixtureOptions{}).StartSM(b, ibsimtest.FixtureOptions{SM: node, SMArgs: args}))
			b.ReportMetric(ours.Seconds()*1e3, "cpu-ms")
			b.ReportMetric(theirs.Seconds()*1e3, "OpenSM-"+end+"-cpu-ms")
		})
	}
}

// openSMLimit is how long OpenSM may compute tables, in CPU time.
const openSMLimit = 2 * time.Minute

// routingTime is the CPU time in which an OpenSM computes and sends tables, and how that
// ended: where its engine refuses, it goes on to minhop.
func routingTime(b *testing.B, sm *ibsimtest.SM) (used time.Duration, end string) {
	b.Helper()
	defer sm.Kill()
	sm.WaitLong(b, "uilding routing with", 5*time.Minute)
	before := processTime(b, sm.PID())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		<-tick.C
		used = processTime(b, sm.PID()) - before
		switch log := sm.Log(); {
		case strings.Contains(log, "minhop tables configured on all switches"):
			return used, "refuses"
		case strings.Contains(log, "tables configured on all switches"):
			return used, "done"
		case used > openSMLimit:
			return used, "not-done"
		}
	}
}

// processTime is the CPU time of a process so far, in ticks of 10 ms (proc_pid_stat(5)).
func processTime(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

var collect = flag.Bool("opensm", false, "let OpenSM compute what its figures in testdata lack")

// TestOpenSMFigures lets OpenSM compute the tables whose figures are missing, or whose bandwidths
// are measured in another order of hosts than ours.
func TestOpenSMFigures(t *testing.T) {
	if !*collect {
		t.Skip("with -opensm: an hour, if all are missing")
	}
	list := readFigures(t, opensmFigures)
	for _, net := range benchNets() {
		var f *fabric.Fabric
		for _, engine := range []string{"minhop", "updn", "ftree", "dor", "sssp", "dfsssp", "lash", "nue", "torus-2QoS"} {
			at := slices.IndexFunc(list, func(x figure) bool { return x.Net == net && x.Engine == engine })
			dims := torusDims(t, net)
			if at >= 0 && (list[at].Order == orderOfGUIDs || list[at].Order == "") || engine == "torus-2QoS" && dims == nil {
				continue
			}
			t.Run(net+" "+engine, func(t *testing.T) {
				if f == nil {
					f = benchNet(t, net)
				}
				args := []string{"-Q", "-D", "0x47", "-R", engine}
				if engine == "torus-2QoS" {
					config, _ := torusConfig(t, f, dims)
					args = append(args, "--torus_config", config)
				}
				x := figure{Net: net, Engine: engine}
				x.fromOpenSM(t, f, args)
				t.Logf("%+v", x)
				if at < 0 {
					list = append(list, x)
				} else if was := &list[at]; x.Largest == was.Largest && x.Result == was.Result {
					was.Shift, was.Bisection, was.Order = x.Shift, x.Bisection, x.Order
				} else {
					t.Fatalf("the tables are not the same: %d routes on a channel, were %d; %s", x.Largest, was.Largest, x.Result)
				}
				writeFigures(t, opensmFigures, list)
			})
		}
	}
}

// torusDims are the dimensions of a whole torus of two or three, else nil.
func torusDims(t *testing.T, net string) (dims []int) {
	if !strings.HasPrefix(net, "torus:") || strings.Contains(net, "remove") {
		return nil
	}
	text := regexp.MustCompile(`dims=([0-9/]+)`).FindStringSubmatch(net)[1]
	for n := range strings.SplitSeq(text, "/") {
		d, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		dims = append(dims, d)
	}
	if len(dims) > 3 {
		return nil
	}
	return dims
}

// fromOpenSM sets the figure to the figure of OpenSM's tables, and reports whether they have a credit loop. Where
// its engine refuses, OpenSM goes on to minhop.
func (f *figure) fromOpenSM(t *testing.T, net *fabric.Fabric, args []string) (loops bool) {
	t.Helper()
	var text bytes.Buffer
	if err := format.Dump(&text, net, "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	node := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(text.String())[1]
	sm := ibsimtest.Start(t, text.String(), ibsimtest.FixtureOptions{}).StartSM(t, ibsimtest.FixtureOptions{SM: node, SMArgs: args})
	defer sm.Kill()
	sm.WaitLong(t, "uilding routing with", 5*time.Minute)
	before := processTime(t, sm.PID())
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for f.CPU == 0 {
		<-tick.C
		used, log := processTime(t, sm.PID())-before, sm.Log()
		if _, after, found := strings.Cut(log, "anes needed: "); found {
			fmt.Sscan(after, &f.Lanes)
		}
		switch {
		case f.Engine != "minhop" && strings.Contains(log, "minhop tables configured on all switches"):
			f.Result = "refused"
			return false
		case strings.Contains(log, "tables configured on all switches"):
			f.CPU = max(1, int(used.Milliseconds()))
		case used > openSMLimit:
			f.Result = fmt.Sprintf("not done after %v", openSMLimit)
			return false
		}
	}
	sm.WaitLong(t, "SUBNET UP", 5*time.Minute)
	tables, _ := dumpedTables(t, sm.Dir)
	f.measure(t, tables)
	return !routingtest.Verified(t, tables, verify.Options{}).Acyclic
}
