package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// noon is the time of the last reading.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const hostile = `<script>alert("x")</script>`

// madeFabric returns a fabric of leaves leaf switches with hosts each, below spines, without some links.
// name names the nodes; nil: leaf-1, spine-1, node-1-1.
func madeFabric(t testing.TB, leaves, spines, hosts int, name func(string) string, without ...string) *fabric.Fabric {
	t.Helper()
	if name == nil {
		name = func(s string) string { return s }
	}
	b := fabric.NewBuilder()
	next := mad.GUID(0x1000)
	node := func(text string, kind mad.NodeType, ports int) int {
		next++
		return b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeGUID: next, SystemImageGUID: next, PortGUID: next, NodeType: kind, NumPorts: uint8(ports), LocalPortNum: 1}, Name: name(text)})
	}
	info := func(n, port int, up bool) {
		state, physical := mad.PortStateActive, mad.PortPhysicalStateLinkUp
		if !up {
			state, physical = mad.PortStateDown, mad.PortPhysicalStatePolling
		}
		b.SetPort(n, port, &mad.PortInfo{PortState: state, PortPhysicalState: physical, LinkWidthActive: 2, LinkWidthSupported: 2, LinkWidthEnabled: 2, LinkSpeedActive: 1, LinkSpeedSupported: 1, LinkSpeedEnabled: 1})
	}
	link := func(a, p, c, q int, text string) {
		up := !slices.Contains(without, text)
		info(a, p, up)
		info(c, q, up)
		if !up {
			return
		}
		if err := b.Link(a, p, c, q); err != nil {
			t.Fatal(err)
		}
	}
	var tops []int
	for s := range spines {
		tops = append(tops, node(fmt.Sprintf("spine-%d", s+1), mad.NodeTypeSwitch, leaves))
	}
	for l := range leaves {
		leaf := node(fmt.Sprintf("leaf-%d", l+1), mad.NodeTypeSwitch, hosts+spines)
		for s, top := range tops {
			link(leaf, hosts+s+1, top, l+1, fmt.Sprintf("leaf-%d - spine-%d", l+1, s+1))
		}
		for h := range hosts {
			link(node(fmt.Sprintf("node-%d-%d", l+1, h+1), mad.NodeTypeCA, 1), 1, leaf, h+1, fmt.Sprintf("node-%d-%d", l+1, h+1))
		}
	}
	return b.Build()
}

// reportOf returns the report of a cycle on f.
func reportOf(f *fabric.Fabric, found ...audit.Finding) *audit.Report {
	r := &audit.Report{Model: f, Subnet: fabric.Subnet{Given: "lab"}, Audits: []string{"links"}, Judged: []string{"link.width"}, Checks: 1, Findings: found, Began: noon.Add(-time.Second), Ended: noon}
	r.Coverage.Begin("links")
	return r
}

// siteOf returns a site that shows a report, with a history at path, or none.
func siteOf(t testing.TB, r *audit.Report, path string) *Site {
	s := &Site{
		Version: "test", Every: time.Minute, Now: func() time.Time { return noon.Add(10 * time.Second) },
		History: func(ctx context.Context) (*history.Store, error) {
			if path == "" {
				return nil, history.ErrNone
			}
			return history.Open(ctx, path)
		},
		Explain: func(check string) string { return map[string]string{"link.width": "Narrow link."}[check] },
		Topic: func(name string) (string, error) {
			if name != "targets" && name != "field port" {
				return "", errors.New("no such topic")
			}
			return "Targets are ports.", nil
		},
		Search: func(words string) ([]Topic, int, error) {
			if words == "nothing" {
				return nil, 0, errors.New("no topic has \"nothing\"")
			}
			return []Topic{{Name: "field " + words, Summary: "a <b> field"}}, 3, nil
		},
		Topics: []Topic{{"Guides", "shell-guide", "About the shell."}},
		Report: func(*audit.Report) ([]byte, error) { return []byte("{}"), nil },
	}
	if r != nil {
		s.Add(r)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ask sends a request; header has names and values.
func ask(t testing.TB, s *Site, method, address, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, address, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, address, nil)
	}
	r.Host = "127.0.0.1:9315"
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// text returns what a page says, without its markup.
func text(page string) string {
	page = regexp.MustCompile(`(?s)<title>.*?</title>|<[^>]*>`).ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(page), " ")
}

