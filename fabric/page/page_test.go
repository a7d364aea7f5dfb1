package page

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
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
		name string
		edit func(p *Page)
		want string
	}{
		{"clean", func(*Page) {}, "fine: No problems found"},
		{"a request without an answer", func(p *Page) { missed(p.Report) }, "unknown: Incomplete: 1 of 1 request not answered"},
		{"audits that did not run", func(p *Page) { skipped(p.Report) }, "unknown: Incomplete: 2 of 8 audits not judged"},
		{"a check that was not done", func(p *Page) { unjudged(p.Report) }, "unknown: Incomplete: 1 of 40 checks not judged"},
		{"audits and checks", func(p *Page) { skipped(p.Report); unjudged(p.Report) }, "unknown: Incomplete: 2 of 8 audits, 3 of 40 checks not judged"},
		{"no tables", func(p *Page) { p.Verdict = nil }, "unknown: Incomplete: routing not judged"},
		{"nothing", func(p *Page) { p.Report.Model = nil }, "unknown: Nothing was judged"},
		{"a finding", func(p *Page) { p.Report.Findings = warning }, "bad: There are findings"},
		{"below --fail-on", func(p *Page) { p.Report.Findings, p.FailOn = warning, audit.Error }, "fine: No findings at or above severity error"},
		{"a finding, and a silent port", func(p *Page) { p.Report.Findings = warning; missed(p.Report) }, "bad: There are findings; incomplete: 1 of 1 request not answered"},
		{"a credit loop", func(p *Page) { p.Verdict = &verify.Verdict{} }, "bad: The routing is wrong"},
	} {
		p := pageOf(t, f)
		p.Report.Audits, p.Report.Checks = strings.Fields("config health identity links routing self sm topology"), 40
		test.edit(p)
		class, text := p.verdict()
		if got := class + ": " + text; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestAdaptive: adaptive routing is among the facts on routing, with the reason where it is
// not on everywhere.
func TestAdaptive(t *testing.T) {
	p := pageOf(t, parse(t, "fattree:k=4"))
	p.Adaptive, p.Verdict.Adaptive, p.Verdict.Reason = "on at 5 of 6 switches", verify.AdaptiveMixed, "1 <static>"
	lines := p.routes().Lines
	for _, want := range []string{"Adaptive routing is on at 5 of 6 switches.", "Adaptive routing is mixed: 1 <static>."} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not among %q", want, lines)
		}
	}
}

