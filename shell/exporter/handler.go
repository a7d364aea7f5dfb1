package exporter

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/exporter-toolkit/web"

	"fabsh/fabric"
	"fabsh/fabric/export"
)

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
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", front)
	mux.HandleFunc("GET /metrics", e.metrics)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if e.last.Load() == nil {
			http.Error(w, "not ready: no complete result yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux, nil
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
