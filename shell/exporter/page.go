package exporter

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"fabsh/fabric/export"
)

// pages are the pages of a complete result. Each is made when it is first requested, and kept
// until the next result.
type pages struct {
	result Result
	read   time.Time // when it was read

	mu    sync.Mutex // guards the fields below
	byKey map[string]*page
	size  int // of all pages, in bytes
}

// Limits of the pages of one result: how many, and of how many bytes. They are for 64 shards
// and as many selections, and for a subnet of 48k LIDs twice.
const (
	maxPages     = 2 * export.MaxShards
	maxPageBytes = 96 << 20
)

var errPages = errors.New("too many different pages were requested of this cycle; use fewer selections, or wait for the next cycle")

// page is compressed metrics, which grow while they are made: readers follow.
type page struct {
	all *pages

	mu    sync.Mutex // guards the fields below
	grown *sync.Cond
	data  [][]byte // pieces of pieceSize bytes, the last one shorter
	n     int      // bytes in data
	size  int64    // before compression, in bytes
	done  bool
	err   error
}

// page returns the page of a selection, and begins to make it if it is new. own limits how
// many are made at a time.
func (p *pages) page(s *export.Selection, render chan struct{}) (*page, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := s.Key()
	if one, ok := p.byKey[key]; ok {
		return one, nil
	}
	if len(p.byKey) >= maxPages || p.size >= maxPageBytes {
		return nil, errPages
	}
	one := &page{all: p}
	one.grown = sync.NewCond(&one.mu)
	p.byKey[key] = one
	go func() {
		render <- struct{}{}
		defer func() { <-render }()
		one.make(func(w io.Writer) error { return p.result.Write(w, s) })
	}()
	return one, nil
}

// make makes the page of what write writes.
func (p *page) make(write func(io.Writer) error) {
	err := fmt.Errorf("making the page failed")
	var size int64
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.size, p.done, p.err = size, true, err
		p.grown.Broadcast()
	}()
	z, err2 := gzip.NewWriterLevel(p, gzip.BestSpeed)
	if err = err2; err == nil {
		err = errors.Join(write(&counter{z, &size}), z.Close())
	}
}

// Write appends to the page.
func (p *page) Write(b []byte) (int, error) {
	p.all.mu.Lock()
	p.all.size += len(b)
	p.all.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for rest := b; len(rest) > 0; {
		if p.n%pieceSize == 0 {
			p.data = append(p.data, make([]byte, 0, pieceSize))
		}
		last := &p.data[len(p.data)-1]
		m := min(len(rest), pieceSize-len(*last))
		*last = append(*last, rest[:m]...)
		p.n, rest = p.n+m, rest[m:]
	}
	p.grown.Broadcast()
	return len(b), nil
}

// length is how long a page is, compressed and not; false while it is made.
func (p *page) length() (packed, size int64, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.n), p.size, p.done && p.err == nil
}

// pageReader reads a page from its beginning, and waits for more while it is made.
type pageReader struct {
	page *page
	at   int
}

func (r *pageReader) Read(b []byte) (int, error) {
	p := r.page
	p.mu.Lock()
	defer p.mu.Unlock()
	for r.at == p.n && !p.done {
		p.grown.Wait()
	}
	if r.at == p.n {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(b, p.data[r.at/pieceSize][r.at%pieceSize:])
	r.at += n
	return n, nil
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
