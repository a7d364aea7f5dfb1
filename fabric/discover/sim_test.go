package discover_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// attach starts an engine at the first CA of a simulated subnet.
func attach(t testing.TB, spec string) *engine.Engine {
	t.Helper()
	return attachWith(t, spec, engine.Options{})
}

func attachWith(t testing.TB, spec string, options engine.Options) *engine.Engine {
	t.Helper()
	return engine.New(connect(t, spec), options)
}

// connect opens the port of the first CA of a simulated subnet.
func connect(t testing.TB, spec string) engine.Transport {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// sweep discovers a simulated subnet from its first CA.
func sweep(t testing.TB, spec string) (*fabric.Fabric, engine.Stats, time.Duration) {
	t.Helper()
	e := attach(t, spec)
	defer e.Close()
	begin := time.Now()
	f, err := discover.Sweep(t.Context(), e, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, e.Stats(), time.Since(begin)
}

// TestLoss: where one datagram in 20 is lost each way, a sweep finds the whole subnet.
func TestLoss(t *testing.T) {
	views := map[string]string{}
	for _, faults := range []string{"", ",loss=0.05,delay=20ms", ",busy=0.05,jitter=5ms"} {
		synctest.Test(t, func(t *testing.T) {
			f, stats, d := sweep(t, "fattree:k=8,levels=3"+faults)
			t.Logf("%q: %v, %v, %+v", faults, f, d, stats)
			if d := cmp.Diff("fabric: 208 nodes (80 switches, 128 CAs), 384 links, complete", f.String()); d != "" {
				t.Errorf("%q: (-want +got):\n%s%v", faults, d, f.Problems())
			}
			views[faults] = routes(f)
			if d := cmp.Diff(views[""], views[faults]); d != "" {
				t.Errorf("%q: (-without faults +with):\n%s", faults, d)
			}
		})
	}
}

// TestDeadPorts: nodes that do not answer, however many, cost a sweep the time of
// one call's retries.
func TestDeadPorts(t *testing.T) {
	const ladder = 3 * time.Second // (2 retries + 1) x timeout
	took := map[string]time.Duration{}
	for _, test := range []struct {
		faults, want string
		timedOut     uint64
	}{
		{"", "fabric: 1344 nodes (320 switches, 1024 CAs), 3072 links, complete", 0},
		{",dead=1%", "fabric: 1333 nodes (320 switches, 1013 CAs), 3061 links, incomplete: 11 timed out", 11},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, stats, d := sweep(t, "fattree:k=16,levels=3,delay=1ms"+test.faults)
			took[test.faults] = d
			if f.String() != test.want || stats.TimedOut != test.timedOut {
				t.Errorf("%q: %v, %d timed out; want %s, %d", test.faults, f, stats.TimedOut, test.want, test.timedOut)
			}
		})
	}
	t.Logf("healthy %v, with dead ports %v", took[""], took[",dead=1%"])
	if late := took[",dead=1%"] - took[""]; late > ladder {
		t.Errorf("dead ports cost %v, more than %v", late, ladder)
	}
}

// TestKnownLMCs: from a sweep, and from the records, the engine knows which LIDs
// each port has.
func TestKnownLMCs(t *testing.T) {
	for name, discover := range map[string]func(e *engine.Engine) (*fabric.Fabric, error){
		"sweep": func(e *engine.Engine) (*fabric.Fabric, error) {
			return discover.Sweep(t.Context(), e, discover.Options{})
		},
		"records": func(e *engine.Engine) (*fabric.Fabric, error) { return viaSA(t, e) },
	} {
		e := attach(t, "ring:n=2")
		if got := e.LMC(1); got != engine.MaxLMC {
			t.Errorf("%s: LMC %d before", name, got)
		}
		f, err := discover(e)
		if err != nil {
			t.Fatal(err)
		}
		for lid, lmc := range f.LMCs() {
			if got := e.LMC(lid); got != lmc || lmc != 0 {
				t.Errorf("%s: LID %d: LMC %d, want %d", name, lid, got, lmc)
			}
		}
		if got := e.LMC(1000); got != engine.MaxLMC {
			t.Errorf("%s: LMC %d of nobody", name, got)
		}
		e.Close()
	}
}

// routes are the routes of all nodes, which must not depend on the order of the
// answers.
func routes(f *fabric.Fabric) (s string) {
	for i := range f.Nodes() {
		s += f.Nodes()[i].Label() + " " + f.Nodes()[i].Route().String() + "\n"
	}
	return s
}

// BenchmarkDiscover sweeps simulated trees of 11,664 hosts and 1,620 switches, and of
// 45,000 and 3,900, and reports the memory that a port takes.
func BenchmarkDiscover(b *testing.B) {
	for _, spec := range []string{"pgft:m=18/18/36,w=1/18/18,p=1/1/1", "pgft:m=30/30/50,w=1/30/30,p=1/1/1"} {
		b.Run(spec, func(b *testing.B) {
			e := attach(b, spec)
			defer e.Close()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var f *fabric.Fabric
			for b.Loop() {
				var err error
				if f, err = discover.Sweep(b.Context(), e, discover.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(f.Ports())), "heap-B/port")
			b.ReportMetric(float64(len(f.Ports())), "ports")
			b.ReportMetric(float64(len(f.Nodes())), "nodes")
		})
	}
}

// TestKeys: a fabric whose nodes need M_Keys is swept with the right ones only.
func TestKeys(t *testing.T) {
	const spec = "ring:n=3,hosts=2,mkey=0x1234,mkey_level="
	want, _, _ := sweep(t, "ring:n=3,hosts=2")
	own := &engine.Keys{Ports: map[mad.GUID]uint64{}}
	for i := range want.Ports() {
		own.Ports[want.Ports()[i].GUID()] = 0x1234
	}
	byNode := &engine.Keys{Ports: map[mad.GUID]uint64{}}
	for i := range want.Nodes() {
		byNode.Ports[want.Nodes()[i].GUID()] = 0x1234
	}
	for _, test := range []struct {
		name, spec string
		keys       *engine.Keys
		known      *fabric.Fabric
		err        string
		nodes      int
	}{
		{"level 1 without", spec + "1", nil, nil, "", 9},
		{"level 2 with", spec + "2", &engine.Keys{M: 0x1234}, nil, "", 9},
		{"level 2 without", spec + "2", nil, nil, "the node at route 0 did not answer: SubnGet(NodeInfo) to route 0: timed out after 6 attempts in 3s", 0},
		{"level 3 with the wrong one", spec + "3", &engine.Keys{M: 0x1235}, nil, "the node at route 0 did not answer: SubnGet(NodeInfo) to route 0: timed out after 6 attempts in 3s", 0},
		{"each its own, and nobody knows who is behind a port", spec + "2", own, nil, "", 1},
		{"each its own, and known", spec + "2", own, want, "", 9},
		{"each its own, by node", spec + "2", byNode, want, "", 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := attachWith(t, test.spec, engine.Options{Keys: test.keys})
				defer e.Close()
				f, err := discover.Sweep(t.Context(), e, discover.Options{Known: test.known})
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != test.err || err == nil && len(f.Nodes()) != test.nodes {
					t.Errorf("%v, %v, want %d nodes, %s", f, err, test.nodes, test.err)
				}
			})
		})
	}
}
