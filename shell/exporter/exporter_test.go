package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"fabsh/fabric/export"
)

// text is a result.
type text string

func (r text) Write(w io.Writer, _ *export.Selection) error {
	_, err := io.WriteString(w, string(r))
	return err
}

// get asks e for a page.
func get(t *testing.T, e *Exporter, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := e.Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// valueOf is the value of a metric of one series; -1: there is none.
func valueOf(t *testing.T, e *Exporter, name string) float64 {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	m, err := p.TextToMetricFamilies(get(t, e, "/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	if m[name] == nil {
		return -1
	}
	x := m[name].Metric[0]
	return x.GetGauge().GetValue() + x.GetCounter().GetValue() + x.GetUntyped().GetValue()
}

// TestOwnClock: one cycle a period, whatever is scraped meanwhile. While cycles fail
// the last result stands, and its age grows; what lasts is logged once. A cycle that is
// longer than a period takes the place of those that it covers.
func TestOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards what follows
		cycles := 0
		var err error
		var takes time.Duration
		var logged []string
		start := time.Now()
		e := &Exporter{Every: time.Minute}
		e.Log = func(s string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, fmt.Sprint(time.Since(start), " ", s))
		}
		e.Cycle = func(context.Context) (Result, error) {
			mu.Lock()
			cycles++
			n, why, lasts := cycles, err, takes
			mu.Unlock()
			time.Sleep(lasts)
			if why != nil {
				return nil, why
			}
			return text(fmt.Sprintf("x %d\n", n)), nil
		}
		become := func(why error, lasts time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			err, takes = why, lasts
		}
		ready := func(want int) {
			t.Helper()
			if got := get(t, e, "/-/ready").Code; got != want {
				t.Errorf("/-/ready: %d, want %d", got, want)
			}
		}
		ready(503)
		if age := valueOf(t, e, "fabsh_exporter_result_age_seconds"); age != -1 {
			t.Errorf("an age of %v, and there is no result", age)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		check := func(after time.Duration, n int, x, age float64) {
			t.Helper()
			for range 10 {
				time.Sleep(after / 10)
				synctest.Wait()
				valueOf(t, e, "x")
			}
			mu.Lock()
			defer mu.Unlock()
			if cycles != n || valueOf(t, e, "x") != x || valueOf(t, e, "fabsh_exporter_result_age_seconds") != age {
				t.Errorf("at %v: %d cycles, x %v, age %v; want %d, %v, %v", time.Since(start), cycles, valueOf(t, e, "x"), valueOf(t, e, "fabsh_exporter_result_age_seconds"), n, x, age)
			}
		}
		check(10*time.Second, 1, 1, 10)
		ready(200)
		check(3*time.Minute, 4, 4, 10)
		become(errors.New("the sweep was cut"), 0)
		check(3*time.Minute, 7, 4, 190)
		become(&LostError{errors.New("no device")}, 0)
		check(3*time.Minute, 15, 4, 370) // at 7 min, then after 1, 2, 4, ... 32, 60 s
		become(nil, 0)
		check(time.Minute, 16, 16, 7) // at 10:03
		become(nil, 150*time.Second)
		check(5*time.Minute, 18, 17, 97) // from 11:03, and from 14:03
		stop(errors.New("that is it"))
		if err := <-ended; err == nil || err.Error() != "that is it" {
			t.Error(err)
		}
		want := []string{
			"0s ready: the first result took 0s",
			"4m0s no new result: the sweep was cut; serving the last result",
			"7m0s no new result: no device; serving the last result",
			"10m3s readings succeed again",
		}
		if diff := cmp.Diff(want, logged); diff != "" {
			t.Errorf("logged: -want +got\n%s", diff)
		}
		if c := e.count; c.failed != 11 || c.left != 2 {
			t.Errorf("%d cycles have failed, and %d were left out; want 11 and 2", c.failed, c.left)
		}
	})
}

// TestEnds: an error that ends all.
func TestEnds(t *testing.T) {
	fatal := errors.New("exit")
	e := &Exporter{Every: time.Second, Cycle: func(context.Context) (Result, error) { return nil, fatal }, Ends: func(err error) bool { return err == fatal }}
	if err := e.Run(t.Context()); err != fatal {
		t.Error(err)
	}
}

