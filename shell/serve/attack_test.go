package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
)

// evils are texts that must stay texts.
var evils = []struct{ name, text string }{
	{"script", `<script>alert(1)</script>`},
	{"end of a script", `</script><img src=x onerror=alert(1)>`},
	{"attribute", `" onfocus="alert(1)" autofocus="`},
	{"attribute in single quotes", `' onmouseover='alert(1)`},
	{"end of an element", `</title></svg></textarea></bdi><iframe srcdoc=x>`},
	{"comment", `<!--`},
	{"scheme", `javascript:alert(1)`},
	{"template", `{{.}}{{template "head" .}}`},
	{"right to left", "\u202e\u2066gnp.exe\u05d0"},
	{"escape sequences", "\x1b[31mred\x1b]0;title\x07\u009b1m"},
	{"invalid UTF-8", "\xff\xfe<b>\xc0\xbc"},
	{"NUL", "a\x00b<b>"},
	{"lines", "one\r\ntwo\n<b>three"},
	{"path", "../../etc/passwd?x=1#y%2f%00"},
	{"64 KB", strings.Repeat("<b>W", 15<<10)},
}

// shape returns how many elements a page has, by name and names of attributes.
func shape(t *testing.T, page string) map[string]int {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		var names []string
		for _, a := range n.Attr {
			names = append(names, a.Key)
			if v := strings.TrimSpace(strings.ToLower(a.Val)); strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "#") || strings.HasPrefix(v, "//") {
				t.Errorf("%s %s=%.80q", n.Data, a.Key, a.Val)
			}
		}
		slices.Sort(names)
		count[n.Data+" "+strings.Join(names, " ")]++
	}
	return count
}

