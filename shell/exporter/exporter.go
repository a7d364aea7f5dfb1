// Package exporter serves metrics to Prometheus. It reads the fabric periodically, and
// answers scrapes from the last complete result: no scrape reaches the fabric.
//
//	exporter.go  the cycles, and the last complete result
//	page.go      a page, made once per cycle, while it is sent
//	handler.go   the addresses of pages; own.go, metrics of the exporter itself
//	serve.go     addresses, limits, TLS and passwords; peer.go, limits of one peer
package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

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
	// Families and Nonzero are those of export.Selection, for all pages.
	Families []string
	Nonzero  bool
	// Version is the version of the program, for the metric fabsh_build_info.
	Version string

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

// report logs the result of a cycle, once as long as it stays the same.
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
