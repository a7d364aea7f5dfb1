package exporter

import (
	"bytes"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"fabsh/fabric/export"
)

// own returns the metrics of the exporter itself. last may be nil.
func (e *Exporter) own(last *pages) ([]byte, error) {
	e.mu.Lock()
	c := e.count
	e.mu.Unlock()
	var s export.MetricSet
	gauge := func(name, help string, v float64) { s.Add(name, export.Gauge, help, s.Labels(), v) }
	if last != nil {
		gauge("fabsh_exporter_result_age_seconds", "Age of the data read from the fabric", time.Since(last.read).Seconds())
	}
	if c.whole+c.failed > 0 {
		gauge("fabsh_exporter_cycle_duration_seconds", "Duration of the latest cycle", c.took.Seconds())
	}
	gauge("fabsh_exporter_period_seconds", "Time between the starts of two cycles", e.Every.Seconds())
	const cycles = "Cycles that had a complete result, that failed, and that were left out because one took longer than a period"
	for _, x := range []struct {
		outcome string
		n       uint64
	}{{"failed", c.failed}, {"left_out", c.left}, {"whole", c.whole}} {
		s.Add("fabsh_exporter_cycles_total", export.Counter, cycles, s.Labels("outcome", x.outcome), float64(x.n))
	}
	s.Add("fabsh_exporter_scrapes_refused_total", export.Counter, "Scrapes refused because there were too many at once", s.Labels(), float64(e.gate.refused.Load()))
	const scrapes = "Scrapes by HTTP status: 503 is a refusal, as in fabsh_exporter_scrapes_refused_total"
	s.Add("promhttp_metric_handler_requests_total", export.Counter, scrapes, s.Labels("code", "200"), float64(e.gate.answered.Load()))
	s.Add("promhttp_metric_handler_requests_total", export.Counter, scrapes, s.Labels("code", "503"), float64(e.gate.refused.Load()))
	s.Add("fabsh_build_info", export.Gauge, "1: the program runs", s.Labels("version", e.Version), 1)
	s.Add("infiniband_exporter_build_info", export.Gauge, "1: the program runs; by SckyzO's name for its own", s.Labels("version", e.Version, "goversion", runtime.Version()), 1)
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		return nil, err
	}
	families, err := process().Gather()
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// process returns the process metrics that all exporters have: process_* and go_*.
var process = sync.OnceValue(func() prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return r
})