// attacked returns a site, all texts of which are evil: of nodes, findings, acknowledgements, events, modules,
// notices and users.
func attacked(t *testing.T, evil string) *Site {
	renamed := func(s string) string {
		if s == "leaf-2" || s == "node-2-1" || s == "spine-1" {
			return evil + s
		}
		return s
	}
	whole, f := madeFabric(t, 3, 2, 1, renamed), madeFabric(t, 3, 2, 1, renamed, "leaf-1 - spine-1")
	leaf := f.NodeByName("leaf-1")[0]
	finding := func(port int, check string) audit.Finding {
		return audit.Finding{Audit: evil, Check: check, Subject: audit.OfLink(leaf.Port(port), leaf.Port(port).Peer()), Severity: audit.Warning, Message: evil, Since: noon.Add(-time.Hour)}
	}
	open, acked := finding(3, "link.width"), finding(3, evil)
	gone := audit.Finding{Audit: evil, Check: "node.gone", Subject: audit.OfGUID(0x1234, audit.NoPort, evil), Severity: audit.Error, Message: evil, Since: noon}
	r := reportOf(f, open, gone)
	r.Acked = []audit.Acked{{Finding: acked, Ack: &audit.Ack{Pattern: acked.ID(), By: evil, Reason: evil, Until: noon.Add(day)}}}
	r.Failures = []audit.Failure{{Audit: evil, Err: fmt.Errorf("%s", evil)}}
	r.Notes = []string{evil}
	path := recorded(t, whole, whole)
	rec, err := history.NewRecorder(t.Context(), path, fabric.Subnet{Given: "lab"}, noon)
	if err == nil {
		_, err = rec.Record(t.Context(), history.Cycle{Time: noon.Add(time.Minute), Every: time.Minute, Source: evil, Fabric: f, Modules: []history.Module{{Node: leaf.GUID(), Port: 3, Serial: clip(evil), Part: clip(evil)}}})
	}
	if err == nil {
		err = rec.Close()
	}
	if err == nil {
		err = history.Contribute(t.Context(), path, noon.Add(time.Minute), func(c *history.Contributor) {
			c.Findings("serve", []audit.Finding{open, gone}, func(string, string) bool { return true })
			c.Change("remedy", evil, evil, evil, leaf.GUID(), 1)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Ended = noon.Add(time.Minute)
	s := siteOf(t, r, path)
	s.Now = func() time.Time { return noon.Add(2 * time.Minute) }
	s.Note("evil", evil)
	s.Acknowledge = func(Ack) error { return nil }
	s.User = userOf(evil)
	return s
}

// clip returns a serial number of a length that a module can have.
func clip(text string) string { return text[:min(len(text), 60)] }

// TestTexts: whatever a text is, it becomes no element and no attribute: pages have only elements with attributes
// that pages with harmless texts have, no character that steers terminals or directions, and a bounded size.
func TestTexts(t *testing.T) {
	addresses := func(evil string) []string {
		q := url.QueryEscape(clip(evil))
		return append([]string{
			"/find?q=" + q, "/help?words=" + q, "/help/" + url.PathEscape(clip(evil)), "/help/check/" + url.PathEscape(clip(evil)), "/node/" + url.PathEscape(clip(evil)), "/link/" + url.PathEscape(clip(evil)) + "/1",
			"/cable/" + url.PathEscape(clip(evil)), "/nothing/" + url.PathEscape(clip(evil)), "/now?at=" + q, "/map?by=" + q, "/map?q=" + q, "/map?open=" + q, "/time?t1=" + q, "/changes?kind=" + q,
			"/ack?id=" + q, "/link/leaf-1/3", "/link/leaf-1/3?at=1m", "/now?at=1m", "/time?t1=2h&t2=1m",
		}, pages...)
	}
	const harmless = "harmless"
	good := attacked(t, harmless)
	known := map[string]int{} // of any page: one may have a nearest name where another has none
	for _, address := range addresses(harmless) {
		maps.Copy(known, shape(t, ask(t, good, "GET", address, "").Body.String()))
	}
	for _, evil := range evils {
		t.Run(evil.name, func(t *testing.T) {
			s := attacked(t, evil.text)
			for _, address := range addresses(evil.text) {
				w := ask(t, s, "GET", address, "")
				body := w.Body.String()
				if w.Code >= 500 || len(body) > 1<<20 {
					t.Errorf("%.80s: %d, %d bytes: %.300s", address, w.Code, len(body), text(body))
				}
				if j := strings.IndexFunc(body, func(c rune) bool {
					return c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 || c == '\u202e' || c >= '\u2066' && c <= '\u2069' || c == '\ufffd' && strings.Contains(body, "\xff")
				}); j >= 0 {
					t.Errorf("%.80s: has %q", address, body[max(0, j-40):min(len(body), j+20)])
				}
				if strings.HasPrefix(address, "/api/") || w.Code == 302 {
					continue
				}
				got := shape(t, body)
				for _, k := range slices.Sorted(maps.Keys(got)) {
					if known[k] == 0 {
						t.Errorf("%.80s: an element %s is new", address, k)
					}
				}
			}
		})
	}
}

// TestPaths: addresses that lead nowhere are errors in words, of the sizes that clients may send.
func TestPaths(t *testing.T) {
	f := madeFabric(t, 2, 1, 1, nil)
	s := siteOf(t, reportOf(f), recorded(t, f))
	for _, address := range []string{
		"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/node/..%2f..%2fetc%2fpasswd", "/node/%2e%2e", "/help/..%2f..%2fetc%2fpasswd", "/help/check/%2e%2e%2f", "/cable/..%2fhistory.db",
		"/node/a%00b", "/link/%00/1", "/cable/%00", "/help/%00", "/node/%ff%fe", "/node/%F0%9F%A7%B5", "/node/" + url.PathEscape("ｌｅａｆ-１"), "/link/leaf-1/%D9%A1", "/link/leaf-1/1e0", "/link/leaf-1/0x1", "/link/leaf-1/+1",
		"//evil.example/now", "/\\evil.example", "/now/", "/NOW", "/map/../now", "/api/", "/api/audit_report/x", "/style.css/..%2f..%2fserve.go", "/serve.css", "/frame.html",
		"/node/" + strings.Repeat("a", 900), "/node/" + strings.Repeat("%41", 3000), "/now?" + strings.Repeat("a=1&", 100), "/now?at=%00", "/now?at=-1h&AT=2", "/now?;=;", "/now?at=9999999999999999h", "/now?at=0000-00-00",
		"/find?q=" + strings.Repeat("%F0%9F%A7%B5", 16), "/find?q=%25s%25d%25n", "/find?q=leaf-1/99999999999999999999", "/find?q=0x", "/find?q=0xffffffffffffffffff", "/find?q=-1", "/find?q=65536",
		"/time?t1=2020&t2=2030", "/time?t1=now&t2=now", "/time?t1=-1h&t2=1h", "/link/leaf-1/0", "/link/leaf-1/255", "/link/leaf-1/256", "/cable/" + strings.Repeat("x", 1000),
	} {
		w := ask(t, s, "GET", address, "")
		if body := w.Body.String(); w.Code >= 500 || strings.Contains(body, "root:") || strings.Contains(body, "package serve") || strings.Contains(body, "goroutine") || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%.80s: %d %.300s", address, w.Code, body)
		}
		if to := w.Header().Get("Location"); to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\")) {
			t.Errorf("%.80s leads to %q", address, to)
		}
	}
	megabytes := strings.Repeat("a", 4<<20)
	for _, address := range []string{"/now?at=" + megabytes, "/find?q=" + megabytes, "/" + megabytes, "/node/" + megabytes} {
		if w := ask(t, s, "GET", address, ""); w.Code != 414 || w.Body.Len() > 1000 {
			t.Errorf("%.20s: %d, %d bytes", address, w.Code, w.Body.Len())
		}
	}
}

// TestRequests: methods, ranges, compressed bodies and headers that no page supports change nothing.
func TestRequests(t *testing.T) {
	f := madeFabric(t, 2, 1, 1, nil)
	s := siteOf(t, reportOf(f), "")
	s.Acknowledge = func(a Ack) error { t.Errorf("acknowledged: %+v", a); return nil }
	s.User = userOf("mira")
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 4<<20))
	z.Close()
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		method, address, body string
		header                []string
		want                  int
	}{
		{"TRACE", "/now", "", nil, 405}, {"CONNECT", "/now", "", nil, 405}, {"OPTIONS", "/now", "", nil, 405}, {"PATCH", "/now", "", nil, 405}, {"PROPFIND", "/now", "", nil, 405}, {"get", "/now", "", nil, 405},
		{"PUT", "/ack", "x", nil, 405}, {"DELETE", "/ack", "", nil, 405},
		{"GET", "/ack", "", nil, 404}, {"HEAD", "/ack?id=link.width:0x1/1", "", nil, 404},
		{"GET", "/now", "x", nil, 400},
		{"GET", "/now", "", []string{"X-HTTP-Method-Override", "POST"}, 200},
		{"GET", "/now", "", []string{"Range", "bytes=0-10"}, 200}, {"GET", "/style.css", "", []string{"Range", "bytes=0-" + strings.Repeat("0,1-", 1000) + "2"}, 200},
		{"GET", "/now", "", []string{"If-None-Match", "*", "If-Match", "x"}, 200}, {"GET", "/now", "", []string{"X-Forwarded-Host", "evil.example"}, 200},
		{"GET", "/now", "", []string{"Upgrade", "websocket", "Connection", "Upgrade"}, 200},
		{"POST", "/ack", bomb.String(), []string{"Content-Type", form, "Content-Encoding", "gzip"}, 400},
		{"POST", "/ack", strings.Repeat("a=b&", 4000), []string{"Content-Type", form}, 400},
		{"POST", "/ack", strings.Repeat("%", 4000), []string{"Content-Type", form}, 400},
		{"POST", "/ack", "id=x", []string{"Content-Type", "multipart/form-data; boundary=x"}, 400},
		{"POST", "/ack", "id=x&token=", []string{"Content-Type", form, "Sec-Fetch-Site", "same-site"}, 403},
		{"POST", "/ack", "id=x&token=", []string{"Content-Type", form, "Sec-Fetch-Site", "none", "Origin", "null"}, 403},
		{"POST", "/ack?token=" + s.token, "id=x", []string{"Content-Type", form}, 403},
	} {
		w := ask(t, s, c.method, c.address, c.body, c.header...)
		if w.Code != c.want || strings.Contains(w.Body.String(), "evil.example") {
			t.Errorf("%s %s %.60v: %d, want %d: %.200s", c.method, c.address, c.header, w.Code, c.want, text(w.Body.String()))
		}
	}
}

