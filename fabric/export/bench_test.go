package export

import (
	"io"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric/sim"
)

// BenchmarkProm writes the metrics of 11,664 hosts and their switches, all
// counters of all ports.
func BenchmarkProm(b *testing.B) {
	f, _, err := sim.Parse("fattree:k=36,levels=3")
	if err != nil {
		b.Fatal(err)
	}
	ports := benchPorts(f)
	for _, d := range []Dialect{SckyzO, Treydock, Guilbaults} {
		b.Run("dialect="+string(d), func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				var s MetricSet
				d.Fabric(&s, f)
				d.Counters(&s, ports)
				if err := s.Write(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime(b)-before).Seconds()/float64(b.N), "cpu-sec/op")
		})
	}
}

// processorTime is what this process has used, garbage collection included.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
