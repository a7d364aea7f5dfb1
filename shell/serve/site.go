// Package serve shows a fabric as pages of HTML: what is wrong now and since when, a map, each
// node, link and cable with its history, and what was at an earlier time.
//
// A Site gets the report of each cycle, and answers requests from the last one and from the
// history. A request sends nothing to the fabric and reads no file that it names. All pages are
// readable without a script; their style and script are files of the site, so the policy of the
// pages allows nothing else. Text from the fabric is untrusted: templates escape it, and clean
// makes it printable.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/fabric/page"
	"fabsh/fabric/remedy"
)

// Site answers requests for pages. The fields are set before the first request.
type Site struct {
	Version string
	Every   time.Duration // between two cycles; 0: the fabric is of the past, and read once
	Hosts   []string      // names by which browsers may reach the site, besides addresses and localhost
	Now     func() time.Time
	// History opens the history for questions; history.ErrNone: it is missing. It is called
	// until it succeeds.
	History func(ctx context.Context) (*history.Store, error)
	Explain func(check string) string // the explanation of a check; "": it has none
	Topic   func(name string) (string, error)
	Search  func(words string) (list []Topic, more int, err error) // topics that have the words, the best first
	Topics  []Topic                                                // what the page of help lists
	Report  func(r *audit.Report) ([]byte, error)
	// Acknowledge adds an acknowledgement; nil: the site has none. User returns who the user of
	// a request is known to be, or "".
	Acknowledge func(a Ack) error
	User        func(r *http.Request) string

	// NoTables states why the fabric of a file has no forwarding tables; "": the usual reason.
	NoTables string

	// State and Subnet are the directory for state and the name of the subnet, for evidence.
	State, Subnet string

	// Plan is a plan of cables, which has racks and rails; nil: none.
	Plan *fabric.Fabric

	// MCP answers agents at /mcp; nil: the site has none.
	MCP http.Handler

	work     work
	predicts predicts // of the computation that runs

	mu      sync.Mutex // guards the fields below
	last    *moment
	tables  *Tables // nil: not read yet
	turn    tablesTurn
	repairs *remedy.State // nil: not known
	notice  map[string]notice
	store   *history.Store
	file    os.FileInfo // of store
	past    []*moment   // of earlier times, the one used last at the end
	token   string
	jobs    *jobList       // nil: not known
	numJobs int            // lists of jobs that were set
	given   map[string]Ack // by ID: acknowledgements since the last cycle, which does not have them

	rendering turns
	once      sync.Once
}

// Topic is a topic of help.
type Topic struct{ Group, Name, Summary string }

// notice is a state of the program that each page shows.
type notice struct {
	Text  string
	Since time.Time
}

// maxPast is how many fabrics of the past are kept.
const maxPast = 2

// Add adds what a cycle has read.
func (s *Site) Add(r *audit.Report) {
	m := &moment{fabric: r.Model, time: r.Ended, report: r, figures: figuresOf(r)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.given = m, nil
}

// Note shows a text under a key on all pages, until it is "".
func (s *Site) Note(key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notice == nil {
		s.notice = map[string]notice{}
	}
	switch was, ok := s.notice[key]; {
	case text == "":
		delete(s.notice, key)
	case !ok || was.Text != text:
		since := s.Now()
		if ok {
			since = was.Since
		}
		s.notice[key] = notice{clean(text), since}
	}
}

// Close closes the history.
func (s *Site) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}

// historyStore returns the history; nil and the reason: it is missing.
func (s *Site) historyStore(ctx context.Context) (*history.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil {
		if history.IsServer(s.store.Path()) {
			return s.store, nil
		}
		if st, err := os.Stat(s.store.Path()); err == nil && os.SameFile(st, s.file) {
			return s.store, nil
		}
		s.store.Close() // the file was removed or replaced, and does not grow
		s.store = nil
	}
	if s.History == nil {
		return nil, history.ErrNone
	}
	h, err := s.History(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	if !history.IsServer(h.Path()) {
		if s.file, err = os.Stat(h.Path()); err != nil {
			return nil, errors.Join(format.FileError(err), h.Close())
		}
	}
	s.store = h
	return h, nil
}

//go:embed *.html
var templates embed.FS

//go:embed serve.css
var style string

//go:embed serve.js
var script string

// Sheet returns the style sheet: what the report has too, and then that of pages alone.
func sheet() string { return page.Tokens + style }

var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"clean": clean, "when": when, "iso": iso, "ago": ago, "int": number,
		"least": func(a, b int) int { return min(a, b) },
	}).ParseFS(templates, "*.html"))
})