// TestScrape: the same in both encodings, with its length; and nobody is let in beyond
// the limit.
func TestScrape(t *testing.T) {
	const metrics = "x{y=\"z\"} 1\n"
	e := &Exporter{Every: time.Second, Log: func(string) {}}
	e.Cycle = func(context.Context) (Result, error) { return text(metrics), nil }
	if err := e.cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, e, "/metrics") // which makes the page
	for accepted, packed := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzipped": false} {
		w := get(t, e, "/metrics", "Accept-Encoding", accepted)
		body := io.Reader(w.Body)
		if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%q: Content-Length %s of %d", accepted, got, w.Body.Len())
		}
		if (w.Header().Get("Content-Encoding") == "gzip") != packed {
			t.Errorf("%q: packed: %v, want %v", accepted, !packed, packed)
		} else if packed {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(body); err != nil || !strings.HasPrefix(b.String(), metrics) || !strings.Contains(b.String(), "\nprocess_open_fds ") {
			t.Errorf("%q: %v, %.100q", accepted, err, b.String())
		}
	}
	const us, another = "192.0.2.1", "192.0.2.2" // us: httptest.NewRequest
	take := func(n int, peer string) {
		for range n {
			e.gate.take(peer, maxScrapes, maxScrapes)
		}
	}
	take(peerScrapes, another)
	if w := get(t, e, "/metrics"); w.Code != 200 {
		t.Errorf("%d while another client has all that it may", w.Code)
	}
	take(maxScrapes-peerScrapes, another)
	if w := get(t, e, "/metrics"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d beyond the limit of all", w.Code)
	}
	e.gate.slots = slots{}
	take(peerScrapes, us)
	if w := get(t, e, "/metrics"); w.Code != 503 {
		t.Errorf("%d beyond the limit of one client", w.Code)
	}
	e.gate.slots = slots{}
	if n := valueOf(t, e, "fabsh_exporter_scrapes_refused_total"); n != 2 {
		t.Errorf("%v refused, want 2", n)
	}
}

// TestSelections: parts of a page, each made once per cycle; what does not exist, and too many
// parts, are refused.
func TestSelections(t *testing.T) {
	var made atomic.Int64
	e := &Exporter{Every: time.Second, Log: func(string) {}, Nonzero: true}
	e.Cycle = func(context.Context) (Result, error) {
		return resultFunc(func(w io.Writer, s *export.Selection) error {
			made.Add(1)
			_, err := fmt.Fprintf(w, "x{of=%q,nonzero=\"%v\"} 1\n", s.Key(), s.Nonzero)
			return err
		}), nil
	}
	if err := e.cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		query, want string
		own         bool
	}{
		{"", `x{of="0 0 [] true []",nonzero="true"} 1`, true},
		{"?shard=1/8", `x{of="1 8 [] true []",nonzero="true"} 1`, true},
		{"?shard=3/8", `x{of="3 8 [] true []",nonzero="true"} 1`, false},
		{"?shard=64/64&collect[]=errors&collect[]=audit", `x{of="64 64 [audit errors] true []",nonzero="true"} 1`, false},
		{"?collect[]=exporter", `x{of="0 0 [exporter] true []",nonzero="true"} 1`, true},
	} {
		for range 2 {
			w := get(t, e, "/metrics"+c.query)
			line, rest, _ := strings.Cut(w.Body.String(), "\n")
			if line != c.want || strings.Contains(rest, "fabsh_exporter_period_seconds") != c.own {
				t.Errorf("%s: %d, %.300s", c.query, w.Code, w.Body)
			}
		}
	}
	if n := made.Load(); n != 5 {
		t.Errorf("made %d pages, want 5", n)
	}
	for query, want := range map[string]string{
		"?shard=1/65":     `shard "1/65": want K/N, as in 3/8, with K from 1 to N, and N up to 64`,
		"?shard=0/8":      `shard "0/8": want K/N, as in 3/8, with K from 1 to N, and N up to 64`,
		"?shard=9/8":      `shard "9/8": want K/N, as in 3/8, with K from 1 to N, and N up to 64`,
		"?shard=":         `shard "": want K/N, as in 3/8, with K from 1 to N, and N up to 64`,
		"?collect[]=eror": `unknown collector "eror"; supported: nodes, traffic, errors, audit, run, exporter`,
	} {
		if w := get(t, e, "/metrics"+query); w.Code != 400 || w.Body.String() != want+"\n" {
			t.Errorf("%s: %d, %s", query, w.Code, w.Body)
		}
	}
	refused := 0
	for k := range export.MaxShards {
		for _, collect := range collect3 {
			if get(t, e, fmt.Sprintf("/metrics?shard=%d/64&collect[]=%s", k+1, collect)).Code == 503 {
				refused++
			}
		}
	}
	if want := 64*len(collect3) + 4 - peerPages; refused != want { // with those above, but the whole page
		t.Errorf("%d refused, want %d", refused, want)
	}
	if w := get(t, e, "/metrics?shard=3/8"); w.Code != 200 {
		t.Errorf("a page that exists: %d", w.Code)
	}
}

