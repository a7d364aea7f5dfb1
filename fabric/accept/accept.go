// Package accept judges a fabric by a profile: a list of items, each with a criterion, its source, and the
// checks of audits that judge it.
//
// A Run is what was watched so far: Add takes the report of one sample, a run of the audits, Judge returns a Verdict
// for each item. A file keeps the run, so that it goes on where it was after a restart; what
// was not watched is stated. An item whose checks were not done is not judged, with the reason: nothing
// passes that was not read.
package accept

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric/audit"
	"fabsh/fabric/plural"
)

// Profile is a list of items.
type Profile struct {
	Name  string // of its script: "nvidia-bringup"
	Title string
	Items []Item
}

// Item is what a fabric is accepted by.
type Item struct {
	Name      string // unique in the profile: "link-state"
	Title     string
	Criterion string
	Source    string         // where the criterion is published
	Checks    []string       // each finding of them fails the item
	Severity  audit.Severity // the lowest that fails it
	Audits    []string       // that have these checks
	Needs     []string       // attributes that a device must have answered
	Watch     time.Duration  // how long it must be watched; 0: one sample is enough
	Plan      bool           // it needs a plan of the cables
	Beyond    string         // why datagrams cannot judge it; "": they can
}

// Outcome is the judgement of an item.
type Outcome string

// The outcomes.
const (
	Pass      Outcome = "pass"
	Fail      Outcome = "fail"
	NotJudged Outcome = "not judged"
)

// Verdict is the judgement of an item.
type Verdict struct {
	*Item
	Outcome Outcome
	Reason  string        // why it is not judged, or what else is to be known; "": nothing
	Watched time.Duration // while its checks were done
	Seen    []Seen        // findings, the worst first
	Before  Outcome       // in the run before; "": no such run, or it had no such item
}

// Seen is a finding of one or more samples.
type Seen struct {
	ID       string         `json:"id"`
	Severity audit.Severity `json:"severity"`
	Subject  string         `json:"subject"`
	Message  string         `json:"message"` // of the last sample that had it
	First    time.Time      `json:"first"`
	Last     time.Time      `json:"last"`
}

// Now reports whether the last sample had the finding.
func (s *Seen) Now(r *Run) bool { return s.Last.Equal(r.last()) }

// Result is the judgement of a run.
type Result struct {
	Profile *Profile
	Run     *Run
	Fabric  string // in one line
	Subnet  string
	Port    string // it was watched from; "": a file
	Version string // of fabsh
	Plan    string // the files; "": none
	// Recording is the recording of all datagrams; nil: none was made.
	Recording *Recording
	Verdicts  []Verdict
	Notes     []string
}

// Recording is the recording of a run, or of its last part.
type Recording struct {
	File  string
	Since time.Time // when it began: a run that was interrupted began earlier
	// Bytes is how long it was when the page was written, and Sum the SHA-256 of these bytes. The
	// recording ends with the session, after that. 0: it cannot be read, such as a pipe.
	Bytes int64
	Sum   string
	Fault string // why datagrams are missing in it; "": none are
}

// Partial reports whether the run began before the recording.
func (r *Result) Partial() bool {
	return r.Recording != nil && r.Run.Began.Before(r.Recording.Since.Truncate(time.Second))
}

// Count returns how many items have an outcome. Items that datagrams cannot judge do not count.
func (r *Result) Count(o Outcome) (n int) {
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Outcome == o && v.Beyond == "" {
			n++
		}
	}
	return n
}

// Beyond returns how many items datagrams cannot judge.
func (r *Result) Beyond() (n int) {
	for i := range r.Verdicts {
		if r.Verdicts[i].Beyond != "" {
			n++
		}
	}
	return n
}

// Summary is the result in one line.
func (r *Result) Summary() string {
	text := fmt.Sprintf("%d pass, %d fail, %d not judged", r.Count(Pass), r.Count(Fail), r.Count(NotJudged))
	if n := r.Beyond(); n > 0 {
		text += fmt.Sprintf("; %s beyond datagrams", plural.Count(n, "item", "items"))
	}
	return text
}

