// Package page writes the report on a fabric as one page of HTML: it needs no network,
// and is readable without scripts. Pictures are inline SVG; tables have their content in words.
//
// A Page has what the sections of the page need: the report of audits, the verdict on the
// routing, and the difference from a baseline. Page.Write fills the template page.html with
// them. All text from the fabric is untrusted; the template gets it through clean.
//
// The output is deterministic: equal input gives equal bytes.
package page

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// Page is the content of a page.
type Page struct {
	Report *audit.Report
	FailOn audit.Severity // the least severity that counts for the verdict
	// Verdict and Balance are about the tables of the fabric that the report is about;
	// nil: NoRoutes has the reason why they are unknown.
	Verdict  *verify.Verdict
	Balance  *traffic.Balance
	NoRoutes string
	// Adaptive is adaptive routing in words, as of adaptive.Describe; "": off, or unknown.
	Adaptive string
	Shift    *traffic.Congestion // of shifts, which Shifts lists
	Shifts   []Shift
	// Loads are the loads of patterns of traffic if switches choose among ports; none: they do
	// not, or their choices are unknown.
	Loads []Load
	// Explain returns the explanation of a check; "": it has none. Nil: no check has.
	Explain func(check string) string
	// Baseline is an earlier fabric, or nil. Diff is how the report's differs
	// from it; nil: NoDiff has the reason why that is unknown.
	Baseline *fabric.Fabric
	Diff     *diff.Report
	NoDiff   string

	// PortTrends are courses that a history has of ports with findings.
	PortTrends []PortTrend

	Version  string   // of the program
	Commands []string // that make the page again
	Dated    bool     // show when the report was made: set for a live fabric
}

// Shift is a pattern of traffic in which each endpoint sends to the one Distance places on in
// their order, all at once. Load is the largest of a link, as traffic.Congestion has it.
type Shift struct {
	Distance int
	Load     float64
}

// Load is the load of a pattern of traffic by static ports and by choices of switches.
type Load struct {
	Pattern string
	*traffic.AdaptiveLoad
}

// MaxShifts is how many shifts a page draws: they are evenly spread.
const MaxShifts = 60

//go:embed page.html
var html string

// Tokens is the part of the style sheet that the report and the pages of a fabric share: colours, which
// mean states, and type.
//
//go:embed tokens.css
var Tokens string

//go:embed page.css
var ownStyle string

// style is the style sheet of the report.
var style = Tokens + ownStyle

//go:embed page.js
var script string

// parsed returns the template. It is parsed when a page is written, because most runs write none.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(html))
})

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	v, err := p.view()
	if err != nil {
		return err
	}
	if err := parsed().Execute(b, v); err != nil {
		return err
	}
	return b.Flush()
}

// view is what the template shows. Each text in it is clean.
type view struct {
	Style      template.CSS
	Script     template.JS
	StyleHash  string
	ScriptHash string
	Head       head
	Findings   findings
	Checks     []explanation // of the checks that the page names
	Changes    *changesView  // nil: no baseline
	Tree       *ladderView   // nil: no fabric
	Heat       []heatView
	NoHeat     []string // what there is no heat map of, and why
	Routes     routesView
	Trends     *trendView   // nil: no trends
	History    *historyView // nil: no history
}

func (p *Page) view() (*view, error) {
	v := &view{Style: template.CSS(style), Script: template.JS(script), StyleHash: hashed(style), ScriptHash: hashed(script)}
	var t *topology
	check := 0 // places
	if p.Report.Model != nil {
		var err error
		if t, err = newTopology(p.Report.Model, p.Report); err != nil {
			return nil, err
		}
		v.Tree = t.view()
		check = v.Tree.check
		v.Heat, v.NoHeat = p.heat(t)
	}
	e := &explanations{explain: p.Explain, known: map[string]bool{}}
	v.Head = p.head(check, e)
	v.Findings = p.findings(t, e)
	v.Checks = e.list()
	v.Changes = p.changes()
	v.Trends, v.History = p.trends(), p.historyTrends()
	v.Routes = p.routes()
	return v, nil
}

// hashed returns the source of a Content-Security-Policy that allows only text.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// head is the view of the verdict and its coverage.
type head struct {
	Class    string // of the verdict: bad, unknown or fine
	Verdict  string
	Fabric   string
	Port     string
	Time     string
	Audits   string
	Coverage string
	Rows     []coverageRow // of attributes that were not answered as a whole
	Missing  []string
	Failures []string
	Unjudged []unjudged
	Notes    []string
	Routing  string
	Counts   string
	Version  string
	Commands []string
	Sent     uint64
}

// unjudged is checks that were not done, and what the run lacked.
type unjudged struct {
	Checks []checkName
	Lacked string
}

type coverageRow struct {
	Audit, Attribute                                  string
	Requests, Answered, TimedOut, Failed, Unsupported int
}

const (
	maxMissing = 200 // subjects without an answer that the page names
	maxNotes   = 200
)

