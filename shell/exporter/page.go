package exporter

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"fabsh/fabric"
	"fabsh/fabric/export"
)

// pages are the pages of a complete result. Each is made when it is first requested, and kept
// until the next result, or until others need its place.
type pages struct {
	result Result
	read   time.Time // when it was read
	// reserved are the whole page, and the pages requested of the result before. They are made
	// for any peer, and evicted last, so that no client takes the place of regular scrapes.
	reserved map[string]bool

	mu    sync.Mutex // guards the fields below
	byKey map[string]*page
	made  map[string]int // by peer: other pages made for it
	uses  int            // requests so far
	size  int            // of all pages, in bytes
}

// Limits of the pages of one result: how many, and of how many bytes; and how many are made
// for one peer, besides the reserved ones. They are for 64 shards and as many selections, and
// for a subnet of 48k LIDs twice.
const (
	maxPages     = 2 * export.MaxShards
	maxPageBytes = 96 << 20
	peerPages    = maxPages / 2
)

var errPages = fmt.Errorf("more than %d new selections from one address in this cycle; use fewer selections, or wait for the next cycle", peerPages)

// page is compressed metrics, which grow while they are made: readers follow.
type page struct {
	all     *pages
	used    int  // guarded by all.mu: the last request, as a number of pages.uses
	counted int  // guarded by all.mu: its bytes in pages.size
	evicted bool // guarded by all.mu: no more bytes are counted

	mu    sync.Mutex // guards the fields below
	grown *sync.Cond
	data  [][]byte // pieces of pieceSize bytes, the last one shorter
	n     int      // bytes in data
	size  int64    // before compression, in bytes
	done  bool
	err   error
}

// page returns the page of a selection for a peer, and begins to make it if it is new, or has
// failed. render limits how many are made at a time.
func (p *pages) page(s *export.Selection, peer string, render chan struct{}) (*page, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
	key := s.Key()
	one, exists := p.byKey[key]
	if exists && !one.failed() {
		one.used = p.uses
		return one, nil
	}
	if !p.reserved[key] {
		if p.made[peer] >= peerPages {
			return nil, errPages
		}
		p.made[peer]++
	}
	if exists {
		p.evict(key)
	}
	for len(p.byKey) >= maxPages || p.size >= maxPageBytes && len(p.byKey) > 0 {
		p.evict(p.leastUsed())
	}
	one = &page{all: p, used: p.uses}
	one.grown = sync.NewCond(&one.mu)
	p.byKey[key] = one
	go func() {
		render <- struct{}{}
		defer func() { <-render }()
		one.make(func(w io.Writer) error { return p.result.Write(w, s) })
	}()
	return one, nil
}

// leastUsed returns the key of the page that was not requested for the longest time, of those
// that are not reserved, or else of all.
func (p *pages) leastUsed() (key string) {
	for k, one := range p.byKey {
		last := p.byKey[key]
		if last == nil || p.reserved[k] != p.reserved[key] && p.reserved[key] || p.reserved[k] == p.reserved[key] && one.used < last.used {
			key = k
		}
	}
	return key
}

// evict removes a page. Who reads it reads on.
func (p *pages) evict(key string) {
	one := p.byKey[key]
	delete(p.byKey, key)
	p.size -= one.counted
	one.evicted = true
}

