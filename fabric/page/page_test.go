package page

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

func parse(t testing.TB, spec string) *fabric.Fabric {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pageOf is a page about f, with tables of minimal hops.
func pageOf(t testing.TB, f *fabric.Fabric) *Page {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := engines.Compute(t.Context(), g, "minhop", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{Report: &audit.Report{Model: f, Fabric: f.String()}, FailOn: audit.Warning, Version: "fabsh", Commands: []string{"fabsh"}}
	if p.Verdict, err = verify.Tables(t.Context(), r, verify.Options{}); err != nil {
		t.Fatal(err)
	}
	if p.Balance, err = traffic.MeasureBalance(t.Context(), r, 0, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func written(t testing.TB, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostileNames: names are text, whatever is in them; what cannot be seen is shown.
func TestHostileNames(t *testing.T) {
	names := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "\u202egnp.exe", "a\x1b[31m\x00b", "\xff\xfe", "</style></svg>", "{{.Style}}", "javascript:alert(1)", "--><!--"}
	f := parse(t, "fattree:k=4")
	rename := map[mad.GUID]string{}
	for i := range f.Nodes() {
		rename[f.Nodes()[i].GUID()] = names[i%len(names)]
	}
	f = f.Renamed(rename)
	p := pageOf(t, f)
	for i := range f.Nodes() {
		p.Report.Findings = append(p.Report.Findings, audit.Finding{Check: "node.silent", Subject: audit.OfNode(&f.Nodes()[i]), Severity: audit.Error, Message: names[i%len(names)]})
	}
	p.Report.Notes = names
	p.Report.Failures = []audit.Failure{{Audit: "x", Err: errors.New(names[0])}}
	p.NoRoutes = names[0]
	html := written(t, p)
	for _, bad := range []string{"<script>alert", "<img", "\u202e", "\x1b", "\x00", "\xff", "ZgotmplZ"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;alert(1)", `\u202egnp.exe`, `a\x1b[31m\x00b`, `\xff\xfe`, "--&gt;&lt;!--"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if n := strings.Count(html, "<script"); n != 1 {
		t.Errorf("%d scripts, want one", n)
	}
}

// TestPolicy: the page's own script and style are what its policy allows, and it asks
// for nothing from anywhere.
func TestPolicy(t *testing.T) {
	html := written(t, pageOf(t, parse(t, "fattree:k=4")))
	for _, tag := range []string{"script", "style"} {
		text := regexp.MustCompile(`(?s)<` + tag + `>(.*?)</` + tag + `>`).FindStringSubmatch(html)
		allowed := regexp.MustCompile(tag + `-src '([^']*)'`).FindStringSubmatch(html)
		if text == nil || allowed == nil {
			t.Fatalf("no %s, or no policy of it", tag)
		}
		sum := sha256.Sum256([]byte(text[1]))
		want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
		if got := strings.ReplaceAll(allowed[1], "&#43;", "+"); got != want {
			t.Errorf("%s: the policy allows %s, the text is %s", tag, got, want)
		}
	}
	if found := regexp.MustCompile(`(?i)https?:|\bsrc=|@import|<link|\son[a-z]+=|\sstyle=`).FindString(html); found != "" {
		t.Errorf("the page has %q", found)
	}
	if len(script) > 15<<10 {
		t.Errorf("the script has %d bytes", len(script))
	}
}

// TestVerdict: nothing is fine that was not judged.
func TestVerdict(t *testing.T) {
	f := parse(t, "fattree:k=4")
	warning := []audit.Finding{{Check: "link.width", Subject: audit.OfFabric(), Severity: audit.Warning}}
	missed := func(r *audit.Report) {
		r.Coverage.Count("links", "PortInfo", audit.OfFabric(), audit.TimedOut, 1)
	}
	skipped := func(r *audit.Report) {
		for _, name := range []string{"health", "sm"} {
			r.Failures = append(r.Failures, audit.Failure{Audit: name, Skipped: true})
			r.Unjudged = append(r.Unjudged, audit.Unjudged{Audit: name, Check: name + ".check", Lacked: "a live fabric"})
		}
	}
	unjudged := func(r *audit.Report) {
		r.Unjudged = append(r.Unjudged, audit.Unjudged{Audit: "links", Check: "link.width", Lacked: "not read: <widths>"})
	}
	for _, test := range []struct {
		name  string
		edit  func(p *Page)
		want  string
		check int
	}{
		{"clean", func(*Page) {}, "fine: No problems found", 0},
		{"a link is missing, and no finding is about it", func(*Page) {}, "unknown: No findings; 1 place to check in the topology", 1},
		{"a request without an answer", func(p *Page) { missed(p.Report) }, "unknown: Incomplete: 1 of 1 request not answered", 0},
		{"audits that did not run", func(p *Page) { skipped(p.Report) }, "unknown: Incomplete: 2 of 8 audits not judged", 0},
		{"a check that was not done", func(p *Page) { unjudged(p.Report) }, "unknown: Incomplete: 1 of 40 checks not judged", 0},
		{"audits and checks", func(p *Page) { skipped(p.Report); unjudged(p.Report) }, "unknown: Incomplete: 2 of 8 audits, 3 of 40 checks not judged", 0},
		{"no tables", func(p *Page) { p.Verdict = nil }, "unknown: Incomplete: routing not judged", 0},
		{"nothing", func(p *Page) { p.Report.Model = nil }, "unknown: Nothing was judged", 0},
		{"a finding", func(p *Page) { p.Report.Findings = warning }, "bad: There are findings", 0},
		{"below --fail-on", func(p *Page) { p.Report.Findings, p.FailOn = warning, audit.Error }, "fine: No findings at or above severity error", 0},
		{"a finding, and a silent port", func(p *Page) { p.Report.Findings = warning; missed(p.Report) }, "bad: There are findings; incomplete: 1 of 1 request not answered", 0},
		{"a credit loop", func(p *Page) { p.Verdict = &verify.Verdict{} }, "bad: The routing is wrong", 0},
	} {
		p := pageOf(t, f)
		p.Report.Audits, p.Report.Checks = strings.Fields("config health identity links routing self sm topology"), 40
		test.edit(p)
		class, text := p.verdict(test.check)
		if got := class + ": " + text; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestUnjudged: what was not judged is listed, and the findings are not called none.
func TestUnjudged(t *testing.T) {
	p := pageOf(t, parse(t, "fattree:k=4"))
	if html := written(t, p); !strings.Contains(html, "<p>No findings.</p>") || strings.Contains(html, `id="unjudged"`) {
		t.Error("a page on which all was judged lists something that was not")
	}
	p.Report.Failures = []audit.Failure{{Audit: "sm", Skipped: true}}
	p.Report.Unjudged = []audit.Unjudged{{Audit: "sm", Check: "sm.none", Lacked: "the audit"}, {Audit: "links", Check: "link.width", Lacked: "not read: <widths>"}, {Audit: "links", Check: "link.speed", Lacked: "not read: <widths>"}}
	html := written(t, p)
	for _, want := range []string{
		"<title>fabsh: Incomplete: 1 of 1 audit, 3 of 3 checks not judged</title>", "<p>No findings in what was judged.</p>",
		"<li><bdi>sm: it needs a live fabric; this is a file</bdi></li>", "<li><bdi>link.width link.speed (not read: &lt;widths&gt;)</bdi></li>",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(html, "No problems found") {
		t.Error("no problems found in what was not judged")
	}
}

// BenchmarkWrite writes the page of 11,664 hosts.
func BenchmarkWrite(b *testing.B) {
	p := pageOf(b, parse(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1"))
	for b.Loop() {
		b.ReportMetric(float64(len(written(b, p)))/1e6, "MB")
	}
}

// TestNarrow: where a narrow screen shows rows as blocks, each cell has its column as label, and
// tables, which are no tables for CSS then, their roles.
func TestNarrow(t *testing.T) {
	for _, table := range regexp.MustCompile(`(?s)<table.*?</table>`).FindAllString(html, -1) {
		var heads, labels []string
		for _, m := range regexp.MustCompile(`<th role="columnheader" scope="col"[^>]*>(.*?)</th>`).FindAllStringSubmatch(table, -1) {
			heads = append(heads, m[1])
		}
		for _, m := range regexp.MustCompile(`<td role="cell" data-label="(.*?)"`).FindAllStringSubmatch(table, -1) {
			labels = append(labels, m[1])
		}
		if diff := cmp.Diff(heads, labels); diff != "" || len(heads) == 0 {
			t.Errorf("columns and labels: -want +got\n%s", diff)
		}
		if bad := regexp.MustCompile(`<(table|thead|tbody|tr|th|td)(>| (?:[^r]|r[^o])[^>]*>)`).FindString(table); bad != "" {
			t.Errorf("%s has no role", bad)
		}
	}
	for _, rule := range strings.Split(style, "\n") {
		if (strings.Contains(rule, "overflow-wrap:anywhere") || strings.Contains(rule, "word-break")) && !strings.HasPrefix(rule, ".id{") && !strings.HasPrefix(rule, "code{") {
			t.Errorf("%s breaks words", rule)
		}
	}
}
