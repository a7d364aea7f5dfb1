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
	Rail      string   // that port, where the run is one of several from a host
	Audits    []string // that ran
	Coverage  Coverage
	Findings  []Finding // to be told
	Acked     []Acked   // known
	Known     int       // how many the baseline has too
	Silent    []Subject // known to be silent, and left out of Coverage
	Failures  []Failure // audits that were not done
	Notes     []string  // what else to know
	Datagrams uint64    // that were sent

	// For programs that want figures: the fabric, nil where there is none; the
	// counters that were read; what audits measured; and when.
	Model        *fabric.Fabric
	Rates        []PortRates
	Metrics      []Metric
	Began, Ended time.Time
}

// Acked is a finding that is known, and who says so.
type Acked struct {
	Finding
	Ack *Ack
}

// Failure is an audit that was not done, or not to its end.
type Failure struct {
	Audit   string
	Err     error
	Skipped bool // what it needs is not there, and nobody asked for it by name
}

// ErrCut is why audits do not run on a part of a fabric: nobody could tell what is
// not there from what was not asked.
var ErrCut = errors.New("the sweep was cut short, and a part of a fabric is not judged")

// Note adds a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Fail adds that an audit was not done because of err.
func (r *Report) Fail(audit string, err error) {
	r.Failures = append(r.Failures, Failure{Audit: audit, Err: err})
}

// silence are the checks whose subjects are known not to answer.
var silence = map[string]bool{"port.unresponsive": true, "node.silent": true}

// Settle sorts out what of found is to be told: not what is acknowledged, nor
// what the baseline has. A silent node that is acknowledged is not missed any
// more. baseline are the IDs of the findings that the baseline has.
func (r *Report) Settle(found []Finding, acks Acks, baseline map[string]bool, now time.Time) {
	for i := range found {
		f := &found[i]
		a, inForce := acks.Of(f, now)
		switch {
		case inForce:
			r.Acked = append(r.Acked, Acked{*f, a})
			if silence[f.Check] {
				r.Silent = append(r.Silent, f.Subject)
			}
			continue
		case baseline[f.ID()]:
			r.Known++
			continue
		case a != nil:
			r.Notes = append(r.Notes, "the ack of "+f.ID()+" ended after "+a.Until.Format(day)+": "+a.Reason)
		}
		r.Findings = append(r.Findings, *f)
	}
	told := map[string]bool{}
	for i := range r.Findings {
		told[r.Findings[i].ID()] = true
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; !told[f.Cause] {
			f.Cause = "" // nobody could look it up
		}
	}
	r.Coverage.Excuse(func(s Subject) bool {
		return slices.ContainsFunc(r.Silent, func(silent Subject) bool { return silent.Covers(s) })
	})
}

// Complete: all that was to be read was, and all audits ran.
func (r *Report) Complete() bool {
	failed := slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Skipped })
	return !failed && r.Coverage.Complete()
}

// Worst is the severity of the worst finding; 0: there is none.
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
