package history_test

import (
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
