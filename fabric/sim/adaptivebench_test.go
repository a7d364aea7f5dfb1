package sim

import (
	"runtime"
	"testing"

	"fabsh/fabric/sim/agent"
	"fabsh/fabric/sim/state"
)

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