// TestLoads: the loads with choices are the means of the largest of the samples.
func TestLoads(t *testing.T) {
	p := pageOf(t, parse(t, "fattree:k=4"))
	p.Loads = []Load{{"<shift>", &traffic.AdaptiveLoad{Samples: 2, Static: traffic.Extremes{Max: 9, Mean: 7.5}, Ideal: traffic.Extremes{Mean: 2.25}, Bound: traffic.Extremes{Mean: 2}, Worst: traffic.Extremes{Mean: 12345.6}, Lost: 3}}}
	if diff := cmp.Diff([]loadView{{"<shift>", "2", "7.5", "2.25", "2", "12346", "3"}}, p.routes().Loads); diff != "" {
		t.Error(diff)
	}
	if html := written(t, p); !strings.Contains(html, "<td role=\"cell\" data-label=\"pattern\">&lt;shift&gt;</td>") {
		t.Error("the page has no row of the pattern")
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

// TestGrown: a finding that outgrew its ack is a finding, and its ack is shown with both counts.
func TestGrown(t *testing.T) {
	f := parse(t, "fattree:k=4")
	p := pageOf(t, f)
	grown := audit.Finding{Check: "ctr.symbol", Subject: audit.OfPort(f.OfType(mad.NodeTypeSwitch)[0].Port(1)), Severity: audit.Warning, Message: "<errors>"}
	p.Report.Findings = []audit.Finding{grown}
	p.Report.Grown = []audit.Acked{{Finding: grown, Ack: &audit.Ack{By: "<ops>", Reason: "old cable", Until: time.Unix(0, 0).UTC(), Count: 3}, Now: 42}}
	html := written(t, p)
	for _, want := range []string{
		"1 warning, 1 acknowledged, but 10 times as much since", "<summary>Acknowledged, but 10 times as much since (1)</summary>",
		`data-label="now" class="n">42</td><td role="cell" data-label="when acknowledged" class="n">3</td><td role="cell" data-label="by"><bdi>&lt;ops&gt;</bdi></td><td role="cell" data-label="until">1970-01-01</td>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q", want)
		}
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

// TestTopology: the links of each pod are a matrix, and a missing link is told where it is.
func TestTopology(t *testing.T) {
	f := parse(t, "fattree:k=8,levels=3,remove_links=5%,seed=3")
	html := written(t, pageOf(t, f))
	var got []string
	for _, m := range regexp.MustCompile(`<summary><bdi>(.*?)</bdi> \((.*?)\)`).FindAllStringSubmatch(html, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	var want []string
	for pod := range 8 {
		want = append(want, fmt.Sprintf("tier 1 (leaves) x tier 2: leaf-%d … leaf-%d × spine-%[1]d … spine-%d 4 × 4 switches", 4*pod+1, 4*pod+4))
	}
	for i := range 4 {
		want = append(want, fmt.Sprintf("tier 2 x tier 3: spine-%d … spine-%d × core-%[1]d … core-%[3]d 8 × 4 switches", i+1, i+29, i+13))
	}
	got = got[:min(len(got), len(want))]
	slices.Sort(got) // identical ones are on one line
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.Contains(html, "leaf-3 – spine-1: no link; most pairs here have 1") {
		t.Error("no link is missing")
	}
	for _, s := range []picture.State{picture.Up, picture.Slow, picture.Down} {
		if strings.Contains(html, `<path class="`+s.Class()+`"`) {
			t.Errorf("links are shown as %s of whose ports nothing is known", s)
		}
	}
}

// TestIdentical: matrices that look the same are on one line; those with findings, or without
// some links, stand alone.
func TestIdentical(t *testing.T) {
	f := parse(t, "fattree:k=8,levels=3")
	p := pageOf(t, f)
	lines := func() (got []string) {
		for _, m := range regexp.MustCompile(`<details id="(g\d+-same)"><summary>(.*?)</summary>`).FindAllStringSubmatch(written(t, p), -1) {
			got = append(got, m[1]+" "+m[2])
		}
		return got
	}
	want := []string{"g1-same tier 1 (leaves) x tier 2: 8 identical matrices of 4 × 4 switches each, 16 places to check in each", "g9-same tier 2 x tier 3: 4 identical matrices of 8 × 4 switches each, 32 places to check in each"}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	leaf := f.NodeByName("leaf-1")
	p.Report.Findings = []audit.Finding{{Check: "node.silent", Subject: audit.OfNode(leaf[0]), Severity: audit.Error}}
	want[0] = "g2-same tier 1 (leaves) x tier 2: 7 identical matrices of 4 × 4 switches each, 16 places to check in each"
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("with a finding: -want +got\n%s", diff)
	}
	p = pageOf(t, parse(t, "fattree:k=8,levels=3,remove_links=1,seed=3"))
	if got := lines(); len(got) != 2 || strings.Contains(got[0], " 8 ") == strings.Contains(got[1], ": 4 ") {
		t.Errorf("without a link: %q", got)
	}
}

// TestFindings: effects stand below their cause, and old findings tell since when.
func TestFindings(t *testing.T) {
	f := parse(t, "fattree:k=4")
	sw := &f.OfType(mad.NodeTypeSwitch)[0]
	p := pageOf(t, f)
	p.Report.Findings = []audit.Finding{
		{Check: "ctr.symbol", Subject: audit.OfPort(sw.Port(1)), Severity: audit.Warning, Message: "errors"},
		{Check: "node.silent", Subject: audit.OfNode(sw), Severity: audit.Error, Message: "silent", Since: time.Unix(0, 0)},
	}
	at, err := newTopology(f, p.Report)
	if err != nil {
		t.Fatal(err)
	}
	v := p.findings(at)
	if len(v.Groups) != 1 || len(v.Groups[0]) != 2 || v.Groups[0][1].Depth != 1 || !v.Since || v.Groups[0][0].Since != "1970-01-01T00:00:00Z" || v.Groups[0][1].Group == "" {
		t.Errorf("%+v", v)
	}
}

// BenchmarkWrite writes the page of 11,664 hosts.
func BenchmarkWrite(b *testing.B) {
	p := pageOf(b, parse(b, "pgft:m=18/18/36,w=1/18/18,p=1/1/1"))
	for b.Loop() {
		b.ReportMetric(float64(len(written(b, p)))/1e6, "MB")
	}
}
