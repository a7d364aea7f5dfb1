// Package page writes the report on a fabric as one page of HTML: it needs no network,
// and no script to be read. Pictures are inline SVG; tables say the same in words.
//
//	page.go     Page, and how it is written; page.html page.css page.js, its parts
//	head.go     the verdict, and what was not judged
//	findings.go the table of findings
//	changes.go  what differs from a baseline
//	topology.go the fabric as package picture has it: tiers, groups, matrices
//	ladder.go   the groups as a picture; matrix.go, the links between two tiers
//	heat.go     a figure of each port between two tiers, as colours; rates.go, of counters
//	routes.go   how long paths are, how evenly ports are used, a credit loop
//	trends.go   what ports counted from read to read; curve.go, lines
//	path.go     cells as paths of SVG
//
// The same input gives the same bytes.
package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"sync"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/diff"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

// Page is the content of a page.
type Page struct {
	Report *audit.Report
	FailOn audit.Severity // from which on a finding counts for the verdict
	// Verdict and Balance are about the tables of the fabric that the report is about;
	// nil: NoRoutes has the reason why they are unknown.
	Verdict  *verify.Verdict
	Balance  *traffic.Balance
	NoRoutes string
	// Adaptive is adaptive routing in words, as of adaptive.Describe; "": off, or unknown.
	Adaptive string
	Shift    *traffic.Congestion // of shifts, which Shifts lists
	Shifts   []Shift
	// Loads are those of patterns where switches choose among ports; none: they do not, or
	// what they choose is unknown.
	Loads []Load
	// Baseline is an earlier fabric, or nil. Diff is how the report's differs
	// from it; nil: NoDiff has the reason why that is unknown.
	Baseline *fabric.Fabric
	Diff     *diff.Report
	NoDiff   string

	Version  string   // of the program
	Commands []string // that make the page again
	Dated    bool     // show when the report was made: of a live fabric
}

// Shift is each endpoint sending to the one that is so far on in their order, all at
// once: Flows is how many share the busiest link.
type Shift struct{ Distance, Flows int }

// Load is that of a pattern of traffic by static ports and by choices of switches.
type Load struct {
	Pattern string
	*traffic.AdaptiveLoad
}

// MaxShifts is how many shifts a page is drawn of: they are evenly spread.
const MaxShifts = 60

//go:embed page.html
var html string

//go:embed page.css
var style string

//go:embed page.js
var script string

// parsed is the template: made when a page is written, for most runs write none.
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
	Changes    *changesView // nil: no baseline
	Tree       *ladderView  // nil: no fabric
	Heat       []heatView
	NoHeat     []string // what there is no heat map of, and why
	Routes     routesView
	Trends     *trendView // nil: no trends
}

func (p *Page) view() (*view, error) {
	v := &view{Style: template.CSS(style), Script: template.JS(script), StyleHash: hashed(style), ScriptHash: hashed(script)}
	v.Head = p.head()
	var t *topology
	if p.Report.Model != nil {
		var err error
		if t, err = newTopology(p.Report.Model, p.Report); err != nil {
			return nil, err
		}
		v.Tree = t.view()
		v.Heat, v.NoHeat = p.heat(t)
	}
	v.Findings = p.findings(t)
	v.Changes = p.changes()
	v.Trends = p.trends()
	v.Routes = p.routes()
	return v, nil
}

// hashed is the source of a Content-Security-Policy that allows that text alone.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
