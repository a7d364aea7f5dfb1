package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// tablesFor returns tables of a topology, which were read a minute before noon.
func tablesFor(t testing.TB, spec string) *Tables {
	t.Helper()
	r, err := engines.Compute(t.Context(), routingtest.Graph(t, spec, graph.BuildOptions{}), "minhop", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Tables{r, noon.Add(-time.Minute)}
}

// siteWithTables returns a site of a topology whose tables were read.
func siteWithTables(t testing.TB, spec string) (*Site, *Tables) {
	t.Helper()
	tables := tablesFor(t, spec)
	s := siteOf(t, reportOf(tables.Fabric()), "")
	s.SetTables(tables)
	return s, tables
}

// TestPathsPage: the page has all links of the way of packets, with tables and routes, and the way back; ends
// are hosts, ports, LIDs and GUIDs; errors name what is unknown.
func TestPathsPage(t *testing.T) {
	s, tables := siteWithTables(t, "fattree:k=4,levels=2")
	f := tables.Fabric()
	first := f.NodeByName("node-0001 HCA-1")[0]
	last := f.NodeByName("node-0007 HCA-1")[0]
	g := tables.Routes.Graph()
	port := func(n *fabric.Node) *fabric.Port { return n.Port(1) }
	lid := func(n *fabric.Node) mad.LID { return routingtest.LID(t, g, n.Name()) }
	want := "node-0001 HCA-1 reaches node-0007 HCA-1 over 4 links."
	for _, ends := range [][2]string{
		{"node-0001", "node-0007"}, {"node-0001 HCA-1", "node-0007 HCA-1/1"}, {fmt.Sprint(lid(first)), fmt.Sprint(lid(last))},
		{first.GUID().String(), port(last).GUID().String()},
	} {
		w := ask(t, s, "GET", "/paths?from="+url.QueryEscape(ends[0])+"&to="+url.QueryEscape(ends[1]), "")
		got := text(w.Body.String())
		if w.Code != 200 || !strings.Contains(got, want) || !strings.Contains(got, "60 s before the reading") || strings.Count(w.Body.String(), `data-k="Hop"`) != 4 {
			t.Errorf("%v: %d, %s", ends, w.Code, got)
		}
	}
	// The hops are those of the tables.
	p, err := tables.Routes.Trace(lid(first), lid(last))
	if err != nil {
		t.Fatal(err)
	}
	page := text(ask(t, s, "GET", "/paths?from=node-0001&to=node-0007", "").Body.String())
	for _, l := range linksOf(p) {
		if row := l.from.Name() + " → " + l.to.Name(); !strings.Contains(page, row) {
			t.Errorf("without %q: %s", row, page)
		}
	}
	for address, want := range map[string]string{
		"/paths":                               "Give two ends",
		"/paths?from=node-0001":                "to: missing",
		"/paths?from=nothing&to=node-0001":     "from: unknown node",
		"/paths?from=node-0001&to=60000":       "no port has LID 60000",
		"/paths?from=node-0001&to=node-0001":   "are the same port",
		"/paths?without=spine-9":               "What may be meant",
		"/paths?without=a,b,c,d,e,f,g,h,i":     "want at most 8",
		"/paths?from=%3Cscript%3E&to=x":        "unknown node",
		"/paths?from=node-0001&to=node-00010":  "to: unknown node",
		"/paths?from=node-0001&to=node-0007/9": "to: ",
	} {
		w := ask(t, s, "GET", address, "")
		if got := text(w.Body.String()); !strings.Contains(got, want) || strings.Contains(w.Body.String(), `"<script>"`) {
			t.Errorf("%s: %d, without %q: %s", address, w.Code, want, got)
		}
	}
}

// TestBrokenPath: a table that drops packets is the verdict.
func TestBrokenPath(t *testing.T) {
	s, tables := siteWithTables(t, "fattree:k=4,levels=2")
	g := tables.Routes.Graph()
	to := routingtest.LID(t, g, "node-0007 HCA-1")
	tables.Routes.EditRow(routingtest.SwitchNamed(t, g, "leaf-1"))[to] = routes.NoPort
	w := ask(t, s, "GET", "/paths?from=node-0001&to=node-0007", "")
	if got := text(w.Body.String()); !strings.Contains(got, "Packets from node-0001 HCA-1 do not reach node-0007 HCA-1") || !strings.Contains(got, "drops LID") {
		t.Errorf("%s", got)
	}
}

// TestWhatIf: a leaf that goes takes its hosts along, a spine does not; the result is computed once, and
// other tables make others.
func TestWhatIf(t *testing.T) {
	s, _ := siteWithTables(t, "fattree:k=4,levels=2")
	for address, want := range map[string]string{
		"/paths?without=leaf-1":                              "2 hosts lose their last link.",
		"/paths?without=leaf-1/1":                            "1 host loses its last link.",
		"/paths?without=spine-1":                             "No subnet manager is known",
		"/paths?from=node-0001&to=node-0007&without=spine-1": "Without spine-1",
		"/paths?without=spine-1%2Cspine-2":                   "pairs lose their path",
	} {
		w := ask(t, s, "GET", address, "")
		if got := text(w.Body.String()); w.Code != 200 || !strings.Contains(got, want) {
			t.Errorf("%s: %d, without %q: %s", address, w.Code, want, got)
		}
	}
	n := len(s.work.of)
	ask(t, s, "GET", "/paths?without=leaf-1", "")
	if len(s.work.of) != n {
		t.Errorf("%d results, was %d", len(s.work.of), n)
	}
	s.SetTables(tablesFor(t, "fattree:k=4,levels=2"))
	if len(s.work.of) != 0 {
		t.Errorf("%d results of other tables", len(s.work.of))
	}
}

// TestNoTables: pages say why paths are not known, and the API too.
func TestNoTables(t *testing.T) {
	s := siteOf(t, reportOf(madeFabric(t, 2, 2, 2, nil)), "")
	for address, want := range map[string]string{
		"/paths?from=node-1-1&to=node-2-1": "Forwarding tables are not read yet",
		"/link/leaf-1/1":                   "Routes are not known.",
		"/node/leaf-1":                     "Routes are not known.",
	} {
		if got := text(ask(t, s, "GET", address, "").Body.String()); !strings.Contains(got, want) {
			t.Errorf("%s: without %q: %s", address, want, got)
		}
	}
	if w := ask(t, s, "GET", "/api/path?from=1&to=2", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "not read yet") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.Every, s.NoTables = 0, "The file has none."
	if got := text(ask(t, s, "GET", "/paths", "").Body.String()); !strings.Contains(got, "The file has none.") {
		t.Errorf("%s", got)
	}
}

// TestPathsOfFile: a file has its tables, and pages state that of others at another time.
func TestPathsOfFile(t *testing.T) {
	tables := tablesFor(t, "fattree:k=4,levels=2")
	f, g := tables.Fabric(), tables.Routes.Graph()
	rows := make([][]byte, len(f.Nodes()))
	for i, n := range g.Switches() {
		rows[n.ID()] = tables.Routes.Row(i)
	}
	s := siteOf(t, reportOf(f.With(fabric.Reading{LFTs: rows})), "")
	s.Every = 0
	if got := text(ask(t, s, "GET", "/paths?from=node-0001&to=node-0007&without=leaf-1", "").Body.String()); !strings.Contains(got, "over 4 links") || !strings.Contains(got, "2 hosts lose") {
		t.Errorf("%s", got)
	}
}

// TestOldTables: tables of another fabric than the one that is shown are marked.
func TestOldTables(t *testing.T) {
	s, _ := siteWithTables(t, "fattree:k=4,levels=2")
	s.Add(reportOf(routingtest.Topology(t, "fattree:k=4,levels=2,remove_links=1,seed=1")))
	if got := text(ask(t, s, "GET", "/paths?from=node-0001&to=node-0007", "").Body.String()); !strings.Contains(got, "The fabric has changed since") {
		t.Errorf("%s", got)
	}
}

// TestWantsTables: tables are read in the first cycle, soon after a change and once more after that, and
// then seldom; never twice in five cycles, however often the fabric changes.
func TestWantsTables(t *testing.T) {
	a, b := tablesFor(t, "ring:n=4"), tablesFor(t, "ring:n=5")
	for _, test := range []struct {
		name  string
		of    func(cycle int) *Tables
		until int
		want  []int
	}{
		{"unchanged", func(int) *Tables { return a }, 70, []int{0, 30, 60}},
		{"one change", func(c int) *Tables {
			if c < 10 {
				return a
			}
			return b
		}, 60, []int{0, 10, 15, 45}},
		{"changes always", func(c int) *Tables { return []*Tables{a, b}[c%2] }, 22, []int{0, 5, 10, 15, 20}},
	} {
		s, got := &Site{Now: time.Now}, []int{}
		for c := range test.until {
			x := test.of(c)
			if s.WantsTables(x.Fabric()) {
				got = append(got, c)
				s.SetTables(x)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestCompute: one computation runs at a time, is kept, and a page does not wait for it longer than it
// wants; too many are refused, and a panic is an error.
func TestCompute(t *testing.T) { synctest.Test(t, testCompute) }

func testCompute(t *testing.T) {
	var w work
	var running, most atomic.Int32
	release := make(chan struct{})
	f := func(context.Context) (int, error) {
		most.Store(max(most.Load(), running.Add(1)))
		<-release
		running.Add(-1)
		return 7, nil
	}
	for i := range maxPending {
		if _, err := compute(t.Context(), &w, workKey{nil, fmt.Sprint(i)}, 0, f); !errors.Is(err, errPending) {
			t.Fatal(err)
		}
	}
	if _, err := compute(t.Context(), &w, workKey{nil, "more"}, 0, f); err != errBusy {
		t.Errorf("%v, want %v", err, errBusy)
	}
	synctest.Wait()
	close(release)
	for i := range maxPending {
		if n, err := compute(t.Context(), &w, workKey{nil, fmt.Sprint(i)}, time.Minute, f); n != 7 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
	if _, err := compute(t.Context(), &w, workKey{nil, "bug"}, time.Minute, func(context.Context) (int, error) { panic("x") }); err == nil {
		t.Error("no error of a panic")
	}
	for i := range 3 * maxWork {
		compute(t.Context(), &w, workKey{nil, fmt.Sprint("k", i)}, time.Minute, f)
	}
	if len(w.of) > maxWork || len(w.of) != len(w.order) {
		t.Errorf("%d results, %d in order", len(w.of), len(w.order))
	}
	for i := range 10 { // other fabrics
		compute(t.Context(), &w, workKey{i, "x"}, time.Minute, f)
	}
	if len(w.of) > maxWorkOf+1 || len(w.of) != len(w.order) {
		t.Errorf("results of %d fabrics", len(w.of))
	}
}

// TestUse: the page of a link has the routes over it, pairs that lead to their paths, and the evidence,
// without the names of other hosts.
func TestUse(t *testing.T) {
	s, tables := siteWithTables(t, "fattree:k=4,levels=2")
	leaf := tables.Fabric().NodeByName("leaf-1")[0]
	var up *fabric.Port
	for p := range leaf.Ports() {
		if p.Peer() != nil && p.Peer().Node().IsSwitch() {
			up = p
		}
	}
	w := ask(t, s, "GET", "/link/"+portKey(up), "")
	page := w.Body.String()
	if got := text(page); !strings.Contains(got, "routes from a host to a LID of another") || !strings.Contains(page, `href="/paths?from=`) || !strings.Contains(page, `href="/paths?without=leaf-1%2F`) || !strings.Contains(got, "report impact") {
		t.Errorf("%s", got)
	}
	pairs := regexp.MustCompile(`href="(/paths\?from=[^"]*)"`).FindAllStringSubmatch(page, -1)
	for _, m := range pairs {
		got := text(ask(t, s, "GET", html.UnescapeString(m[1]), "").Body.String())
		if !strings.Contains(got, up.Name()+" → "+up.Peer().Name()) && !strings.Contains(got, up.Peer().Name()+" → "+up.Name()) {
			t.Errorf("%s does not cross %s: %s", m[1], up.Name(), got)
		}
	}
	if len(pairs) == 0 || len(pairs) > maxPairs {
		t.Errorf("%d pairs", len(pairs))
	}
	w = ask(t, s, "GET", "/evidence/"+portKey(up), "")
	if kind := w.Header().Get("Content-Disposition"); w.Code != 200 || !strings.HasPrefix(kind, `attachment; filename="evidence-leaf-1-`) {
		t.Fatalf("%d %s: %s", w.Code, kind, w.Body)
	}
	if got := w.Body.String(); strings.Contains(got, "node-000") || !strings.Contains(got, `"schema":"evidence/1"`) || !strings.Contains(got, "nothing was sent") {
		t.Errorf("%.3000s", text(got))
	}
	for address, want := range map[string]int{"/evidence/leaf-1": 200, "/evidence/nothing": 404, "/evidence/leaf-1/77": 404, "/evidence/leaf-1/x": 404} {
		if w := ask(t, s, "GET", address, ""); w.Code != want {
			t.Errorf("%s: %d, want %d", address, w.Code, want)
		}
	}
}

// TestAPI: each address of the API answers JSON of the schema that the list names; lists come in parts;
// errors are JSON.
func TestAPI(t *testing.T) {
	tables := tablesFor(t, "fattree:k=4,levels=2")
	f := tables.Fabric()
	s := siteOf(t, reportOf(f), recorded(t, f, f))
	s.SetTables(tables)
	s.Report = nil
	get := func(address string, want int) (x struct {
		Schema, Error string
		Total, Offset int
		Next          string
		Items         []struct{ Schema, Name string }
		Addresses     []struct{ Address, Value string }
	}) {
		t.Helper()
		w := ask(t, s, "GET", address, "")
		if w.Code != want || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d, %.300s", address, w.Code, w.Body)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		return x
	}
	schema := map[string]string{}
	for _, a := range get("/api", 200).Addresses {
		schema[a.Address] = a.Value
	}
	if len(schema) != len(endpoints) {
		t.Errorf("%d addresses, want %d", len(schema), len(endpoints))
	}
	for address, list := range map[string]bool{
		"/api/nodes": true, "/api/links": true, "/api/links?node=leaf-1": true, "/api/path?from=node-0001&to=node-0007": false, "/api/impact?without=leaf-1": false,
		"/api/port?node=leaf-1&port=1": false,
	} {
		x := get(address, 200)
		got := x.Schema
		if list {
			if x.Schema != "api_list/1" || x.Total != len(x.Items) || x.Total == 0 {
				t.Fatalf("%s: %+v", address, x)
			}
			got = x.Items[0].Schema
		}
		if path, _, _ := strings.Cut(address, "?"); got != schema[path] {
			t.Errorf("%s: schema %s, want %s", address, got, schema[path])
		}
	}
	// All nodes, in parts.
	seen := map[string]bool{}
	for address := "/api/nodes?limit=5&at=now"; address != ""; {
		x := get(address, 200)
		for _, n := range x.Items {
			seen[n.Name] = true
		}
		if len(x.Items) > 5 {
			t.Errorf("%d items, want at most 5", len(x.Items))
		}
		address = x.Next
	}
	if len(seen) != len(f.Nodes()) {
		t.Errorf("%d nodes in parts, want %d", len(seen), len(f.Nodes()))
	}
	if n := get("/api/nodes?type=switch&name=LEAF", 200).Total; n != 4 {
		t.Errorf("%d leaves, want 4", n)
	}
	get("/api/events?node=leaf-1&port=1&at=12:00", 200)
	for address, want := range map[string]int{
		"/api/nothing": 404, "/api/nodes?x=1": 400, "/api/nodes?limit=0": 400, "/api/nodes?limit=1001": 400, "/api/nodes?offset=-1": 400, "/api/nodes?type=x": 400,
		"/api/links?node=x": 404, "/api/path": 400, "/api/path?from=x&to=y": 404, "/api/impact": 400, "/api/impact?without=x": 404, "/api/events?kind=x": 400,
		"/api/port": 400, "/api/port?node=leaf-1&port=x": 400, "/api/cable?serial=x": 404, "/api/nodes?at=x": 400, "/api/audit_report?at=1h": 400,
	} {
		if x := get(address, want); x.Schema != "error/1" || x.Error == "" {
			t.Errorf("%s: %+v", address, x)
		}
	}
}
