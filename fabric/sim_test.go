package fabric_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// attach starts an engine at the first CA of a simulated subnet.
func attach(t testing.TB, spec string) *mad.Engine {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return mad.NewEngine(conn, mad.Options{})
}

// sweep discovers a simulated subnet from its first CA.
func sweep(t testing.TB, spec string) (*fabric.Fabric, mad.Stats, time.Duration) {
	t.Helper()
	e := attach(t, spec)
	defer e.Close()
	begin := time.Now()
	f, err := fabric.Discover(t.Context(), e, fabric.DiscoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f, e.Stats(), time.Since(begin)
}

// TestLoss: where one datagram in twenty is lost each way, a sweep finds the
// same, later.
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

// routes are the routes of all nodes: answers in another order lead to others
// at first.
func routes(f *fabric.Fabric) (s string) {
	for i := range f.Nodes() {
		s += f.Nodes()[i].Label() + " " + f.Nodes()[i].Route().String() + "\n"
	}
	return s
}

// BenchmarkDiscover sweeps a simulated tree of 11,664 hosts and 1,620
// switches, and tells what a port costs in memory.
func BenchmarkDiscover(b *testing.B) {
	e := attach(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	defer e.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var f *fabric.Fabric
	for b.Loop() {
		var err error
		if f, err = fabric.Discover(b.Context(), e, fabric.DiscoverOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(f.Ports())), "heap-B/port")
	b.ReportMetric(float64(len(f.Ports())), "ports")
	b.ReportMetric(float64(len(f.Nodes())), "nodes")
}
