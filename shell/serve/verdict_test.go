package serve

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// verdict returns the class and the sentence at the head of a page.
func verdict(t testing.TB, s *Site, address string) (class, sentence string) {
	t.Helper()
	body := ask(t, s, "GET", address, "").Body.String()
	m := regexp.MustCompile(`(?s)<div class="verdict ?(\w*)"><h1>(.*?)</h1>`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("%s has no verdict: %s", address, text(body))
	}
	return m[1], text(m[2])
}

// incompleteFabric returns f with a problem, as a sweep that missed something.
func incompleteFabric(f *fabric.Fabric, kind fabric.ProblemKind, words string) *fabric.Fabric {
	return f.With(fabric.Reading{Problems: []fabric.Problem{{Kind: kind, Text: words}}})
}

// withLIDs gives the nodes of f LIDs from first on; the first host has the subnet manager.
func withLIDs(f *fabric.Fabric, first mad.LID) *fabric.Fabric {
	nodes := f.Nodes()
	for i := range nodes {
		for p := range nodes[i].Ports() {
			if info := p.Info(); info != nil {
				info.LID, info.MasterSMLID = first+mad.LID(i), first
			}
		}
	}
	return f
}

// TestVerdicts: the sentence of Now in each state that is not as it should be. None of them is "all is well", and
// what is not known is said with its reason.
func TestVerdicts(t *testing.T) {
	whole, cut := madeFabric(t, 4, 2, 2, nil), madeFabric(t, 4, 2, 2, nil, "leaf-1 - spine-1")
	fewer := madeFabric(t, 3, 2, 2, nil) // without leaf-4 and its hosts
	alone := madeFabric(t, 4, 1, 2, nil, "leaf-1 - spine-1")
	port := cut.NodeByName("leaf-1")[0].Port(3)
	before, after := withLIDs(madeFabric(t, 4, 2, 2, nil), 1), withLIDs(madeFabric(t, 4, 2, 2, nil), 100)
	finding := func(check string, s audit.Subject, severity audit.Severity, since time.Duration) audit.Finding {
		return audit.Finding{Audit: "links", Check: check, Subject: s, Severity: severity, Message: "is so", Since: noon.Add(-since)}
	}
	change := func(r *audit.Report, f func(*audit.Report)) *audit.Report { f(r); return r }
	for _, c := range []struct {
		name            string
		report          *audit.Report
		cycles          []*fabric.Fabric // of the history; none: there is none
		later           time.Duration    // when the page is opened
		note            string
		class, sentence string
		also            []string
	}{
		{"all is well", reportOf(whole), []*fabric.Fabric{whole, whole}, 0, "", "", "No findings. All 8 hosts are connected by links.", nil},
		{"a device lost for a day", reportOf(whole), []*fabric.Fabric{whole, whole}, day, "The last try to read the fabric failed: no device.", "none",
			"No findings in what was judged. No new reading for 24 h. What is shown may have changed.", []string{"no device", "since"}},
		{"a partial sweep", reportOf(incompleteFabric(whole, fabric.ProblemTimedOut, "leaf-2: no answer")), nil, 0, "", "none",
			"No findings in what was judged. A part of the fabric was not read, so its state is not known.", []string{"1 timed out", "leaf-2: no answer"}},
		{"a sweep that was cut", reportOf(incompleteFabric(whole, fabric.ProblemCut, "cut after 10s")), nil, 0, "", "none",
			"No findings in what was judged. A part of the fabric was not read, so its state is not known.", []string{"cut after 10s"}},
		{"an audit failed", change(reportOf(whole), func(r *audit.Report) {
			r.Failures = []audit.Failure{{Audit: "sm", Err: errors.New("no answer of the manager")}}
		}), nil, 0, "", "none",
			"No findings in what was judged. All 8 hosts are connected by links. Some checks were not done.", []string{"audit sm: no answer of the manager"}},
		{"an audit judged nothing", change(reportOf(whole), func(r *audit.Report) { r.Idle = []audit.Idle{{Audit: "counters", Lacked: "PerfMgt is not supported"}} }), nil, 0, "", "none",
			"No findings in what was judged. All 8 hosts are connected by links. Some checks were not done.", []string{"audit counters: nothing was judged: PerfMgt is not supported"}},
		{"counters of a switch were not read", change(reportOf(whole), func(r *audit.Report) {
			r.Coverage.Count("links", "PortCounters", audit.OfNode(whole.NodeByName("leaf-2")[0]), audit.TimedOut, 1)
			r.Coverage.Count("links", "PortCounters", audit.OfNode(whole.NodeByName("leaf-1")[0]), audit.Answered, 1)
		}), nil, 0, "", "none", "No findings in what was judged. All 8 hosts are connected by links. Some checks were not done.", []string{"no answer from leaf-2"}},
		{"a check was not done", change(reportOf(whole), func(r *audit.Report) {
			r.Unjudged = []audit.Unjudged{{Audit: "links", Check: "link.width", Lacked: "PortInfo"}}
		}), nil, 0, "", "none",
			"No findings in what was judged. All 8 hosts are connected by links. Some checks were not done.", []string{"link.width: PortInfo"}},
		{"a link went down, and no audit said so", reportOf(cut), []*fabric.Fabric{whole, cut}, 0, "", "down", "1 link is down. All 8 hosts are connected by links.", nil},
		{"a link is down for two days", reportOf(cut, finding("link.down", audit.OfPort(port), audit.Critical, 2*day)), []*fabric.Fabric{cut, cut}, 0, "", "down", "1 link is down. All 8 hosts are connected by links.", nil},
		{"a link is down, without a history", reportOf(cut, finding("link.down", audit.OfPort(port), audit.Critical, time.Hour)), nil, 0, "", "down", "1 link is down. All 8 hosts are connected by links.", []string{"No history is kept"}},
		{"nodes are gone", reportOf(fewer), []*fabric.Fabric{whole, fewer}, 0, "", "down", "3 nodes are gone. All 6 hosts that answer are connected by links.", []string{"leaf-4"}},
		{"nodes went and are back", reportOf(whole), []*fabric.Fabric{whole, fewer, whole}, 0, "", "", "No findings. All 8 hosts are connected by links.", nil},
		{"two parts", reportOf(alone), nil, 0, "", "down", "The fabric has 2 parts that are not connected.", nil},
		{"a second manager", reportOf(whole, finding("sm.masters", audit.OfNode(whole.NodeByName("node-1-1")[0]), audit.Error, time.Minute)), nil, 0, "", "down", "1 cause needs work. All 8 hosts are connected by links.", []string{"sm.masters"}},
		{"the subnet manager restarts", reportOf(before, finding("sm.none", audit.OfFabric(), audit.Critical, time.Minute)), []*fabric.Fabric{before, before}, 0, "", "down", "1 cause needs work. All 8 hosts are connected by links.", []string{"sm.none", "since"}},
		{"it restarted, with other LIDs", reportOf(after), []*fabric.Fabric{before, after}, 0, "", "", "No findings. All 8 hosts are connected by links.", []string{"(0x0000000000001004): LID changed from 7 to 106"}},
		{"another subnet", reportOf(whole), nil, 0, "Another subnet answers since then", "", "No findings. All 8 hosts are connected by links.", []string{"Another subnet answers since then"}},
		{"the disk is full", reportOf(whole), []*fabric.Fabric{whole, whole}, 0, "This reading is not kept: history: database or disk is full", "", "No findings. All 8 hosts are connected by links.", []string{"disk is full"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := ""
			if c.cycles != nil {
				path = recorded(t, c.cycles...)
			}
			s := siteOf(t, c.report, path)
			s.Now = func() time.Time { return noon.Add(c.later) }
			s.Note("x", c.note)
			if class, sentence := verdict(t, s, "/now"); class != c.class || sentence != c.sentence {
				t.Errorf("%q %q, want %q %q", class, sentence, c.class, c.sentence)
			}
			got := text(ask(t, s, "GET", "/now", "").Body.String())
			for _, want := range c.also {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in: %s", want, got)
				}
			}
			if c.note != "" { // on all pages
				for _, address := range pages {
					if body := ask(t, s, "GET", address, "").Body.String(); !strings.HasPrefix(address, "/api/") && !strings.Contains(body, c.note) {
						t.Errorf("%s does not show the note", address)
					}
				}
			}
		})
	}
}

