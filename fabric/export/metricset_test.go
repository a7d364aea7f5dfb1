package export

import (
	"io"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"fabsh/fabric/sim"
)

// TestSet: metrics by name, values by labels, whatever the order in which they
// came; one value of several with equal labels.
func TestSet(t *testing.T) {
	var s MetricSet
	s.Add("b", Gauge, "", s.Labels("port", "2"), 2.5)
	s.Add("b", Gauge, "", s.Labels("port", "1"), math.Inf(1))
	s.Add("b", Gauge, "", s.Labels("port", "2"), 7)
	s.Add("a_total", Counter, "of a", s.Labels(), 1<<52)
	s.Common("rail", "x")
	s.Add("b", Gauge, "", s.Labels("port", "1"), math.NaN())
	s.Common("rail", "")
	s.Add("c", Untyped, "", s.Labels(), -1e300)
	const want = `# HELP a_total of a
# TYPE a_total counter
a_total 4503599627370496
# TYPE b gauge
b{port="1"} +Inf
b{port="2"} 2.5
b{rail="x",port="1"} NaN
# TYPE c untyped
c -1e+300
`
	for range 2 { // writing changes nothing
		var b strings.Builder
		if err := s.Write(&b); err != nil || b.String() != want {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
		}
	}
	if err := s.AddOnce("b", Gauge, "", s.Labels("port", "2"), 2.5); err != nil {
		t.Error(err)
	}
	if err := s.AddOnce("b", Gauge, "", s.Labels("port", "1"), 3); err == nil {
		t.Error("two values with the same labels")
	}
}

// FuzzSet: Prometheus's own parser reads back the given texts, except what
// no label can hold.
func FuzzSet(f *testing.F) {
	f.Add("node-1 HCA-1", "help", 1.5)
	f.Add("a\nb\\n\"c\"", "a\nb\\n\"c\"", 2.0)
	f.Add("a\"b\\n\\\nc\x1b[2J\xff\u202e", "x\"\\\n# TYPE y counter\r\x00", math.Inf(-1))
	f.Fuzz(func(t *testing.T, text, help string, v float64) {
		var s MetricSet
		s.Add("x", Gauge, help, s.Labels("l", text), v)
		var b strings.Builder
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		p := expfmt.NewTextParser(model.LegacyValidation)
		m, err := p.TextToMetricFamilies(strings.NewReader(b.String()))
		if err != nil || len(m) != 1 || len(m["x"].Metric) != 1 {
			t.Fatalf("%v, %d metrics in %q", err, len(m), b.String())
		}
		got := m["x"].Metric[0]
		if x := got.GetGauge().GetValue(); x != v && !(math.IsNaN(x) && math.IsNaN(v)) {
			t.Errorf("got %v, want %v", x, v)
		}
		if l := got.Label[0].GetValue(); text == strings.ToValidUTF8(text, "") && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) && l != text {
			t.Errorf("got label %q, want %q", l, text)
		} else if strings.ContainsAny(strings.ReplaceAll(l, "\n", ""), "\x00\x1b\r\u202e") {
			t.Errorf("label %q has control characters", l)
		}
	})
}

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
