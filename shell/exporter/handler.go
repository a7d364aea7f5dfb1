package exporter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/exporter-toolkit/web"
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
			{Address: "/metrics", Text: "Metrics", Description: "of the last complete result, with its age"},
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
	e.gate.answered.Add(1)
	last := e.last.Load()
	own, err := e.own(last)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Vary", "Accept-Encoding")
	body, size := io.Reader(http.NoBody), int64(0)
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		own, err = pack(func(w io.Writer) error { _, err := w.Write(own); return err }) // members of a gzip file follow each other (RFC 1952, 2.2)
		if last != nil {
			body, size = bytes.NewReader(last.packed), int64(len(last.packed))
		}
	} else if last != nil {
		body, err = gzip.NewReader(bytes.NewReader(last.packed))
		size = last.size
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The length reveals an answer that was cut short.
	h.Set("Content-Length", strconv.FormatInt(size+int64(len(own)), 10))
	out := &progressWriter{w, http.NewResponseController(w)}
	if _, err := io.Copy(out, body); err == nil {
		out.Write(own)
	}
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
