// Package exporter serves metrics to Prometheus. It reads by a clock of its own, and
// answers scrapes from what it has read last: no scrape reaches the fabric.
//
//	exporter.go  the cycles, and the last whole result
//	handler.go   the pages; own.go, metrics of the exporter itself
//	serve.go     addresses, limits, TLS and passwords
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

// page is a whole result as it goes out.
type page struct {
	plain  []byte
	read   time.Time // when it was
	packed func() []byte
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
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return nil, err
	}
	p.plain = b.Bytes()
	p.packed = sync.OnceValue(func() []byte { return pack(p.plain) })
	return p, nil
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

// pack compresses what is sent to those who take it so: a page once, whatever the
// number of scrapes.
func pack(plain []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(fmt.Sprintf("exporter: %v", err)) // the level is one
	}
	z.Write(plain) // to memory
	z.Close()
	return b.Bytes()
}