func (p *Page) head(check int, e *explanations) head {
	r := p.Report
	h := head{
		Fabric: clean(strings.TrimPrefix(r.Fabric, "fabric: ")), Port: clean(r.Port), Audits: strings.Join(r.Audits, " "),
		Counts: p.counts(), Version: clean(p.Version), Sent: r.Datagrams,
	}
	if p.Dated {
		h.Time = r.Began.UTC().Format(time.RFC3339)
	}
	for _, c := range p.Commands {
		h.Commands = append(h.Commands, clean(c))
	}
	h.Class, h.Verdict = p.verdict(check)
	for _, u := range r.UnjudgedChecks() {
		x := unjudged{Lacked: clean(u.Lacked)}
		for _, check := range u.Checks {
			x.Checks = append(x.Checks, e.name(check))
		}
		h.Unjudged = append(h.Unjudged, x)
	}
	h.Coverage = r.Coverage.Share()
	for _, row := range r.Coverage.Rows() {
		if row.Answered < row.Requests {
			h.Rows = append(h.Rows, coverageRow{clean(row.Audit), clean(row.Attribute), row.Requests, row.Answered, row.TimedOut, row.Failed, row.Unsupported})
		}
	}
	missing := r.Coverage.Missing()
	for i, s := range missing {
		if i == maxMissing {
			h.Missing = append(h.Missing, fmt.Sprintf("and %d more", len(missing)-i))
			break
		}
		h.Missing = append(h.Missing, clean(s.Name()))
	}
	for _, s := range r.Silent {
		h.Missing = append(h.Missing, clean(s.Name())+" (acknowledged, left out)")
	}
	for _, f := range r.Failures {
		h.Failures = append(h.Failures, clean(f.Audit+": "+f.Why()))
	}
	for i, n := range r.Notes {
		if i == maxNotes {
			h.Notes = append(h.Notes, fmt.Sprintf("and %d more", len(r.Notes)-i))
			break
		}
		h.Notes = append(h.Notes, clean(n))
	}
	return h
}

// verdict returns a style sheet class and a sentence; check is the number of places in the topology
// that no finding is about. What was not judged is never called fine.
func (p *Page) verdict(check int) (class, text string) {
	r := p.Report
	missing := p.incomplete()
	wrong := p.Verdict != nil && p.Verdict.Wrong()
	switch {
	case r.Worst() >= p.FailOn && wrong:
		text = "There are findings, and the routing is wrong"
	case r.Worst() >= p.FailOn:
		text = "There are findings"
	case wrong:
		text = "The routing is wrong"
	case r.Model == nil:
		return "unknown", "Nothing was judged"
	case missing != "":
		return "unknown", "Incomplete: " + missing
	case len(r.Findings) > 0:
		return "fine", "No findings at or above severity " + p.FailOn.String()
	case check > 0:
		return "unknown", "No findings; " + plural.Count(check, "place", "places") + " to check in the topology"
	default:
		return "fine", "No problems found"
	}
	if missing != "" {
		text += "; incomplete: " + missing
	}
	return "bad", text
}

// incomplete returns what was not judged or not answered, in words; "": nothing.
func (p *Page) incomplete() string {
	r := p.Report
	var parts []string
	failed := map[string]bool{}
	for _, f := range r.Failures {
		failed[f.Audit] = true
	}
	checks, others := map[[2]string]bool{}, false // others: of audits that ran
	for _, u := range r.Unjudged {
		checks[[2]string{u.Audit, u.Check}] = true
		others = others || !failed[u.Audit]
	}
	if n := len(failed); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", n, plural.Count(max(n, len(r.Audits)), "audit", "audits")))
	}
	if n := len(checks); others {
		parts = append(parts, fmt.Sprintf("%d of %s", n, plural.Count(max(n, r.Checks), "check", "checks")))
	}
	if p.Verdict == nil || !p.Verdict.OK() && !p.Verdict.Wrong() {
		parts = append(parts, "routing")
	}
	if len(parts) > 0 {
		parts = []string{strings.Join(parts, ", ") + " not judged"}
	}
	if t := r.Coverage.Total(); t.TimedOut+t.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s not answered", t.TimedOut+t.Failed, plural.Count(t.Requests, "request", "requests")))
	}
	if r.Model != nil && !r.Model.Complete() {
		parts = append(parts, "a part of the fabric not read")
	}
	return strings.Join(parts, "; ")
}

// counts returns how many findings there are, by severity.
func (p *Page) counts() string {
	r := p.Report
	parts := []string{cmp.Or(r.Counts(), "no findings")}
	if n := len(r.Acked); n > 0 {
		parts = append(parts, fmt.Sprintf("%d acknowledged", n))
	}
	if n := len(r.Grown); n > 0 {
		parts = append(parts, fmt.Sprintf("%d acknowledged, but 10 times as much since", n))
	}
	if r.Known > 0 {
		parts = append(parts, fmt.Sprintf("%d also in the baseline, not reported", r.Known))
	}
	return strings.Join(parts, ", ")
}