// TestReservedPages: clients that request many selections neither take the place of regular
// scrapes, nor have all of them made. Scrapes are those of the cycle before, and of the whole.
func TestReservedPages(t *testing.T) {
	made := map[string]int{}
	var mu sync.Mutex
	e := &Exporter{Every: time.Second, Log: func(string) {}}
	e.Cycle = func(context.Context) (Result, error) {
		return resultFunc(func(w io.Writer, s *export.Selection) error {
			mu.Lock()
			defer mu.Unlock()
			made[fmt.Sprintf("%d/%d%v", s.Shard, s.Shards, s.Collect)]++
			_, err := io.WriteString(w, "x 1\n")
			return err
		}), nil
	}
	h, err := e.Handler()
	if err != nil {
		t.Fatal(err)
	}
	status := func(peer int, query string) int {
		r := httptest.NewRequest("GET", "/metrics"+query, nil)
		r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", peer)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	flood := func(peer int) (refused int) {
		for k := range export.MaxShards {
			for _, collect := range collect3 {
				if status(peer, fmt.Sprintf("?shard=%d/%d&collect[]=%s", k+1, export.MaxShards-peer%2, collect)) == 503 {
					refused++
				}
			}
		}
		return refused
	}
	scrape := func() {
		for _, query := range []string{"?shard=1/8", ""} {
			if code := status(1, query); code != 200 {
				t.Errorf("scrape %q: status %d", query, code)
			}
		}
	}
	for cycle := range 4 {
		if err := e.cycle(t.Context()); err != nil {
			t.Fatal(err)
		}
		clear(made)
		if cycle < 2 { // later the others are first
			scrape()
		}
		for peer := range 4 {
			if n := flood(10 + peer); cycle > 0 && n == 0 {
				t.Errorf("cycle %d: peer %d: all selections were made", cycle, peer)
			}
			if cycle == 0 {
				break
			}
		}
		scrape()
		if cycle == 1 && (made["0/0[]"] != 1 || made["1/8[]"] != 1) {
			t.Errorf("the pages of scrapes were made %d and %d times, want once", made["0/0[]"], made["1/8[]"])
		}
		last, size := e.last.Load(), 0
		for _, one := range last.byKey {
			size += one.n
		}
		if len(last.byKey) > maxPages || size != last.size {
			t.Errorf("cycle %d: %d pages; of %d bytes, counted as %d", cycle, len(last.byKey), size, last.size)
		}
	}
}

// TestFailedPages: a page that cannot be made, or panics, is an error of its requests until
// it can be made; other pages are not concerned.
func TestFailedPages(t *testing.T) {
	var fail func() error
	e := &Exporter{Every: time.Second, Log: func(string) {}}
	e.Cycle = func(context.Context) (Result, error) {
		return resultFunc(func(w io.Writer, s *export.Selection) error {
			if s.Shards > 0 {
				if err := fail(); err != nil {
					return err
				}
			}
			_, err := io.WriteString(w, "x 1\n")
			return err
		}), nil
	}
	if err := e.cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fail func() error
		want string // "": the page
	}{
		{func() error { panic("index out of range") }, "making the page: internal error: index out of range"},
		{func() error { return errors.New("disk full") }, "disk full"},
		{func() error { return nil }, ""},
	} {
		fail = c.fail
		r, _, err := e.body(e.last.Load(), &export.Selection{Shard: 1, Shards: 2}, "a", true)
		text := ""
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("got %q, want %q", text, c.want)
		}
		if w := get(t, e, "/metrics"); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "x 1\n") {
			t.Errorf("the whole page: %d, %.100s", w.Code, w.Body)
		}
	}
}

// collect3 are three collectors.
var collect3 = export.Collectors[:3]

type resultFunc func(w io.Writer, s *export.Selection) error

func (f resultFunc) Write(w io.Writer, s *export.Selection) error { return f(w, s) }

// pipes is a listener whose connections are pipes.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l pipes) Close() error   { return nil }
func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (c from) RemoteAddr() net.Addr { return address(c.address) }

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// TestPeerOf: who counts as one client.
func TestPeerOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:9": "192.0.2.1", "[::ffff:192.0.2.1]:9": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:9": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:9": "fe80::/64", "@": "@", "pipe": "pipe",
	} {
		if got := peerOf(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestOnePeer: one address cannot hold all connections, nor with what it does not read
// the scrapes of others; what it reads slowly it gets as a whole.
func TestOnePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		e, l, ended := &Exporter{Every: time.Second, Log: func(string) {}}, make(pipes), make(chan error)
		e.Cycle = func(context.Context) (Result, error) {
			return text("# " + strings.Repeat("x", 20*pieceSize) + "\n"), nil
		}
		if err := e.cycle(ctx); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- e.Serve(ctx, []net.Listener{l}, "", slog.New(slog.DiscardHandler)) }()
		dial := func(address string) net.Conn {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close() })
			l <- from{theirs, address}
			io.WriteString(ours, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			return ours
		}
		began := time.Now()
		for range maxConnections {
			go dial("192.0.2.1:1") // which reads nothing
		}
		synctest.Wait()
		slow := dial("192.0.2.2:1")
		n, piece := 0, make([]byte, pieceSize)
		for {
			m, err := slow.Read(piece)
			if waited := time.Since(began); n == 0 && waited >= time.Second {
				t.Errorf("another client waits for %v", waited)
			}
			if n += m; err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			time.Sleep(stallTime / 4)
		}
		if n < 20*pieceSize || time.Since(began) < writeTime {
			t.Errorf("the slow client got %d bytes in %v", n, time.Since(began))
		}
		synctest.Wait()
		if e.gate.all != 0 {
			t.Errorf("%d scrapes go on", e.gate.all)
		}
		stop()
		close(l)
		<-ended
	})
}