// Changed returns the items with another outcome than in the run before.
func (r *Result) Changed() (list []*Verdict) {
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Before != "" && v.Before != v.Outcome {
			list = append(list, v)
		}
	}
	return list
}

// judged is what one sample says of an item: whether its checks were done, and if not, why.
func judged(item *Item, report *audit.Report, plan bool) (done bool, why string) {
	switch {
	case item.Beyond != "":
		return false, item.Beyond
	case item.Plan && !plan:
		return false, "no plan was given (--plan FILE)"
	}
	var reasons []string
	add := func(text string) {
		if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	lacking := map[string][]string{} // checks, by what they lacked
	var lacks []string
	for _, check := range item.Checks {
		// Several audits may have a check, by different attributes: all those of the item must have done it.
		i := slices.IndexFunc(report.Unjudged, func(u audit.Unjudged) bool {
			return u.Check == check && slices.Contains(item.Audits, u.Audit)
		})
		lacked := "the audit did not judge it"
		switch {
		case i >= 0:
			lacked = report.Unjudged[i].Lacked
		case slices.Contains(report.Judged, check):
			continue
		}
		if lacking[lacked] == nil {
			lacks = append(lacks, lacked)
		}
		lacking[lacked] = append(lacking[lacked], check)
	}
	for _, lacked := range lacks {
		add(strings.Join(lacking[lacked], " ") + ": " + lacked)
	}
	rows := report.Coverage.Rows()
	for _, attribute := range item.Needs {
		if !slices.ContainsFunc(rows, func(row audit.Row) bool {
			return row.Attribute == attribute && row.Answered > 0 && slices.Contains(item.Audits, row.Audit)
		}) {
			add("no device has " + attribute)
		}
	}
	if len(reasons) == 0 {
		for _, row := range rows {
			if n := row.TimedOut + row.Failed; n > 0 && (row.Audit == audit.Sweep || slices.Contains(item.Audits, row.Audit)) {
				add(fmt.Sprintf("%s of %s: no answer to %d of %s", row.Attribute, row.Audit, n, plural.Count(row.Requests, "request", "requests")))
			}
		}
	}
	return len(reasons) == 0, strings.Join(reasons, "; ")
}

// concerns reports whether a finding, or one that it absorbed, is of a check of the item.
func concerns(item *Item, f *audit.Finding) bool {
	if slices.Contains(item.Checks, f.Check) {
		return true
	}
	absorbed := func(id string) bool {
		check, _, _ := strings.Cut(id, ":")
		return slices.Contains(item.Checks, check)
	}
	return slices.ContainsFunc(f.Absorbed, absorbed) || slices.ContainsFunc(f.Merged, func(g audit.Finding) bool { return slices.Contains(item.Checks, g.Check) })
}

// Judge judges the items by the last sample, and by all that were watched.
func (r *Run) Judge(p *Profile) []Verdict {
	list := make([]Verdict, len(p.Items))
	for i := range p.Items {
		item := &p.Items[i]
		v := &list[i]
		state := r.of(item)
		*v = Verdict{Item: item, Watched: state.Watched, Seen: state.seen(r, item.Watch > 0)}
		if r.Before != nil {
			v.Before = r.Before.Outcomes[item.Name]
		}
		switch {
		case len(v.Seen) > 0:
			v.Outcome = Fail
		case state.Why != "":
			v.Outcome, v.Reason = NotJudged, state.Why
		case state.Watched < item.Watch:
			v.Outcome, v.Reason = NotJudged, fmt.Sprintf("watched for %s of %s (--soak)", timeText(state.Watched), timeText(item.Watch))
		default:
			v.Outcome = Pass
		}
		if state.Full {
			v.Reason = fmt.Sprintf("only the first %d findings are listed", maxSeen)
		}
		if state.Acked > 0 {
			v.Reason = strings.TrimPrefix(v.Reason+"; ", "; ") + plural.Count(state.Acked, "finding is", "findings are") + " acknowledged"
		}
	}
	return list
}

// timeText is a time without fractions of a second: "2h5m", "10s", "0s".
func timeText(d time.Duration) string {
	text := d.Round(time.Second).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
