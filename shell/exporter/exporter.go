// Package exporter serves metrics to Prometheus. It reads by a clock of its own, and
// answers scrapes from what it has read last: no scrape reaches the fabric.
//
//	exporter.go  the cycles, and the last whole result
//	handler.go   the pages; own.go, metrics of the exporter itself
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
)

// Exporter reads again and again, and serves what it has read.
type Exporter struct {
	// Every is how long after one cycle begins the next one does. Where one takes
	// longer, those that it covers are left out.
	Every time.Duration
	// Cycle reads once, and gives what is to be written of it: a whole result. The
	// error says why there is none; then the last one stands. A LostError is
	// tried again sooner, any other in the next period.
	Cycle func(ctx context.Context) (Result, error)
	// Ends: the error of a cycle is the end of all. Nil: none is.
	Ends func(error) bool
	// Tell is told what people should know. What lasts is told once.
	Tell func(text string)
	// Version is the program's, for the metric fabsh_build_info.
	Version string

	last  atomic.Pointer[page]
	gate  gate
	mu    sync.Mutex // guards count
	count counts
	told  string
}

// Result is what a cycle has read.
type Result interface{ Write(w io.Writer) error }

// LostError: the connection to the fabric is gone, or cannot be opened.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// counts are what the exporter tells of itself.
type counts struct {
	whole, failed, left uint64 // cycles
	took                time.Duration
}

// page is a whole result, compressed: of 11,664 hosts 10 MB instead of 280, and as
// most scrapes want it.
type page struct {
	packed []byte
	size   int64     // before it was compressed, in bytes
	read   time.Time // when it was
}

// The first pause before a lost connection is tried again, and the longest.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// Run reads until ctx ends, and returns its cause; or the error of a cycle that ends
// all.
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
		e.tell(err)
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

// cycle reads once. Its result takes the place of the last one when it is whole.
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
		e.Tell(fmt.Sprintf("ready: the first result took %v", took.Round(time.Millisecond)))
	}
	return err
}

func (e *Exporter) read(ctx context.Context) (*page, error) {
	r, err := e.Cycle(ctx)
	if err != nil {
		return nil, err
	}
	p := &page{read: time.Now()}
	p.packed, err = pack(func(w io.Writer) error { return r.Write(&counter{w, &p.size}) })
	return p, err
}

// counter counts what is written to w.
type counter struct {
	w io.Writer
	n *int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	*c.n += int64(n)
	return n, err
}

func (e *Exporter) counted(change func(*counts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.count)
}

// tell tells what has become of a cycle, once while it stays so.
func (e *Exporter) tell(err error) {
	text := ""
	if err != nil {
		text = "no new result: " + err.Error()
		if e.last.Load() != nil {
			text += "; the last one stands"
		}
	}
	if text == e.told {
		return
	}
	if e.told = text; text == "" {
		text = "all is well again"
	}
	e.Tell(text)
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
