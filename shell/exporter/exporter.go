// Package exporter serves metrics to Prometheus. It reads the fabric periodically, and
// answers scrapes from the last complete result: no scrape reaches the fabric.
package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"fabsh/fabric/export"
)

// Exporter reads the fabric in cycles, and serves the last result.
type Exporter struct {
	// Every is the time between the starts of two cycles. Periods that a long cycle
	// covers are left out.
	Every time.Duration
	// Cycle reads once, and returns a complete result. With an error, the last result
	// stays. A LostError is retried early, any other error in the next period.
	Cycle func(ctx context.Context) (Result, error)
	// Ends reports whether the error of a cycle ends the exporter; nil: no error does.
	Ends func(error) bool
	// Log is called with messages for the user. A lasting state is reported once.
	Log func(text string)
	// Families and Nonzero are as in export.Selection, for all pages.
	Families []string
	Nonzero  bool
	// Version is the version of the program, for the metric fabsh_build_info.
	Version string
	// Pages answers all requests but those of metrics and of the state of the exporter; nil: a page that
	// links to these. MaxBody is how many bytes the body of a request may have.
	Pages   http.Handler
	MaxBody int64
	// Knows reports whether browsers may use a host name for the server; nil: any. Metrics at a loopback
	// address, to which a page of another site can let its own name lead, are refused by other names.
	Knows func(host string) bool

	last   atomic.Pointer[pages]
	render chan struct{} // held while a page is made
	once   sync.Once     // makes render
	gate   gate
	mu     sync.Mutex // guards the fields below
	count  counts
	logged string
}

// Result is the result of a cycle. Write writes a part of its metrics; it is called while
// later cycles run, and several times.
type Result interface {
	Write(w io.Writer, s *export.Selection) error
}

// LostError reports that the connection to the fabric is lost, or cannot be opened.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// counts are metrics of the exporter itself.
type counts struct {
	whole, failed, left uint64 // cycles
	took                time.Duration
}

// The first pause before a lost connection is tried again, and the longest.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// Run runs cycles until ctx ends, and returns its cause; or the error of a cycle that
// ends the exporter.
func (e *Exporter) Run(ctx context.Context) error {
	next, pause := time.Now(), firstPause
	for {
		err := e.cycle(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && e.Ends != nil && e.Ends(err) {
			return err
		}
		e.report(err)
		var lost *LostError
		wait := pause
		if errors.As(err, &lost) {
			pause = min(2*pause, maxPause)
			next = time.Now().Add(wait)
		} else {
			pause = firstPause
			if next = next.Add(e.Every); time.Until(next) < 0 {
				left := (-time.Until(next) + e.Every - 1) / e.Every
				next = next.Add(left * e.Every)
				e.counted(func(c *counts) { c.left += uint64(left) })
			}
			wait = time.Until(next)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// cycle reads once. A complete result replaces the last one.
func (e *Exporter) cycle(ctx context.Context) error {
	began := time.Now()
	p, err := e.read(ctx)
	took := time.Since(began)
	e.counted(func(c *counts) {
		c.took = took
		if err == nil {
			c.whole++
		} else {
			c.failed++
		}
	})
	if err == nil && e.last.Swap(p) == nil {
		e.Log(fmt.Sprintf("ready: the first result took %v", took.Round(time.Millisecond)))
	}
	return err
}

func (e *Exporter) read(ctx context.Context) (*pages, error) {
	r, err := e.Cycle(ctx)
	if err != nil {
		return nil, err
	}
	reserved := e.last.Load().toReserve(&export.Selection{Families: e.Families, Nonzero: e.Nonzero})
	return &pages{result: r, read: time.Now(), reserved: reserved, byKey: map[string]*page{}, made: map[string]int{}}, nil
}

func (e *Exporter) counted(change func(*counts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.count)
}

// report logs the result of a cycle, once as long as it does not change.
func (e *Exporter) report(err error) {
	text := ""
	if err != nil {
		text = "no new result: " + err.Error()
		if e.last.Load() != nil {
			text += "; serving the last result"
		}
	}
	if text == e.logged {
		return
	}
	if e.logged = text; text == "" {
		text = "readings succeed again"
	}
	e.Log(text)
}

// pack compresses what write writes.
func pack(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	err = errors.Join(write(z), z.Close())
	return b.Bytes(), err
}

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