// Limits of requests.
const (
	maxParam   = 200 // characters of a parameter
	maxParams  = 24
	maxBody    = 4096
	renderTime = 20 * time.Second
	waitTime   = 5 * time.Second // for others' pages
)

// Handler returns the handler of all pages.
func (s *Site) Handler() http.Handler {
	s.once.Do(func() {
		s.rendering.free = 2 * runtime.GOMAXPROCS(0)
		s.token = newToken()
	})
	mux := http.NewServeMux()
	get := func(pattern string, f func(*view) error) { mux.HandleFunc("GET "+pattern, s.page(f)) }
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/now", http.StatusFound) })
	mux.HandleFunc("GET /style.css", asset("text/css; charset=utf-8", sheet()))
	mux.HandleFunc("GET /app.js", asset("text/javascript; charset=utf-8", script))
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	get("/now", s.now)
	get("/offenders", s.offendersPage)
	get("/map", s.mapPage)
	get("/link/{node}/{port}", s.link)
	get("/node/{node}", s.node)
	get("/cable/{serial}", s.cable)
	get("/time", s.timePage)
	get("/changes", s.changes)
	get("/help", s.help)
	get("/help/{topic}", s.help)
	get("/help/check/{check}", s.help)
	get("/find", s.find)
	get("/paths", s.paths)
	get("/evidence/{node}", s.evidence)
	get("/evidence/{node}/{port}", s.evidence)
	mux.HandleFunc("GET /api", s.answer(s.apiIndex))
	mux.HandleFunc("GET /api/{what}", s.answer(s.api))
	if s.Acknowledge != nil {
		get("/ack", s.ackForm)
		mux.HandleFunc("POST /ack", s.ack)
	}
	if s.MCP != nil {
		mux.Handle("/mcp", s.MCP)
	}
	mux.HandleFunc("/", s.page(func(v *view) error { return notFound("no page has the address %q", v.request.URL.Path) }))
	return http.NewCrossOriginProtection().Handler(s.guard(mux))
}

// asset serves a file of the program. Its name does not change with its content.
func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		w.Write([]byte(text))
	}
}

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard refuses requests that a page of another site makes, and those with too much in them.
func (s *Site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !s.Knows(r.Host):
			http.Error(w, fmt.Sprintf("host %q: not a name of this site; open it by its address, or start fabsh serve with --host NAME", fabric.Clip(r.Host)), http.StatusMisdirectedRequest)
		case r.Header.Get("Origin") != "" && !sameOrigin(r):
			http.Error(w, "request from a page of another site: refused", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !s.takes(r):
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are supported: pages change nothing", http.StatusMethodNotAllowed)
		case r.Method != http.MethodPost && r.ContentLength != 0:
			http.Error(w, "requests with a body are not supported", http.StatusBadRequest)
		case len(r.URL.RawQuery) > maxParams*maxParam/4 || len(r.URL.Path) > 1024:
			http.Error(w, "address too long", http.StatusRequestURITooLong)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// takes reports whether a request that is not a GET is one of the few that are answered.
func (s *Site) takes(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == "/ack" && s.Acknowledge != nil || r.URL.Path == "/mcp" && s.MCP != nil)
}

// Last returns the fabric of the last cycle, with the forwarding tables that were read of the same links,
// and when it was read; nil: none yet.
func (s *Site) Last() (*fabric.Fabric, time.Time) {
	s.mu.Lock()
	m, t := s.last, s.tables
	s.mu.Unlock()
	if m == nil || m.fabric == nil {
		return nil, time.Time{}
	}
	m.withLock.Lock()
	defer m.withLock.Unlock()
	if m.with == nil || m.withOf != t {
		m.with, m.withOf = withTables(m.fabric, t), t
	}
	return m.with, m.time
}

// LastReport returns the report of the last cycle; nil: none yet.
func (s *Site) LastReport() *audit.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return nil
	}
	return s.last.report
}

// Knows reports whether the Host of a request is one of the site: an address, which no name of
// another site resolves to, or a name that was given.
func (s *Site) Knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || slices.Contains(s.Hosts, name)
}

func sameOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host == r.Host
}

// pageError is an error with an HTTP status.
type pageError struct {
	status int
	text   string
	near   []choice // what may be meant
}

