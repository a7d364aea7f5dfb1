package history_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// BenchmarkRecord is the cost of a cycle at 11,664 hosts beyond the sweep: with counters of all ports, of
// which 521 grow, and traffic.
func BenchmarkRecord(b *testing.B) {
	spec := "fattree:k=36,levels=3"
	if os.Getenv("FABSH_SMALL") != "" {
		spec = "fattree:k=8"
	}
	f, _, err := sim.Parse(spec)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	r, err := history.NewRecorder(b.Context(), filepath.Join(b.TempDir(), history.FileName), fabric.SubnetOf(f, ""), now)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	read := newReads(f)
	cycle := func() history.Cycle {
		now = now.Add(5 * time.Minute)
		return history.Cycle{Time: now, Every: 5 * time.Minute, Source: "test", Fabric: f, Counters: read(now, 521), Traffic: true}
	}
	record := func(c history.Cycle) {
		if _, err := r.Record(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	record(cycle())
	record(cycle())
	b.Log(f, len(f.Ports()), read(now, 0).Len())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		c := cycle()
		cpu := cpuTime()
		b.StartTimer()
		record(c)
		b.StopTimer()
		used += cpuTime() - cpu
		b.StartTimer()
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MB/op")
}

var used time.Duration

// TestDayOfCycles reports what two days of a full subnet take: traffic of which 1 of 12 ports changes each hour,
// and 521 counters that grow in a cycle at 1050 ports.
func TestDayOfCycles(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("takes minutes; set FABSH_SOAK")
	}
	f, _, err := sim.Parse("fattree:k=36,levels=3")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), history.FileName)
	r, err := history.NewRecorder(t.Context(), path, fabric.SubnetOf(f, ""), now)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 1))
	m := &meters{map[audit.PortKey]*[3]uint64{}, nil}
	rates := make([]float64, len(f.Ports()))
	size := func() int64 {
		o, err := r.Overview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o.Bytes
	}
	var begin int64
	var cpu, worst time.Duration
	cycles := 0
	for i := range 288 + 14 {
		now = now.Add(5 * time.Minute)
		if i == 2 {
			begin = size()
		}
		for j := range rates {
			if i%12 == 0 && (i == 0 || random.IntN(12) == 0) {
				rates[j] = math.Exp(random.NormFloat64()*2 + 18)
			}
			v := m.of(&f.Ports()[j])
			v[2] += uint64(rates[j] * (0.9 + 0.2*random.Float64()) * 75)
			if j%68 == 0 && random.IntN(2) == 0 {
				v[0]++
			}
		}
		c := history.Cycle{Time: now, Every: 5 * time.Minute, Fabric: f, Counters: m.read(f, now), Traffic: true}
		before := cpuTime()
		if _, err := r.Record(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if d := cpuTime() - before; i > 2 {
			cpu, worst, cycles = cpu+d, max(worst, d), cycles+1
		}
	}
	tiles, rows := 0, 0
	for _, row := range r.Rows(t, "tile", "") {
		tiles += len(row[3].([]byte))
	}
	for _, name := range []string{"err5", "err60", "err_day"} {
		rows += len(r.Rows(t, name, ""))
	}
	t.Logf("a cycle: %v of CPU, at most %v; a day: %d kB, of which tiles %d kB, and %d rows of errors", cpu/time.Duration(cycles), worst, (size()-begin)>>10, tiles>>10, rows)
}

// newReads returns a function that makes reads of the counters of all ports with a link, each later than the
// one before; at some of them, errors grow.
func newReads(f *fabric.Fabric) func(now time.Time, grow int) *audit.Read {
	info := &mad.ClassPortInfo{CapabilityMask: uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported | mad.PerfCapabilityMaskPortCountersXmitWaitSupported)}
	n := uint64(0)
	errors := map[int]uint64{}
	return func(now time.Time, grow int) *audit.Read {
		n++
		a := audit.NewAnswers(now, len(f.Ports()))
		base, wide := make([]byte, mad.AttrPortCounters.Size), make([]byte, mad.AttrPortCountersExtended.Size)
		at := 0
		for i := range f.Ports() {
			p := &f.Ports()[i]
			key, ok := audit.KeyOf(p)
			if !ok || p.Peer() == nil {
				continue
			}
			if at%131 == int(n)%7 && grow > 0 {
				errors[i]++
				grow--
			}
			mad.AttrPortCounters.Field("symbol_error_counter").SetUint(base, errors[i])
			mad.AttrPortCounters.Field("port_xmit_wait").SetUint(base, n*uint64(at%97))
			mad.AttrPortCountersExtended.Field("port_xmit_data").SetUint(wide, n*uint64(1+at%1013)*1e6)
			j := a.AddPort(key, p.Node().GUID(), 0)
			a.Answered(j, 0, info, nil, base, now)
			a.Answered(j, 1, info, nil, wide, now)
			at++
		}
		_, read := a.Read()
		return read
	}
}
