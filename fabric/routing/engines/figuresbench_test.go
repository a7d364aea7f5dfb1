package engines

import (
	"math"
	"strings"
	"testing"
	"time"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// BenchmarkFigures prints, for each net and engine that OpenSM has tables for, ratios of ours to
// its own: of the largest load, and of bandwidths; the lanes of both, and the CPU times of
// the routing. The last of an engine has the geometric means and the worst of its loads and
// bandwidths. Bandwidths of OpenSM in another order of hosts are not compared.
func BenchmarkFigures(b *testing.B) {
	byEngine := map[string][]figure{}
	var engines []string
	for _, f := range readFigures(b, opensmFigures) {
		if byEngine[f.Engine] == nil {
			engines = append(engines, f.Engine)
		}
		byEngine[f.Engine] = append(byEngine[f.Engine], f)
	}
	graphs := map[string]*graph.Graph{}
	for _, engine := range engines {
		logs, worst, n := 0.0, 0.0, 0
		var shifts, halves means
		for _, theirs := range byEngine[engine] {
			if theirs.Result != "ok" {
				continue
			}
			b.Run(engine+"/"+strings.ReplaceAll(theirs.Net, "/", "x"), func(b *testing.B) {
				g := graphs[theirs.Net]
				if g == nil {
					var err error
					if g, err = graph.New(benchNet(b, theirs.Net), graph.BuildOptions{}); err != nil {
						b.Fatal(err)
					}
					graphs[theirs.Net] = g
				}
				before := routingtest.UsedTime(b)
				r := theirs.ours(b, g)
				for range b.N - 1 {
					r = theirs.ours(b, g)
				}
				used := (routingtest.UsedTime(b) - before) / time.Duration(b.N)
				var ours figure
				ours.measure(b, r)
				ratio := float64(ours.Largest) / float64(theirs.Largest)
				b.ReportMetric(ratio, "load/OpenSM")
				if theirs.Order == orderOfGUIDs {
					b.ReportMetric(shifts.add(ours.Shift/theirs.Shift), "shift/OpenSM")
					b.ReportMetric(halves.add(ours.Bisection/theirs.Bisection), "bisection/OpenSM")
				}
				b.ReportMetric(float64(r.Lanes()), "lanes")
				b.ReportMetric(float64(theirs.Lanes), "OpenSM-lanes")
				b.ReportMetric(used.Seconds()*1e3, "cpu-ms")
				b.ReportMetric(float64(theirs.CPU), "OpenSM-cpu-ms")
				logs, worst, n = logs+math.Log(ratio), max(worst, ratio), n+1
			})
		}
		b.Run(engine+"/all", func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(math.Exp(logs/float64(max(n, 1))), "load-mean/OpenSM")
			b.ReportMetric(worst, "load-worst/OpenSM")
			shifts.report(b, "shift")
			halves.report(b, "bisection")
		})
	}
}

// means are those of ratios.
type means struct {
	logs, least float64
	n           int
}

// add adds a ratio, and returns it.
func (m *means) add(x float64) float64 {
	if m.n == 0 || x < m.least {
		m.least = x
	}
	m.logs, m.n = m.logs+math.Log(x), m.n+1
	return x
}

// mean is the geometric mean; 1: of none.
func (m *means) mean() float64 { return math.Exp(m.logs / float64(max(m.n, 1))) }

// report reports the geometric mean and the least of ratios to OpenSM, if there are any.
func (m *means) report(b *testing.B, what string) {
	if m.n > 0 {
		b.ReportMetric(m.mean(), what+"-mean/OpenSM")
		b.ReportMetric(m.least, what+"-worst/OpenSM")
	}
}
