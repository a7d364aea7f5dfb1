package device_test

import (
	"runtime"
	"testing"

	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// BenchmarkReadAdaptiveRoutes reads the tables of a simulated fabric of 11,664 hosts and 1,620
// switches, with adaptive routing and without: seconds, and the memory that is live afterwards.
func BenchmarkReadAdaptiveRoutes(b *testing.B) {
	for _, spec := range []string{"ar", "static"} {
		b.Run(spec, func(b *testing.B) {
			text := "pgft:m=18/18/36,w=1/18/18,p=1/1/1"
			if spec == "ar" {
				text += ",ar=updn"
			}
			topology, o, err := sim.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			conn, err := sim.New(topology, o).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				b.Fatal(err)
			}
			e := engine.New(conn, engine.Options{})
			defer e.Close()
			f, err := discover.Sweep(b.Context(), e, discover.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := device.ReadAdaptiveRoutes(b.Context(), e, f, nil); err != nil { // the subnet makes its tables
				b.Fatal(err)
			}
			for b.Loop() {
				r, _, err := device.ReadAdaptiveRoutes(b.Context(), e, f, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
				runtime.KeepAlive(r)
				b.StartTimer()
			}
		})
	}
}
