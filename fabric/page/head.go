package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"fabsh/fabric/plural"
)

// head is the verdict and its coverage.
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
	Unjudged []string // checks, with what the run lacked
	Notes    []string
	Routing  string
	Counts   string
	Version  string
	Commands []string
	Sent     uint64
}

type coverageRow struct {
	Audit, Attribute                               string
	Asked, Answered, TimedOut, Failed, Unsupported int
}

// How many subjects without an answer, and notes, the page names.
const (
	maxMissing = 200
	maxNotes   = 200
)

func (p *Page) head() head {
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
	h.Class, h.Verdict = p.verdict()
	for _, u := range r.UnjudgedChecks() {
		h.Unjudged = append(h.Unjudged, clean(strings.Join(u.Checks, " ")+" ("+u.Lacked+")"))
	}
	h.Coverage = r.Coverage.Share()
	for _, row := range r.Coverage.Rows() {
		if row.Answered < row.Asked {
			h.Rows = append(h.Rows, coverageRow{clean(row.Audit), clean(row.Attribute), row.Asked, row.Answered, row.TimedOut, row.Failed, row.Unsupported})
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

// verdict is a class and a sentence. Nothing is called fine that was not judged.
func (p *Page) verdict() (class, text string) {
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
	default:
		return "fine", "No problems found"
	}
	if missing != "" {
		text += "; incomplete: " + missing
	}
	return "bad", text
}

// incomplete is what was not judged or not answered, in words; "" if nothing.
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
		parts = append(parts, fmt.Sprintf("%d of %s not answered", t.TimedOut+t.Failed, plural.Count(t.Asked, "request", "requests")))
	}
	if r.Model != nil && !r.Model.Complete() {
		parts = append(parts, "a part of the fabric not read")
	}
	return strings.Join(parts, "; ")
}

// counts is how many findings there are, by severity.
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
