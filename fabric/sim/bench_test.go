package sim

import (
	"testing"

	"fabsh/fabric"
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
