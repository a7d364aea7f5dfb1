package sim

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// BenchmarkMAD measures a request and its answer, without an engine.
func BenchmarkMAD(b *testing.B) {
	f, o := mustParse(b, "fattree:k=8,levels=3")
	s := New(f, o)
	t, err := s.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 0)
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	far := f.OfType(mad.NodeTypeCA)[127].LID() // 0 in the fabric, which is not up
	if far == 0 {
		far = mad.LID(len(f.Nodes()))
	}
	route := mad.DirectedRoute{0, 1, 5, 5, 8, 4, 4} // to the farthest host
	for _, bench := range []struct {
		name  string
		write func(c *engine.Call)
	}{
		{"NodeInfo, 6 hops", func(c *engine.Call) {
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(route)
		}},
		{"PortInfo, 6 hops", func(c *engine.Call) {
			c.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 1, nil)
			c.SetRoute(route)
		}},
		{"PortInfo, by LID", func(c *engine.Call) {
			c.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 1, nil)
			c.SetLID(far)
		}},
		{"PortCounters", func(c *engine.Call) {
			c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 1})
			c.SetLID(far)
		}},
		{"PathRecord", func(c *engine.Call) {
			q := mad.PathRecord{SLID: s.state.SM.LID, DLID: far}
			var data [200]byte
			q.Encode(data[:])
			c.PutSA(mad.MethodGet, mad.AttrPathRecord.ID, 0, pathSLIDMask|pathDLIDMask, data[:])
			c.SetLID(s.state.SM.LID)
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var c engine.Call
			bench.write(&c)
			d := engine.Datagram{Address: c.To, MAD: c.MAD[:]}
			answer := engine.Datagram{MAD: make([]byte, mad.Size)}
			b.ReportAllocs()
			for b.Loop() {
				if err := t.Send(&d); err != nil {
					b.Fatal(err)
				}
				if err := t.Recv(&answer); err != nil {
					b.Fatal(err)
				}
			}
			if h := mad.ParseHeader(answer.MAD); h.Status != 0 {
				b.Fatalf("status %v", h.Status)
			}
		})
	}
}

// BenchmarkStart measures the way from a spec to a subnet that is up.
func BenchmarkStart(b *testing.B) {
	for _, spec := range []string{"ring:n=2", "fattree:k=8,levels=3", "fattree:k=36,levels=3", "pgft:m=30/30/50,w=1/30/30,p=1/1/1"} {
		b.Run(spec, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, o := mustParse(b, spec)
				New(f, o)
			}
		})
	}
}

// BenchmarkBringUp measures New alone, and then the tables, which the first who needs
// one waits for.
func BenchmarkBringUp(b *testing.B) {
	for _, spec := range []string{"fattree:k=36,levels=3", "pgft:m=30/30/50,w=1/30/30,p=1/1/1"} {
		var f *fabric.Fabric
		f, o := mustParse(b, spec)
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				New(f, o)
			}
		})
		b.Run(spec+", tables", func(b *testing.B) {
			for b.Loop() {
				New(f, o).state.EnsureTables()
			}
		})
	}
}

// BenchmarkTable is a table of 104,976 PathRecords, found, cut into 33,593
// segments, joined: over an engine, both ends in process.
func BenchmarkTable(b *testing.B) {
	f, o := mustParse(b, "fattree:k=24,levels=2")
	s := New(f, o)
	t, err := s.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 0)
	if err != nil {
		b.Fatal(err)
	}
	e := engine.New(t, engine.Options{})
	defer e.Close()
	b.ReportAllocs()
	for b.Loop() {
		var c engine.Call
		c.PutSA(mad.MethodGetTable, mad.AttrPathRecord.ID, 0, 0, nil)
		c.SetLID(s.state.SM.LID)
		if e.Do(b.Context(), &c); c.Err != nil || len(c.Table) != 104976*mad.AttrPathRecord.Size {
			b.Fatalf("%d bytes, %v", len(c.Table), c.Err)
		}
	}
}

// BenchmarkAdaptiveLFT: the tables of 1,620 switches and 11,664 hosts, computed and read by
// blocks of 16 LIDs: 1.3 million of them.
func BenchmarkAdaptiveLFT(b *testing.B) {
	f, o := mustParse(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1,ar=updn")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := New(f, o)
	b.Run("compute", func(b *testing.B) {
		for b.Loop() {
			s.state.InvalidateTables()
			s.state.EnsureTables()
		}
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Logf("%d MB", (after.HeapAlloc-before.HeapAlloc)>>20)
	b.Run("blocks", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n = 0
			var data [state.SMPSize]byte
			for i := range s.state.Nodes {
				if sw := &s.state.Nodes[i]; sw.IsSwitch {
					for block := range uint32(len(sw.LFT) / 16) {
						agent.GetAdaptiveLFT(sw, block, data[:])
						n++
					}
				}
			}
		}
		b.ReportMetric(float64(n), "blocks")
	})
}

// BenchmarkLoss asks 50,000 questions of a subnet that loses 20 % of all MADs
// each way, through the congestion window and through one that is fixed. They
// take turns.
func BenchmarkLoss(b *testing.B) {
	const questions = 50000
	ask := func(fixed bool) time.Duration {
		r := newRig(b, "fattree:k=8,levels=3,loss=0.2")
		t, err := r.Attach(r.Fabric.OfType(mad.NodeTypeCA)[0].ID(), 0)
		if err != nil {
			b.Fatal(err)
		}
		e := engine.New(t, engine.Options{Window: 256, FixedWindow: fixed, Timeout: 20 * time.Millisecond, Retries: 25})
		defer e.Close()
		calls := make([]*engine.Call, questions)
		for i := range calls {
			calls[i] = new(engine.Call)
			calls[i].PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			calls[i].SetLID(mad.LID(1 + i%len(r.Fabric.Nodes())))
		}
		start := time.Now()
		e.Do(b.Context(), calls...)
		took := time.Since(start)
		for _, c := range calls {
			if c.Err != nil {
				b.Fatal(c.Err)
			}
		}
		if testing.Verbose() {
			b.Logf("%v %v %+v", fixed, took, e.Stats().SMP)
		}
		return took
	}
	var ratios []float64
	var ours, theirs time.Duration
	for b.Loop() {
		o, f := ask(false), ask(true)
		ours, theirs = ours+o, theirs+f
		ratios = append(ratios, 100*o.Seconds()/f.Seconds())
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "window-sec")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "fixed-sec")
	b.ReportMetric(100*ours.Seconds()/theirs.Seconds(), "%of-fixed")
	b.ReportMetric(slices.Max(ratios), "%of-fixed-at-most")
	b.ReportMetric(0, "ns/op") // of both: of no use
}