func (e *pageError) Error() string { return e.text }

// choice is a link to something.
type choice struct {
	Text, Note string
	URL        template.URL
}

func notFound(format string, args ...any) *pageError {
	return &pageError{status: http.StatusNotFound, text: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *pageError {
	return &pageError{status: http.StatusBadRequest, text: fmt.Sprintf(format, args...)}
}

// view is a request and what its page shows. Pages fill Title and Data.
type view struct {
	site     *Site
	request  *http.Request
	ctx      context.Context
	query    url.Values
	moment   *moment
	given    map[string]Ack // acknowledgements since its cycle
	status   int
	file     []byte // instead of a page
	fileName string

	data template.URL // as JSON

	Template string
	Tab      string // of the navigation
	Title    string
	Data     any
	Notices  []notice
	Stale    string // why no reading is newer; "": the last one is as new as it should be
	AsOf     string // the time of the past in words; "": now
	Fabric   string
	Age      int // of the reading, in seconds
	Read     time.Time
	Query    string // of the search
	User     string
	Acks     bool
	Error    *pageError
}

// begin begins an answer, of which only some are made at once. nil: the answer is given.
func (s *Site) begin(w http.ResponseWriter, r *http.Request) (v *view, done func()) {
	ctx, cancel := context.WithTimeout(r.Context(), renderTime)
	wait, stop := context.WithTimeout(ctx, waitTime)
	err := s.rendering.take(wait, clientOf(r))
	stop()
	if err != nil {
		cancel()
		w.Header().Set("Retry-After", "2")
		http.Error(w, "too many pages at once; try again", http.StatusServiceUnavailable)
		return nil, nil
	}
	done = func() {
		s.rendering.release()
		cancel()
	}
	return &view{site: s, request: r.WithContext(ctx), ctx: ctx, status: http.StatusOK, Acks: s.Acknowledge != nil}, done
}

// page returns the handler of a page.
func (s *Site) page(f func(*view) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, done := s.begin(w, r)
		if v == nil {
			return
		}
		defer done()
		err := v.open()
		if err == nil {
			err = f(v)
		}
		if to, ok := err.(*redirect); ok {
			http.Redirect(w, r, string(to.url), http.StatusFound)
			return
		}
		if err != nil {
			v.fail(err)
		}
		if v.file != nil {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="`+v.fileName+`"`)
			w.Write(v.file)
			return
		}
		var b bytes.Buffer
		if err := parsed().ExecuteTemplate(&b, v.Template, v); err != nil {
			http.Error(w, "internal error: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(v.status)
		b.WriteTo(w)
	}
}

// redirect is an error that leads elsewhere.
type redirect struct{ url template.URL }

func (*redirect) Error() string { return "elsewhere" }

// fail shows an error instead of a page.
func (v *view) fail(err error) {
	e, ok := err.(*pageError)
	if !ok {
		e = &pageError{status: http.StatusInternalServerError, text: err.Error()}
	}
	e.text = clean(e.text)
	v.status, v.Error, v.Template, v.Title = e.status, e, "error", "Not found"
	switch e.status {
	case http.StatusNotFound:
	case http.StatusGone:
		v.Title = "Not in the fabric"
	default:
		v.Title = "Not shown"
	}
}

// Text and Near show an error.
func (e *pageError) Text() string   { return e.text }
func (e *pageError) Near() []choice { return e.near }

// open reads the parameters that all pages have, and sets what frames show.
func (v *view) open() error {
	s := v.site
	query, err := url.ParseQuery(v.request.URL.RawQuery)
	if err != nil {
		v.query = url.Values{}
	} else {
		v.query = query
	}
	s.mu.Lock()
	v.moment, v.given = s.last, maps.Clone(s.given)
	for _, key := range sortedKeys(s.notice) {
		v.Notices = append(v.Notices, s.notice[key])
	}
	s.mu.Unlock()
	v.frame()
	for key, list := range v.query {
		if len(v.query) > maxParams || len(list) > 1 || len(list[0]) > maxParam {
			v.query = url.Values{}
			return badRequest("parameter %q: too long, or given twice", fabric.Clip(key))
		}
	}
	v.Query = clean(v.query.Get("q"))
	if s.User != nil {
		v.User = clean(s.User(v.request))
	}
	if at := v.query.Get("at"); at != "" && at != "now" {
		return v.openPast(at)
	}
	if v.moment == nil {
		v.status = http.StatusServiceUnavailable
		return &pageError{status: http.StatusServiceUnavailable, text: "The first reading is not complete. Reload this page in a few seconds."}
	}
	return nil
}

// frame sets what frames show of the moment.
func (v *view) frame() {
	s, m := v.site, v.moment
	v.Fabric = "fabric"
	if m == nil {
		return
	}
	if m.report != nil {
		v.Fabric = clean(m.report.Subnet.Key())
	}
	v.Read = m.time
	age := s.Now().Sub(m.time)
	v.Age = int(max(0, age).Seconds())
	if s.Every > 0 && age > 3*s.Every && !m.isPast {
		v.Stale = "No new reading for " + words(age) + ". What is shown may have changed."
	}
}

// openPast sets the moment of a time that is in the address.
func (v *view) openPast(text string) error {
	s := v.site
	t, err := history.ParseTime(text, s.Now())
	if err != nil {
		v.query.Del("at")
		return badRequest("at=%q: %v", fabric.Clip(text), err)
	}
	h, err := s.historyStore(v.ctx)
	if err != nil {
		v.query.Del("at")
		return notFound("no history of that time: %v", err)
	}
	m, err := s.momentAt(v.ctx, h, t)
	if err != nil {
		v.query.Del("at")
		return notFound("%v", err)
	}
	v.moment, v.Stale = m, ""
	v.Read, v.AsOf = m.time, when(m.time)
	return nil
}

// momentAt returns the fabric at a time.
func (s *Site) momentAt(ctx context.Context, h *history.Store, t time.Time) (*moment, error) {
	s.mu.Lock()
	for i, m := range s.past {
		if m.asked.Equal(t) {
			s.past = append(slices.Delete(s.past, i, i+1), m)
			s.mu.Unlock()
			return m, nil
		}
	}
	s.mu.Unlock()
	f, read, err := h.At(ctx, t)
	if err != nil {
		return nil, err
	}
	found, err := h.FoundAt(ctx, t)
	if err != nil {
		return nil, err
	}
	m := &moment{fabric: f, time: read, asked: t, isPast: true, found: found}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = append(s.past, m)
	if len(s.past) > maxPast {
		s.past = slices.Delete(s.past, 0, 1)
	}
	return m, nil
}

// to returns the address of a page, at the time that is shown.
func (v *view) to(elements ...string) template.URL {
	var b strings.Builder
	for _, e := range elements {
		b.WriteString("/" + url.PathEscape(e))
	}
	if at := v.query.Get("at"); at != "" {
		b.WriteString("?at=" + url.QueryEscape(at))
	}
	return template.URL(b.String())
}

// To returns the address of a page.
func (v *view) To(elements ...string) template.URL { return v.to(elements...) }

// with returns the address of this page with another value of a parameter; "": without it.
func (v *view) with(key, value string) template.URL {
	q := url.Values{}
	for k, list := range v.query {
		q[k] = list
	}
	if value == "" {
		q.Del(key)
	} else {
		q.Set(key, value)
	}
	address := v.request.URL.EscapedPath()
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	return template.URL(address)
}

// withoutParam returns an address without a parameter.
func withoutParam(address template.URL, key string) template.URL {
	u, err := url.Parse(string(address))
	if err != nil {
		return address
	}
	q := u.Query()
	q.Del(key)
	u.RawQuery = q.Encode()
	return template.URL(u.String())
}

// With is with, for templates.
func (v *view) With(key, value string) template.URL { return v.with(key, value) }

// Param returns a parameter of the request.
func (v *view) Param(key string) string { return v.query.Get(key) }

// JSON returns the address of the facts of the page, or of the list of all.
func (v *view) JSON() template.URL { return cmp.Or(v.data, "/api") }

// Version, Every and Zone are for the foot of pages.
func (v *view) Version() string { return v.site.Version }
func (v *view) Every() int      { return int(v.site.Every.Seconds()) }
func (v *view) Zone() string    { return v.site.Now().Format("MST (UTC-07:00)") }

// one returns a parameter that must be one of some; the first one is the default.
func (v *view) one(key string, values ...string) (string, error) {
	x := v.query.Get(key)
	if x == "" {
		return values[0], nil
	}
	if !slices.Contains(values, x) {
		return "", badRequest("%s=%q: want one of %s", key, fabric.Clip(x), strings.Join(values, ", "))
	}
	return x, nil
}
