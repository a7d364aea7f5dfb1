package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
)

// Report is all of one run.
type Report struct {
	Subnet    fabric.Subnet
	Fabric    string   // in one line
	Port      string   // that the run was made from; "": a file
	Rail      string   // the port, where the run is one of several from a host
	Audits    []string // that ran
	Coverage  Coverage
	Findings  []Finding // to be reported
	Acked     []Acked   // acknowledged
	Grown     []Acked   // of Findings, those with an ack that they have outgrown
	Known     int       // how many the baseline has too
	Silent    []Subject // known not to answer, and left out of Coverage
	Failures  []Failure // audits that did not run
	Checks    int       // how many checks the audits have
	Judged    []string  // the checks that were done; an audit that declares none counts as one
	Unjudged  []Unjudged
	Notes     []string // other remarks
	Datagrams uint64   // that were sent

	// For programs that want figures: the fabric, or nil; the
	// counters that were read; what audits measured; and when.
	Model        *fabric.Fabric
	Rates        []PortRates
	Metrics      []Metric
	Began, Ended time.Time
}

// Acked is an acknowledged finding with its ack.
type Acked struct {
	Finding
	Ack *Ack
	Now float64 // Ack.CountOf all findings
}

// Failure is an audit that did not run, or not to its end.
type Failure struct {
	Audit   string
	Err     error
	Skipped bool // its input is missing, and it was not requested by name
}

// Why returns the reason in one line.
func (f *Failure) Why() string {
	if f.Skipped {
		return "it needs a live fabric; this is a file"
	}
	line, _, _ := strings.Cut(f.Err.Error(), "\n")
	return line
}

// ErrCut is why audits do not run on a part of a fabric: missing nodes could not be
// distinguished from nodes that were not read.
var ErrCut = errors.New("the sweep was cut short; a part of a fabric is not judged")

// Note adds a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Fail adds that an audit did not run because of err.
func (r *Report) Fail(audit string, err error) {
	r.Failures = append(r.Failures, Failure{Audit: audit, Err: err})
}

// silence are the checks whose subjects are known not to answer.
var silence = map[string]bool{"port.unresponsive": true, "node.silent": true}

// silent returns the subjects of f that are known not to answer, by what acks cover of it.
func (f *Finding) silent(c *cover) (list []Subject) {
	if !c.full && !c.grown {
		if silence[f.Check] {
			list = c.acked
		}
		return list
	}
	all := append([]Finding{*f}, f.Merged...)
	if !slices.ContainsFunc(all, func(g Finding) bool { return silence[g.Check] }) {
		return nil
	}
	for _, g := range all {
		list = append(list, g.Subject)
		for _, m := range g.Members {
			if !g.Subject.Covers(m) {
				list = append(list, m)
			}
		}
	}
	return list
}

// Settle selects what of found to report: not what is acknowledged, nor
// what the baseline has. A finding with members is left out if this holds for each of them. A
// node without answers that is acknowledged no longer counts as missing. baseline are the IDs
// of the findings that the baseline has.
func (r *Report) Settle(found []Finding, acks Acks, baseline map[string]bool, now time.Time) {
	x := acks.index(found, now)
	for i := range found {
		f := found[i]
		c, known := x.cover(&f), f.isKnown(baseline)
		switch a := c.ack; {
		case c.grown && !known:
			r.Grown = append(r.Grown, Acked{f, a, x.counts[a]})
		case c.full, c.grown, !known && f.isKnownBut(c.acked, baseline):
			r.Acked = append(r.Acked, Acked{f, a, x.counts[a]})
			r.Silent = append(r.Silent, f.silent(&c)...)
			continue
		case known:
			r.Known++
			continue
		case c.count > 0:
			f.Message += fmt.Sprintf("; %d of %d acknowledged", c.count, len(f.units()))
			r.Silent = append(r.Silent, f.silent(&c)...)
		case a != nil:
			r.Notes = append(r.Notes, "the ack of "+f.ID()+" ended after "+a.Until.Format(day)+": "+a.Reason)
		}
		if n := f.knownUnits(baseline); n > 0 && len(f.Members) > 0 {
			f.Message += fmt.Sprintf("; %d of %d also in the baseline", n, len(f.units()))
		}
		r.Findings = append(r.Findings, f)
	}
	told := map[string]bool{}
	for i := range r.Findings {
		told[r.Findings[i].ID()] = true
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; !told[f.Cause] {
			f.Cause = "" // it is not in the report
		}
	}
	r.Coverage.Excuse(func(s Subject) bool {
		return slices.ContainsFunc(r.Silent, func(known Subject) bool { return known.Covers(s) })
	})
}

// Complete reports whether everything was read, and all checks of all audits were done.
func (r *Report) Complete() bool {
	return r.Answered() && len(r.Failures) == 0 && len(r.Unjudged) == 0
}

// Answered reports whether all requests were answered, and all audits ran that could run on
// this fabric.
func (r *Report) Answered() bool {
	failed := slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Skipped })
	return !failed && r.Coverage.Complete()
}

// Worst is the severity of the worst finding; 0 without one.
func (r *Report) Worst() (worst Severity) {
	for i := range r.Findings {
		worst = max(worst, r.Findings[i].Severity)
	}
	return worst
}

// Counts is how many findings there are, by severity, the worst first; "": none.
func (r *Report) Counts() string {
	var parts []string
	for s := Critical; s >= Info; s-- {
		n := 0
		for i := range r.Findings {
			if r.Findings[i].Severity == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}