// TestTurns: pages are made for clients by turns: one with many requests delays another by one page, and
// not more than maxWaiting of its own wait. What a client gives up is not made.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := turns{free: 2}
		var group sync.WaitGroup
		refused := make(chan error, 1000)
		work := func(client string, ctx context.Context) time.Duration {
			began := time.Now()
			if err := x.take(ctx, client); err != nil {
				refused <- err
				return time.Since(began)
			}
			defer x.release()
			defer time.Sleep(time.Second)
			return time.Since(began)
		}
		for range 300 {
			group.Go(func() { work("crowd", t.Context()) })
		}
		synctest.Wait()
		if n := len(refused); n != 300-2-maxWaiting {
			t.Errorf("%d refused", n)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		group.Go(func() { work("brief", brief) })
		time.Sleep(time.Millisecond)
		cancel()
		if waited := work("viewer", t.Context()); waited > 2*time.Second {
			t.Errorf("another client waits for %v", waited)
		}
		group.Wait()
		if x.free != 2 || len(x.order) != 0 || len(x.waiting) != 0 {
			t.Errorf("at the end: %d free, %q wait", x.free, x.order)
		}
	})
	for address, want := range map[string]string{"192.0.2.1:9": "192.0.2.1", "[::ffff:192.0.2.1]:9": "192.0.2.1", "[2001:db8:1:2:3::]:9": "2001:db8:1:2::/64", "@": "@"} {
		r := httptest.NewRequest("GET", "/", nil)
		if r.RemoteAddr = address; clientOf(r) != want {
			t.Errorf("%s: %s, want %s", address, clientOf(r), want)
		}
	}
}

// TestLostOnMap: a link that is down to a node that is gone has no cell on the map; its group is marked.
func TestLostOnMap(t *testing.T) {
	g := madeFabric(t, 4, 2, 2, nil, "node-2-1") // its host does not answer
	p := g.NodeByName("leaf-2")[0].Port(1)
	s := siteOf(t, reportOf(g, audit.Finding{Audit: "links", Check: "link.down", Subject: audit.OfPort(p), Severity: audit.Critical, Message: "is down", Since: noon}), "")
	got := text(ask(t, s, "GET", "/map", "").Body.String())
	if !strings.Contains(got, "1 error") || !strings.Contains(got, "leaf-2/1: no link, and a finding") {
		t.Errorf("%s", got)
	}
}
