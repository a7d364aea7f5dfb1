// Package page writes the report on a fabric as one page of HTML: it needs no network,
// and no script to be read. Pictures are inline SVG; tables say the same in words.
//
//	page.go     Page, and how it is written; page.html page.css page.js, its parts
//	head.go     the verdict, and what was not judged
//	findings.go the table of findings
//	tree.go     tiers, and groups of switches with equal connectivity
//	ladder.go   the groups as a picture; matrix.go, the links of one group
//	heat.go     a figure of each port between two tiers, as colours
//	routes.go   how long paths are, how evenly ports are used, a credit loop
//	clean.go    text that others chose; path.go, cells as paths of SVG
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

	"fabsh/fabric/audit"
	"fabsh/fabric/routing"
)

// Page is what a page tells.
type Page struct {
	Report *audit.Report
	FailOn audit.Severity // from which on a finding counts for the verdict
	// Verdict and Balance are about the tables of the fabric that the report is about;
	// nil: NoRoutes says why they are not known.
	Verdict  *routing.Verdict
	Balance  *routing.Balance
	Graph    *routing.Graph // of Balance
	NoRoutes string

	Version  string   // of the program
	Commands []string // that make the page again
	Dated    bool     // tell when the report was made: of a live fabric
}

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
	if err := parsed().Execute(b, p.view()); err != nil {
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
	Tree       *treeView // nil: there is no fabric
	Heat       []heatView
	NoHeat     []string // what there is no heat map of, and why
	Routes     routesView
}

func (p *Page) view() *view {
	v := &view{Style: template.CSS(style), Script: template.JS(script), StyleHash: hashed(style), ScriptHash: hashed(script)}
	v.Head = p.head()
	var t *tree
	if p.Report.Model != nil {
		t = newTree(p.Report.Model)
		v.Tree = t.view(p.Report)
		v.Heat, v.NoHeat = p.heat(t)
	}
	v.Findings = p.findings(t)
	v.Routes = p.routes()
	return v
}

// hashed is the source of a Content-Security-Policy that allows that text alone.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