// recorded writes a history of cycles, an hour apart, the last one at noon.
func recorded(t testing.TB, list ...*fabric.Fabric) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.db")
	subnet := fabric.Subnet{Given: "lab"}
	first := noon.Add(-time.Duration(len(list)-1) * time.Hour)
	r, err := history.NewRecorder(t.Context(), path, subnet, first)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		if _, err := r.Record(t.Context(), history.Cycle{Time: first.Add(time.Duration(i) * time.Hour), Every: time.Hour, Source: "test", Fabric: f}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// pages are the addresses of all pages.
var pages = []string{
	"/now", "/offenders", "/map", "/map?by=load", "/map?by=errors", "/map?by=changes&open=none", "/map?q=node-1-1", "/link/leaf-1/1", "/link/leaf-1/3?span=1y", "/node/leaf-1", "/node/node-1-1",
	"/time", "/changes", "/changes?kind=link&span=1y", "/help", "/help/targets", "/help/check/link.width", "/help?words=port", "/find?q=node", "/api/audit_report",
}

// TestPages: each page of a healthy fabric and of a damaged one, with a history and without one,
// is a whole page under its policy, with links that the site answers.
func TestPages(t *testing.T) {
	whole, damaged := madeFabric(t, 4, 2, 2, nil), madeFabric(t, 4, 2, 2, nil, "leaf-1 - spine-1")
	p := damaged.NodeByName("leaf-1")[0].Port(4)
	found := audit.Finding{Audit: "links", Check: "link.width", Subject: audit.OfLink(p, p.Peer()), Severity: audit.Error, Message: "is narrow", Since: noon.Add(-time.Hour)}
	for _, c := range []struct {
		name   string
		site   *Site
		now    string
		errors string // of the only group of the map
	}{
		{"whole, without a history", siteOf(t, reportOf(whole), ""), "No findings. All 8 hosts are connected by links.", ""},
		{"whole", siteOf(t, reportOf(whole), recorded(t, whole, whole)), "No findings. All 8 hosts", ""},
		{"damaged", siteOf(t, reportOf(damaged, found), recorded(t, whole, whole, damaged)), "1 link is down. All 8 hosts are connected", "1 error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := text(ask(t, c.site, "GET", "/now", "").Body.String()); !strings.Contains(got, c.now) {
				t.Errorf("Now: %s", got)
			}
			if got := text(ask(t, c.site, "GET", "/map", "").Body.String()); c.errors != "" && !strings.Contains(got, c.errors) {
				t.Errorf("Map: a link is one error: %s", got)
			}
			links := map[string]bool{}
			for _, address := range pages {
				w := ask(t, c.site, "GET", address, "")
				body := w.Body.String()
				if w.Code != 200 || w.Header().Get("Content-Security-Policy") != policy {
					t.Errorf("%s: %d %s", address, w.Code, text(body))
				}
				if strings.HasPrefix(address, "/api/") {
					continue
				}
				if strings.Count(body, "<h1") != 1 || !strings.HasSuffix(body, "</html>\n") || strings.Contains(body, "style=") || strings.Contains(body, "ZgotmplZ") {
					t.Errorf("%s: not one whole page without styles of its own:\n%s", address, body)
				}
				for _, m := range regexp.MustCompile(`(?:href|action)="([^"#]*)`).FindAllStringSubmatch(body, -1) {
					if m[1] == "" { // on the page
						continue
					}
					links[strings.ReplaceAll(m[1], "&amp;", "&")] = true
				}
			}
			for address := range links {
				if w := ask(t, c.site, "GET", address, ""); w.Code != 200 && w.Code != 302 && !strings.HasPrefix(address, "/help/shell-guide") && !strings.HasPrefix(address, "/time?t1=24h") {
					t.Errorf("link to %s: %d %s", address, w.Code, text(w.Body.String()))
				}
			}
		})
	}
}

// TestPast: pages as of a time show the fabric and say the time on each page and link; a time without a
// reading is an error.
func TestPast(t *testing.T) {
	whole, damaged := madeFabric(t, 4, 2, 2, nil), madeFabric(t, 4, 2, 2, nil, "leaf-1 - spine-1")
	s := siteOf(t, reportOf(damaged), recorded(t, whole, damaged))
	w := ask(t, s, "GET", "/link/leaf-1/3?at=2026-05-01T11:30", "")
	if got := text(w.Body.String()); w.Code != 200 || !strings.Contains(got, "As of") || !strings.Contains(got, "leaf-1/3 – spine-1/1 ") || strings.Contains(got, "down since") || !strings.Contains(w.Body.String(), `href="/map?at=2026-05-01T11%3A30"`) {
		t.Errorf("%d %s", w.Code, got)
	}
	if got := text(ask(t, s, "GET", "/link/leaf-1/3", "").Body.String()); !strings.Contains(got, "down since") {
		t.Errorf("now: %s", got)
	}
	if w := ask(t, s, "GET", "/now?at=2020-01-01", ""); w.Code != 404 || !strings.Contains(w.Body.String(), "nothing was recorded until") {
		t.Errorf("%d %s", w.Code, text(w.Body.String()))
	}
	if w := ask(t, s, "GET", "/now?at=soon", ""); w.Code != 400 {
		t.Errorf("%d %s", w.Code, text(w.Body.String()))
	}
	got := text(ask(t, s, "GET", "/time?t1=2026-05-01T11:00&t2=2026-05-01T12:00", "").Body.String())
	if !strings.Contains(got, "1 difference between") || !strings.Contains(got, "spine-1/1 - leaf-1/3: link → nothing") {
		t.Errorf("compared: %s", got)
	}
}