// TestGone: a node that went has its name, when it was there, and a link to its page of then; it is found by name.
func TestGone(t *testing.T) {
	whole, fewer := madeFabric(t, 4, 2, 2, nil), madeFabric(t, 3, 2, 2, nil)
	leaf := whole.NodeByName("leaf-4")[0]
	found := audit.Finding{Audit: "links", Check: "node.gone", Subject: audit.OfGUID(leaf.GUID(), audit.NoPort, leaf.GUID().String()), Severity: audit.Critical, Message: "was at spine-1/4", Since: noon.Add(-time.Minute)}
	s := siteOf(t, reportOf(fewer, found), recorded(t, whole, fewer))
	if got := text(ask(t, s, "GET", "/now", "").Body.String()); strings.Count(got, `&#34;leaf-4&#34; (`+leaf.GUID().String()+`)`) < 2 {
		t.Errorf("the name of the finding is not in: %s", got)
	}
	before := "/node/" + leaf.GUID().String() + "?at=2026-05-01T11%3A59%3A59Z"
	for _, address := range []string{"/node/leaf-4", "/node/" + leaf.GUID().String(), "/link/leaf-4/1", "/find?q=leaf-4"} {
		w := ask(t, s, "GET", address, "")
		if body := w.Body.String(); w.Code != 410 && !strings.HasPrefix(address, "/find") || !strings.Contains(body, `href="`+before+`"`) {
			t.Errorf("%s: %d %s", address, w.Code, body)
		}
	}
	if w := ask(t, s, "GET", strings.ReplaceAll(before, "&amp;", "&"), ""); w.Code != 200 || !strings.Contains(w.Body.String(), "leaf-4") {
		t.Errorf("before: %d %s", w.Code, text(w.Body.String()))
	}
	if w := ask(t, s, "GET", "/find?q="+url.QueryEscape("node-1-1"), ""); w.Code != 302 {
		t.Errorf("one node is found: %d", w.Code)
	}
	if got := text(ask(t, s, "GET", "/time?t1=2020-01-01&t2=now", "").Body.String()); !strings.Contains(got, "The history begins at") || !strings.Contains(got, "difference between") {
		t.Errorf("compared from before the beginning: %s", got)
	}
	if got := text(ask(t, s, "GET", "/link/leaf-1/3", "").Body.String()); !strings.Contains(got, "or earlier") {
		t.Errorf("the link was there when the history began: %s", got)
	}
}