// toReserve returns the keys of the pages, and of the whole one, for the next result.
func (p *pages) toReserve(whole *export.Selection) map[string]bool {
	keys := map[string]bool{whole.Key(): true}
	if p == nil {
		return keys
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.byKey {
		keys[key] = true
	}
	return keys
}

// make makes the page of what write writes. A panic is an error of this page only.
func (p *page) make(write func(io.Writer) error) {
	var err error
	var size int64
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("making the page: internal error: %v", v)
		}
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

// failed reports whether the page was made with an error.
func (p *page) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// Write appends to the page.
func (p *page) Write(b []byte) (int, error) {
	p.all.mu.Lock()
	if !p.evicted {
		p.counted += len(b)
		p.all.size += len(b)
	}
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

// maxScrapes is the number of scrapes answered at once; others get status 503. An
// answer is cheap: it is ready.
const maxScrapes = 128

// gate admits maxScrapes at once, peerScrapes of them from one peer, and counts those
// that it admits and refuses.
type gate struct {
	slots
	refused, answered atomic.Int64
}

// contentType is the text format that fabric/export writes.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler serves /metrics, /-/healthy, /-/ready, and a page that links to them.
func (e *Exporter) Handler() (http.Handler, error) {
	mux := http.NewServeMux()
	if e.Pages != nil {
		mux.Handle("/", e.Pages)
		e.handle(mux)
		return e.named(mux), nil
	}
	front, err := web.NewLandingPage(web.LandingConfig{
		Name:        "fabsh exporter",
		Description: "Metrics of an InfiniBand fabric, read periodically",
		Version:     e.Version,
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: "/metrics", Text: "Metrics", Description: "of the last complete result, with its age; ?shard=3/8 a part of the nodes, ?collect[]=errors a part of the metrics"},
			{Address: "/-/healthy", Text: "Healthy", Description: "the exporter runs"},
			{Address: "/-/ready", Text: "Ready", Description: "a complete result exists"},
		},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("GET /{$}", front)
	e.handle(mux)
	return mux, nil
}

// handle adds metrics and the state of the exporter.
func (e *Exporter) handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /metrics", e.metrics)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if e.last.Load() == nil {
			http.Error(w, "not ready: no complete result yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
}

// metrics answers a scrape: the last complete result, then the exporter itself.
func (e *Exporter) metrics(w http.ResponseWriter, r *http.Request) {
	peer := peerOf(r.RemoteAddr)
	if !e.gate.take(peer, maxScrapes, peerScrapes) {
		e.gate.refused.Add(1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("too many scrapes at once: the limit is %d, and %d from one address", maxScrapes, peerScrapes), http.StatusServiceUnavailable)
		return
	}
	defer e.gate.release(peer)
	selection, err := e.selection(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	last := e.last.Load()
	body, length, err := e.body(last, selection, peer, takesGzip(r.Header.Get("Accept-Encoding")))
	if err != nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	e.gate.answered.Add(1)
	var own []byte
	if selection.Whole() && selection.Collects(export.CollectExporter) {
		own, err = e.own(last)
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Vary", "Accept-Encoding")
	if takesGzip(r.Header.Get("Accept-Encoding")) && err == nil {
		h.Set("Content-Encoding", "gzip")
		own, err = pack(func(w io.Writer) error { _, err := w.Write(own); return err }) // members of a gzip file follow each other (RFC 1952, 2.2)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The length, or else the last chunk, reveals an answer that was cut short.
	if length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length+int64(len(own)), 10))
	}
	out := &progressWriter{w, http.NewResponseController(w)}
	if _, err := io.Copy(out, body); err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Write(own)
}

// body is the page of a selection for a peer, and its length; -1 while it is made.
func (e *Exporter) body(last *pages, s *export.Selection, peer string, packed bool) (io.Reader, int64, error) {
	if last == nil {
		return http.NoBody, 0, nil
	}
	e.once.Do(func() { e.render = make(chan struct{}, 1) })
	p, err := last.page(s, peer, e.render)
	if err != nil {
		return nil, 0, err
	}
	length, size, done := p.length()
	var body io.Reader = &pageReader{page: p}
	if !packed {
		length = size
		if body, err = gzip.NewReader(body); err != nil { // waits for the beginning of the page
			return nil, 0, err
		}
	}
	if !done {
		length = -1
	}
	return body, length, nil
}

// selection reads the parameters of a scrape: collect[]=NAME, as in node_exporter, and
// shard=K/N.
func (e *Exporter) selection(query url.Values) (*export.Selection, error) {
	s := &export.Selection{Collect: query["collect[]"], Families: e.Families, Nonzero: e.Nonzero}
	if text := query.Get("shard"); query.Has("shard") {
		k, n, _ := strings.Cut(text, "/")
		var err1, err2 error
		s.Shard, err1 = strconv.Atoi(k)
		s.Shards, err2 = strconv.Atoi(n)
		if err1 != nil || err2 != nil || s.Shard < 1 || s.Shard > s.Shards || s.Shards > export.MaxShards {
			return nil, fmt.Errorf("shard %q: want K/N, as in 3/8, with K from 1 to N, and N up to %d", fabric.Clip(text), export.MaxShards)
		}
	}
	return s, s.Check()
}

// takesGzip reads Accept-Encoding (RFC 9110, 12.5.3).
func takesGzip(accepted string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q, has := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		if v, err := strconv.ParseFloat(q, 64); !has || err != nil || v > 0 {
			return true
		}
	}
	return false
}

// named refuses requests at a loopback address by a name that the server does not have.
func (e *Exporter) named(h http.Handler) http.Handler {
	if e.Knows == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if local != nil && !e.Knows(r.Host) {
			if at, err := netip.ParseAddrPort(local.String()); err == nil && at.Addr().Unmap().IsLoopback() {
				http.Error(w, fmt.Sprintf("host %q: not a name of this server; use its address, or start it with --host NAME", fabric.Clip(r.Host)), http.StatusMisdirectedRequest)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}