// TestStale: what is not known is never shown as good.
func TestStale(t *testing.T) {
	s := siteOf(t, reportOf(madeFabric(t, 2, 1, 1, nil)), "")
	s.Now = func() time.Time { return noon.Add(24 * time.Hour) }
	s.Note("reading", "The last try to read the fabric failed: no device.")
	got := text(ask(t, s, "GET", "/now", "").Body.String())
	for _, want := range []string{"No new reading for 24 h.", "No findings in what was judged.", "no device"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
	s.Note("reading", "")
	if strings.Contains(ask(t, s, "GET", "/now", "").Body.String(), "no device") {
		t.Error("the notice stays")
	}
	if w := ask(t, siteOf(t, nil, ""), "GET", "/now", ""); w.Code != 503 {
		t.Errorf("without a reading: %d", w.Code)
	}
}

// TestHostile: names of nodes are text on all pages, whatever they are.
func TestHostile(t *testing.T) {
	for _, evil := range []string{hostile, `" onload="alert(1)`, "\u202egnp.exe", "{{.}}</title></svg>", strings.Repeat("W", 64<<10), "../../etc/passwd", "a/b?c#d%2f"} {
		f := madeFabric(t, 3, 2, 1, func(s string) string {
			if s == "leaf-2" || s == "node-2-1" || s == "spine-1" {
				return evil
			}
			return s
		})
		leaf := f.NodeByGUID(f.NodeByName("leaf-1")[0].GUID())[0]
		finding := audit.Finding{Audit: "links", Check: "link.width", Subject: audit.OfLink(leaf.Port(2), leaf.Port(2).Peer()), Severity: audit.Warning, Message: evil}
		r := reportOf(f, finding)
		r.Notes = []string{evil}
		s := siteOf(t, r, recorded(t, f))
		list := append([]string{"/link/" + leaf.Port(2).Peer().Node().GUID().String() + "/1", "/find?q=" + url.QueryEscape(evil[:min(len(evil), 100)]), "/node/" + url.PathEscape(evil[:min(len(evil), 100)]), "/help?words=" + url.QueryEscape(evil[:min(len(evil), 100)]), "/help/" + url.PathEscape(evil[:min(len(evil), 100)])}, pages...)
		for _, address := range list {
			body := ask(t, s, "GET", address, "").Body.String()
			if strings.Contains(body, hostile) || strings.Contains(body, ` onload="`) || strings.Contains(body, "</title></svg>") || strings.ContainsRune(body, '\u202e') || len(body) > 1<<20 {
				t.Errorf("%.40q at %.80s: %d bytes", evil, address, len(body))
			}
			if n := len(regexp.MustCompile(`<script\b`).FindAllString(body, -1)); n > 1 {
				t.Errorf("%.40q at %.80s: %d scripts", evil, address, n)
			}
		}
	}
}

// TestGuard: requests of other sites, other methods, path tricks and huge queries are refused, in words.
func TestGuard(t *testing.T) {
	s := siteOf(t, reportOf(madeFabric(t, 2, 1, 1, nil)), "")
	s.Hosts = []string{"fabric.example.org"}
	for _, c := range []struct {
		method, address string
		header          []string
		want            int
	}{
		{"GET", "/now", nil, 200},
		{"HEAD", "/now", nil, 200},
		{"GET", "/now", []string{"Host", "localhost:9315"}, 200},
		{"GET", "/now", []string{"Host", "[::1]:9315"}, 200},
		{"GET", "/now", []string{"Host", "Fabric.example.org"}, 200},
		{"GET", "/now", []string{"Host", "evil.example"}, 421},
		{"GET", "/now", []string{"Host", "127.0.0.1.evil.example"}, 421},
		{"GET", "/now", []string{"Host", ""}, 421},
		{"GET", "/now", []string{"Origin", "http://evil.example"}, 403},
		{"GET", "/now", []string{"Origin", "null"}, 403},
		{"GET", "/now", []string{"Origin", "http://127.0.0.1:9315"}, 200},
		{"POST", "/now", nil, 405},
		{"POST", "/ack", nil, 405},
		{"PUT", "/map", nil, 405},
		{"POST", "/now", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"DELETE", "/api/audit_report", nil, 405},
		{"GET", "/now?x=" + strings.Repeat("a", 5000), nil, 414},
		{"GET", "/now?at=" + strings.Repeat("a", 300), nil, 400},
		{"GET", "/now?at=1h&at=2h", nil, 400},
		{"GET", "/map?by=hope", nil, 400},
		{"GET", "/%2e%2e/%2e%2e/etc/passwd", nil, 404},
		{"GET", "/style.css/../../etc/passwd", nil, 307},
		{"GET", "/link/leaf-1/-1", nil, 400},
		{"GET", "/link/leaf-1/99999999999999999999", nil, 400},
		{"GET", "/link/..%2f..%2fetc/1", nil, 404},
		{"GET", "/api/..%2faudit_report", nil, 404},
		{"GET", "/nothing", nil, 404},
	} {
		if w := ask(t, s, c.method, c.address, "", c.header...); w.Code != c.want {
			t.Errorf("%s %.60s %v: %d, want %d: %s", c.method, c.address, c.header, w.Code, c.want, text(w.Body.String()))
		}
	}
}

// TestAck: only a known user, on the form of this site, with its secret, acknowledges, and only what is open.
func TestAck(t *testing.T) {
	f := madeFabric(t, 2, 1, 1, nil)
	p := f.NodeByName("leaf-1")[0].Port(2)
	found := audit.Finding{Audit: "links", Check: "link.width", Subject: audit.OfLink(p, p.Peer()), Severity: audit.Warning, Message: "is narrow"}
	s := siteOf(t, reportOf(f, found), "")
	var got []Ack
	s.Acknowledge = func(a Ack) error { got = append(got, a); return nil }
	s.User = func(r *http.Request) string {
		if name, password, _ := r.BasicAuth(); password == "right" {
			return name
		}
		return ""
	}
	const form = "Content-Type"
	right := []string{form, "application/x-www-form-urlencoded", "Authorization", "Basic bWlyYTpyaWdodA==", "Origin", "http://127.0.0.1:9315"}
	page := ask(t, s, "GET", "/ack?id="+url.QueryEscape(found.ID()), "", right...).Body.String()
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(page)
	if token == nil {
		t.Fatal(text(page))
	}
	body := func(change ...string) string {
		v := url.Values{"id": {found.ID()}, "token": {token[1]}, "reason": {"cable ordered"}, "until": {"2026-05-20"}}
		for i := 0; i+1 < len(change); i += 2 {
			v.Set(change[i], change[i+1])
		}
		return v.Encode()
	}
	for _, c := range []struct {
		what, body string
		header     []string
		want       int
	}{
		{"no user", body(), right[:2], 403},
		{"wrong password", body(), []string{right[0], right[1], "Authorization", "Basic bWlyYTp3cm9uZw=="}, 403},
		{"another site", body(), append(right[:4:4], "Origin", "http://evil.example"), 403},
		{"another site, by the browser", body(), append(right[:4:4], "Sec-Fetch-Site", "cross-site"), 403},
		{"no secret", body("token", ""), right, 403},
		{"another secret", body("token", "x"), right, 403},
		{"text of a form without a script", body(), append([]string{form, "text/plain"}, right[2:]...), 400},
		{"no reason", body("reason", " "), right, 400},
		{"the past", body("until", "2026-04-01"), right, 400},
		{"for ever", body("until", "2036-04-01"), right, 400},
		{"not open", body("id", "link.width:0x1/1"), right, 409},
		{"a pattern", body("id", "*"), right, 409},
		{"too long", body("reason", strings.Repeat("x", 5000)), right, 400},
	} {
		if w := ask(t, s, "POST", "/ack", c.body, c.header...); w.Code != c.want || len(got) > 0 {
			t.Fatalf("%s: %d, want %d: %s %v", c.what, w.Code, c.want, w.Body, got)
		}
	}
	if w := ask(t, s, "POST", "/ack", body(), right...); w.Code != 303 || len(got) != 1 || got[0].By != "mira" || got[0].Reason != "cable ordered" || got[0].ID != found.ID() {
		t.Errorf("%d %s %+v", w.Code, w.Body, got)
	}
	if page := text(ask(t, s, "GET", "/now", "").Body.String()); !strings.Contains(page, "acknowledged") || !strings.Contains(page, "mira , until 20 May 2026: “ cable ordered ”") {
		t.Errorf("before the next cycle: %s", page)
	}
	if page := text(ask(t, s, "GET", "/changes", "").Body.String()); !strings.Contains(page, "Acknowledged 1") {
		t.Errorf("before the next cycle: %s", page)
	}
}

// userOf returns a function that knows all requests as those of a user.
func userOf(name string) func(*http.Request) string {
	return func(*http.Request) string { return name }
}
