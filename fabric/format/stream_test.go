package format_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// tablesOf are tables that mean nothing, but have a port for every LID.
func tablesOf(t testing.TB, spec string) (*fabric.Fabric, rows) {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := format.Dump(&b, f, "ibnetdiscover"); err != nil { // gets LIDs
		t.Fatal(err)
	}
	if f, err = format.Load(&b, "net", nil); err != nil {
		t.Fatal(err)
	}
	r := rows{}
	row := r.of(f)
	for i := range f.OfType(mad.NodeTypeSwitch) {
		n := &f.Nodes()[i]
		for lid := range row(n) {
			r[n][lid] = byte((lid + i) % n.NumPorts())
		}
	}
	return f, r
}

// TestStreaming: reading tables takes no more memory for 20 MB than for none,
// beyond what they are read into.
func TestStreaming(t *testing.T) {
	f, tables := tablesOf(t, "pgft:m=8/8/8,w=1/8/8,p=1/1/1") // 512 hosts
	var dump bytes.Buffer
	if err := format.WriteLFTs(&dump, f, tables.get); err != nil {
		t.Fatal(err)
	}
	const size = 20 << 20
	var readers []io.Reader
	total := 0
	for ; total < size; total += dump.Len() {
		readers = append(readers, bytes.NewReader(dump.Bytes()))
	}
	row := tables.of(f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := format.ReadLFTs(io.MultiReader(readers...), "lfts", f, row); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	const limit = 4 << 20
	if got := after.TotalAlloc - before.TotalAlloc; got > limit {
		t.Errorf("%d bytes of memory for a dump of %d", got, total)
	}
}

// BenchmarkLFTs reads and writes the tables of 1,728 hosts and 432 switches.
func BenchmarkLFTs(b *testing.B) {
	f, tables := tablesOf(b, "pgft:m=12/12/12,w=1/12/12,p=1/1/1")
	hops := func(_ *fabric.Node, _ mad.LID, hops []byte) bool { return true }
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"lfts", func(w io.Writer) error { return format.WriteLFTs(w, f, tables.get) }},
		{"fdbs", func(w io.Writer) error { return format.WriteFDBs(w, f, tables.get, hops) }},
	} {
		var text bytes.Buffer
		if err := c.write(&text); err != nil {
			b.Fatal(err)
		}
		b.Run("format="+c.name+"/do=read", func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			row := tables.of(f)
			for b.Loop() {
				if _, err := format.ReadLFTs(bytes.NewReader(text.Bytes()), "x", f, row); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("format="+c.name+"/do=write", func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if err := c.write(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSnapshot saves and loads 11,664 hosts and 1,620 switches with their
// tables.
func BenchmarkSnapshot(b *testing.B) {
	f, tables := tablesOf(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	lfts := make([][]byte, len(f.Nodes()))
	for n, row := range tables {
		lfts[n.ID()] = row
	}
	s := f.With(fabric.Reading{LFTs: lfts})
	data := writeSnapshot(b, s)
	b.Run("do=write", func(b *testing.B) {
		b.ReportMetric(float64(len(data)), "file-bytes")
		for b.Loop() {
			if err := format.WriteSnapshot(io.Discard, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("do=read", func(b *testing.B) {
		for b.Loop() {
			if _, err := format.ReadSnapshot(bytes.NewReader(data), "x"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSubnet reads and writes the opensm-subnet.lst of 11,664 hosts.
func BenchmarkSubnet(b *testing.B) {
	f, _, err := sim.Parse("pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	if err := format.Dump(&text, f, "opensm-subnet"); err != nil {
		b.Fatal(err)
	}
	for _, do := range []string{"read", "write"} {
		b.Run(fmt.Sprintf("do=%s", do), func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				var err error
				if do == "read" {
					_, err = format.Load(bytes.NewReader(text.Bytes()), "x", nil)
				} else {
					err = format.Dump(io.Discard, f, "opensm-subnet")
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
