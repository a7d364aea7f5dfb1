package engines

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// TestOpenSM: our tables beside those that OpenSM computes for the same fabric:
// paths are as long, or shorter, and on trees the busiest link has no more routes.
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