// TestBadHistory: a history that is damaged, removed, replaced or locked while it is served does not take
// away what is known without it, and is never an empty history.
func TestBadHistory(t *testing.T) {
	whole, cut := madeFabric(t, 4, 2, 2, nil), madeFabric(t, 4, 2, 2, nil, "leaf-1 - spine-1")
	port := cut.NodeByName("leaf-1")[0].Port(3)
	found := audit.Finding{Audit: "links", Check: "link.down", Subject: audit.OfPort(port), Severity: audit.Critical, Message: "the link is down", Since: noon.Add(-time.Minute)}
	for _, c := range []struct {
		name   string
		breaks func(t *testing.T, path string)
		works  bool   // the pages have the history still
		says   string // else
	}{
		{"damaged", func(t *testing.T, path string) {
			st, err := os.Stat(path)
			if err == nil {
				err = os.WriteFile(path, []byte(strings.Repeat("damaged ", int(st.Size())/8)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, false, "The history cannot be read"},
		{"cut", func(t *testing.T, path string) {
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		}, false, "The history cannot be read"},
		{"removed", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, false, "The history cannot be read"},
		{"replaced", func(t *testing.T, path string) {
			other := recorded(t, whole, whole, cut)
			if err := os.Rename(other, path); err != nil {
				t.Fatal(err)
			}
		}, true, ""},
		{"another program writes", func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			c, err := db.Conn(context.Background())
			if err == nil {
				_, err = c.ExecContext(context.Background(), "begin immediate")
			}
			if err != nil {
				t.Fatal(err)
			}
		}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := recorded(t, whole, cut)
			s := siteOf(t, reportOf(cut, found), path)
			ask(t, s, "GET", "/now", "") // it is open
			c.breaks(t, path)
			class, sentence := verdict(t, s, "/now")
			if class != "down" || !strings.HasPrefix(sentence, "1 link is down.") {
				t.Errorf("%q %q", class, sentence)
			}
			for address, want := range map[string]string{"/now": "the link is down", "/link/leaf-1/3": "the link is down", "/node/leaf-1": "the link is down", "/map": "Pod 1", "/changes": "", "/time": ""} {
				w := ask(t, s, "GET", address, "")
				got := text(w.Body.String())
				if want != "" && (w.Code != 200 || !strings.Contains(got, want)) {
					t.Errorf("%s: %d, without %q: %s", address, w.Code, want, got)
				}
				if address != "/map" && strings.Contains(got, "No history is kept") {
					t.Errorf("%s: there is a history: %s", address, got)
				}
				if address != "/map" && !c.works && !strings.Contains(got, c.says) && !strings.Contains(got, "history.db") && !strings.Contains(got, "link went down") { // which SQLite has in memory
					t.Errorf("%s does not report it: %s", address, got)
				}
				if strings.Contains(got, "Nothing changed") || strings.Contains(got, "Nothing is recorded of this node") || strings.Contains(got, "Nothing of this kind changed") {
					t.Errorf("%s: %s", address, got)
				}
			}
		})
	}
}

// TestEventText: events in words.
func TestEventText(t *testing.T) {
	for _, c := range []struct {
		e    history.Event
		want string
	}{
		{history.Event{Kind: history.LinkDown, Subject: "leaf-1/3 - spine-1/1", Was: "4x hdr", Now: "polling"}, "leaf-1/3 - spine-1/1: link went down from 4x hdr to polling"},
		{history.Event{Kind: history.LinkGone, Subject: "leaf-1/3 - spine-1/1", Was: "4x hdr", Now: `with "spine-1" (0x1)`}, "leaf-1/3 - spine-1/1: link is gone with its node (4x hdr)"},
		{history.Event{Kind: history.AckBegin, Subject: "link.width:0x1/1", Was: "by mira", Now: "cable ordered"}, "link.width:0x1/1: acknowledged by mira: cable ordered"},
		{history.Event{Kind: "change.apply", Subject: "leaf-1/3", Was: "by mira", Now: "done"}, "leaf-1/3: apply by mira: done"},
	} {
		if got := eventText(&c.e); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
