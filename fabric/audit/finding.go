// Package audit is what audits have in common, whoever judges the fabric: the
// findings, requests and answers, acknowledgements, and where one run
// keeps what the next one needs.
//
//	finding.go   Finding, with an id that is the same next run; Severity
//	subject.go   Subject: the fabric, a node, a port or a link
//	fold.go      Fold: effects under their causes; merge.go, Merge: findings of one fault
//	need.go      Need: information that checks need; Unjudged, a check that was not done
//	coverage.go  Coverage: the requests of a run, and their outcomes
//	ack.go       Ack: an acknowledged finding, by whom, and until when; ackfile.go, their file;
//	             ackindex.go, those of a finding; subnetfile.go, of which subnet it is
//	member.go    the members of a finding about several subjects
//	report.go    Report: all of one run; sweep.go, the requests of its sweep
//	metric.go    Metric: a named value for Prometheus
//	counter.go   Counters: which there are, and where they are read; read.go, what they were
//	portread.go  at a port; answers.go, made from answers; compare.go, compared with earlier reads
//	agent.go     Agents: what performance agents support
//	readfile.go  the counters in a file; share.go, use as a share of the bandwidth
//	rate.go      Rate: what two reads come to; errors.go, those that need attention;
//	             ber.go, bit errors; threshold.go, what is reported
//	state.go     State: what one run keeps for the next; statefile.go stateread.go, its
//	             file; job.go, its name; latestjob.go, that of an ack; moment.go, clocks that are set
//	history.go   History: what runs of a job have seen of ports
//
// It knows no script and sends nothing.
package audit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
)

// Finding is one thing wrong with one subject.
type Finding struct {
	Audit    string // the audit that found it: "links"
	Check    string // what is wrong: "link.width"
	Subject  Subject
	Severity Severity
	Message  string // one sentence or more
	Data     []Datum
	// Cause is the ID of the finding that it follows from; empty: it is
	// unknown.
	Cause string
	// Absorbs are the IDs of findings that are the same fault, if the run has them; Parts is
	// how many others must name this one before it is absorbed (Merge).
	Absorbs []string
	Parts   int
	// Members are other subjects with the same fault. An ack of one, or a baseline that has
	// one, does not hide the others.
	Members []Subject
	// Merged are the findings that were absorbed: the same fault, so an ack of one applies.
	Merged []Finding
	// Absorbed are the IDs of Members and Merged.
	Absorbed []string
	// Count is how much there is of the fault: errors per hour, nodes; 0: it is one thing.
	Count float64
	// Since is the run from which on it has been found each time; zero where no
	// state is kept.
	Since time.Time
}

// Datum is one figure of a finding. The name has the unit: "rate_gbps".
type Datum struct {
	Name  string
	Value any // as the finder gave it; this package only carries it
}

// ID stays the same for the same fault in the next run: check, and subject by GUID
// and port number. It never depends on LIDs or names.
func (f *Finding) ID() string { return f.Check + ":" + f.Subject.Key() }

// CheckName matches valid names of checks: words with dots between them.
var CheckName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}(\.[a-z0-9_]{1,32}){0,3}$`)
})

// Severity is the urgency of a finding.
type Severity uint8

const (
	Info     Severity = iota + 1 // worth knowing
	Warning                      // needs attention
	Error                        // something does not work as it should
	Critical                     // data or management is broken now
)

// Severities are the words of all, the least first.
var Severities = []string{"info", "warning", "error", "critical"}

// String is the word of s.
func (s Severity) String() string {
	if s < Info || s > Critical {
		return fmt.Sprintf("unknown(%d)", s)
	}
	return Severities[s-Info]
}

// ParseSeverity reads a word.
func ParseSeverity(word string) (Severity, error) {
	i := slices.Index(Severities, word)
	if i < 0 {
		return 0, fmt.Errorf("unknown severity %q%s; supported: %s", word, fabric.DidYouMean(word, Severities), strings.Join(Severities, ", "))
	}
	return Info + Severity(i), nil
}

// maxMessages is how many messages of one finding are kept.
const maxMessages = 8

// Collection gathers findings. A check finds one fault of one subject: further
// messages about it are joined.
type Collection struct {
	list  []Finding
	index map[string]int      // by ID
	said  map[string][]string // messages, by ID
}

// Add adds f.
func (c *Collection) Add(f Finding) { c.add(f, f.Message) }

// Join adds the findings of x.
func (c *Collection) Join(x *Collection) {
	for _, f := range x.list {
		c.add(f, x.said[f.ID()]...)
	}
}

// add adds f, whose message consists of messages.
func (c *Collection) add(f Finding, messages ...string) {
	if c.index == nil {
		c.index, c.said = map[string]int{}, map[string][]string{}
	}
	id := f.ID()
	i, ok := c.index[id]
	if !ok {
		c.index[id] = len(c.list)
		c.said[id] = messages
		c.list = append(c.list, f)
		return
	}
	old := &c.list[i]
	old.Severity = max(old.Severity, f.Severity)
	if old.Cause == "" {
		old.Cause = f.Cause
	}
	if len(old.Subject.Ends) > 0 && old.Subject.Ends[0].Name == "" && old.Subject.Kind == f.Subject.Kind {
		old.Subject = f.Subject // with its name
	}
	old.Absorbs, old.Absorbed = append(old.Absorbs, f.Absorbs...), append(old.Absorbed, f.Absorbed...)
	old.Members = append(old.Members, f.Members...)
	old.Parts, old.Count = max(old.Parts, f.Parts), max(old.Count, f.Count)
	for _, m := range messages {
		if said := c.said[id]; len(said) < maxMessages && !slices.Contains(said, m) {
			c.said[id] = append(said, m)
			old.Message += "; " + m
		}
	}
}

// List are the findings, the most severe first, else in the order in which they
// were found.
func (c *Collection) List() []Finding {
	list := slices.Clone(c.list)
	slices.SortStableFunc(list, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return list
}

// Confirm returns what is left of first when some audits have run again and found second:
// findings of both, as in second, and findings of the other audits. gone counts the
// findings that were not confirmed, fresh those in second alone.
func Confirm(first, second []Finding, again map[string]bool) (kept []Finding, gone, fresh int) {
	still := map[string]Finding{}
	for _, f := range second {
		still[f.ID()] = f
	}
	var all Collection
	for _, f := range first {
		id := f.ID()
		x, ok := still[id]
		delete(still, id)
		switch {
		case ok:
			all.Add(x)
		case !again[f.Audit]:
			all.Add(f)
		default:
			gone++
		}
	}
	return all.List(), gone, len(still)
}
