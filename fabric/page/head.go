package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"
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
		why := f.Err.Error()
		if f.Skipped {
			why = "it needs a live fabric; this is a file"
		}
		h.Failures = append(h.Failures, clean(f.Audit+": "+why))
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
	whole := r.Complete() && (r.Model == nil || r.Model.Complete())
	skipped := len(r.Failures) > 0
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
	case !whole:
		return "unknown", "No problems found, but not everything could be judged"
	case skipped:
		return "unknown", "No problems found in what was judged; some audits did not run"
	case len(r.Findings) > 0:
		return "fine", "No findings at or above severity " + p.FailOn.String()
	default:
		return "fine", "No problems found"
	}
	if !whole || skipped {
		text += "; not everything could be judged"
	}
	return "bad", text
}

// counts is how many findings there are, by severity.
func (p *Page) counts() string {
	r := p.Report
	parts := []string{cmp.Or(r.Counts(), "no findings")}
	if n := len(r.Acked); n > 0 {
		parts = append(parts, fmt.Sprintf("%d acknowledged", n))
	}
	if r.Known > 0 {
		parts = append(parts, fmt.Sprintf("%d also in the baseline, not reported", r.Known))
	}
	return strings.Join(parts, ", ")
}