// TestIdleConnections: connections without a complete request, however often they are renewed,
// keep out neither a scrape of the same address nor one of another; a scrape that is being
// answered goes on.
func TestIdleConnections(t *testing.T) {
	for what, begin := range map[string]string{
		"nothing is sent":            "",
		"a part of a header":         "GET /metrics HTTP/1.1\r\nHost: x\r\n",
		"a header without its body":  "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
		"idle after a whole request": "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				e, l, ended := &Exporter{Every: time.Second, Log: func(string) {}}, make(pipes), make(chan error)
				e.Cycle = func(context.Context) (Result, error) {
					return text("# " + strings.Repeat("x", 5*pieceSize) + "\n"), nil
				}
				if err := e.cycle(ctx); err != nil {
					t.Fatal(err)
				}
				go func() { ended <- e.Serve(ctx, []net.Listener{l}, "", slog.New(slog.DiscardHandler)) }()
				dial := func(address string) net.Conn {
					ours, theirs := net.Pipe()
					t.Cleanup(func() { ours.Close() })
					select {
					case l <- from{theirs, address}:
					case <-ctx.Done():
						theirs.Close()
					}
					return ours
				}
				var holders sync.WaitGroup
				hold := func(address string) { // and connects again when it is closed
					c := dial(address)
					holders.Go(func() {
						for ctx.Err() == nil {
							io.WriteString(c, begin)
							io.Copy(io.Discard, c)
							time.Sleep(4 * time.Second)
							c = dial(address)
						}
					})
				}
				scrape := func(address string, pause time.Duration) {
					t.Helper()
					c := dial(address)
					if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
						t.Errorf("%s: %v", address, err)
					}
					n, piece := 0, make([]byte, pieceSize)
					for {
						m, err := c.Read(piece)
						if n += m; err != nil {
							break
						}
						time.Sleep(pause)
					}
					if n < 5*pieceSize {
						t.Errorf("%s: got %d bytes", address, n)
					}
				}
				const many = "192.0.2.1:1"
				for range 2 * peerConnections {
					hold(many)
				}
				scrape(many, 0)
				done := make(chan bool)
				go func() { scrape(many, stallTime/2); done <- true }() // the oldest in the end
				for range 3 * peerConnections {
					hold("192.0.2.2:1")
				}
				for range 3 {
					synctest.Wait()
					scrape(many, 0)
					scrape("192.0.2.3:1", 0)
					time.Sleep(10 * time.Second)
				}
				<-done
				stop()
				holders.Wait()
				close(l)
				<-ended
			})
		})
	}
}

// TestCrowd: clients that ask once and stay, or say half of what they want, keep nobody
// out for long.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		e, l, ended := new(Exporter), make(pipes), make(chan error)
		go func() { ended <- e.Serve(ctx, []net.Listener{l}, "", slog.New(slog.DiscardHandler)) }()
		var peers atomic.Int64
		ask := func(request string) string {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close() })
			l <- from{theirs, fmt.Sprintf("192.0.2.%d:1", peers.Add(1)%8)} // waits while there are too many
			ours.SetDeadline(time.Now().Add(2 * writeTime))
			if _, err := io.WriteString(ours, request); err != nil {
				return err.Error()
			}
			answer := make([]byte, 1000)
			n, err := ours.Read(answer)
			if err != nil {
				return err.Error()
			}
			return string(answer[:n])
		}
		const healthy = "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"
		for i := range 2 * maxConnections {
			if i%2 == 0 {
				go ask(healthy)
			} else {
				go ask("GET /-/hea")
			}
		}
		began := time.Now()
		synctest.Wait()
		if got := ask(healthy); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took > 3*headerTime {
			t.Errorf("after %v", took)
		}
		stop()
		close(l)
		<-ended
	})
}
