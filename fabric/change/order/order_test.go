package order

import (
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sim"
)

func topology(t testing.TB, spec string) *fabric.Fabric {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// graphs returns the graphs of a fabric, and of the fabric without the link of channel c.
func graphs(t testing.TB, spec string, c int) (whole, cut *graph.Graph) {
	t.Helper()
	f := topology(t, spec)
	whole, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := whole.ChannelPort(c)
	cut, err = graph.New(f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == lost }})
	if err != nil {
		t.Fatal(err)
	}
	return whole, cut
}

func compute(t testing.TB, g *graph.Graph, name string, o engines.Options) *routes.Routes {
	t.Helper()
	r, err := engines.Compute(t.Context(), g, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLinkLost: in a whole fat tree the repair after one link needs one round.
func TestLinkLost(t *testing.T) {
	for _, name := range []string{"minhop", "ftree", "updn"} {
		for c := 0; c < 64; c += 7 {
			whole, cut := graphs(t, "fattree:k=4,levels=3", c)
			old := compute(t, whole, name, engines.Options{})
			in := Input{Old: old.On(cut), New: compute(t, cut, name, engines.Options{Keep: old})}
			s, err := Plan(t.Context(), in)
			if err != nil {
				t.Fatalf("%s without channel %d: %v", name, c, err)
			}
			if d := in.New.Diff(in.Old); writesOf(s) != d.Blocks || s.Figures.Gained == 0 || len(s.Rounds) > 4 {
				t.Errorf("%s without channel %d: %+v, expected %d blocks in few rounds", name, c, s.Figures, d.Blocks)
			}
		}
	}
}

// BenchmarkPlan is what differs, an order for it, and the proof: after a link was lost, and
// of all tables by another engine. ns/op is all of it; cpu-ms is its work on all cores.
func BenchmarkPlan(b *testing.B) {
	const spec = "pgft:m=18/18/36,w=1/18/18,p=1/1/1"
	whole, cut := graphs(b, spec, 1811)
	b.Run("link", func(b *testing.B) {
		old := compute(b, whole, "ftree", engines.Options{})
		in := Input{Old: old.On(cut), New: compute(b, cut, "ftree", engines.Options{Keep: old})}
		benchmark(b, in)
	})
	b.Run("engine", func(b *testing.B) {
		benchmark(b, Input{Old: compute(b, whole, "minhop", engines.Options{Policy: engines.LeastLoaded}), New: compute(b, whole, "ftree", engines.Options{})})
	})
}

func benchmark(b *testing.B, in Input) {
	b.ReportAllocs()
	runs, start := 0, cpu(b)
	defer func() { b.ReportMetric(float64((cpu(b)-start).Milliseconds())/float64(runs), "cpu-ms/op") }()
	for b.Loop() {
		runs++
		d := in.New.Diff(in.Old)
		s, err := Plan(b.Context(), in)
		if err != nil {
			b.Fatal(err)
		}
		if writesOf(s) < d.Blocks {
			b.Fatal(s.Figures, d.Blocks)
		}
		b.ReportMetric(float64(writesOf(s)), "blocks")
		b.ReportMetric(float64(len(s.Rounds)), "rounds")
	}
}

// writesOf is how much a schedule writes.
func writesOf(s *Schedule) (n int) {
	for _, r := range s.Rounds {
		n += len(r.Writes)
	}
	return n
}

// cpu is the time that the process has used on all cores.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
