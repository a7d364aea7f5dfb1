// Package audit has what all audits of a fabric share: findings, requests and their outcomes,
// acknowledgements, and the state that one run keeps for the next.
//
// An audit collects a Finding for each fault of a Subject; Merge and Fold combine findings of one
// fault and order effects below causes. A Coverage counts requests and answers, and a Need names
// information that checks need. Report.Settle selects the findings to be reported, without those
// that an Ack acknowledges or the baseline has.
//
// Answers of performance agents make up a Read of counters; a Comparison with earlier reads has
// the Window of each port and the Rate of each counter in it. State keeps reads, findings and the
// History of ports of a job in a file.
//
// The package runs no script and sends nothing.
package audit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
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
	// Absorbs are the IDs of findings about this fault, if the run has them; Parts is
	// how many others must name this one before it is absorbed (Merge).
	Absorbs []string
	Parts   int
	// Members are other subjects with this fault. An ack of one, or a baseline that has
	// one, does not hide the others.
	Members []Subject
	// Merged are the findings that were absorbed: they are about one fault, so an ack of one
	// applies.
	Merged []Finding
	// Absorbed are the IDs of Members and Merged.
	Absorbed []string
	// Count is how much there is of the fault: errors per hour, nodes; 0: it is one thing.
	Count float64
	// Since is the time of the first run since which every run has found it; zero if no
	// state is kept.
	Since time.Time
}

// Datum is one figure of a finding. The name has the unit: "rate_gbps".
type Datum struct {
	Name  string
	Value any // as the audit gave it
}

// ID returns the check, and the subject by GUID and port number. It identifies a fault across
// runs, and never depends on LIDs or names.
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

// Count returns a number of findings of a severity: "2 errors", "1 critical".
func (s Severity) Count(n int) string {
	one := s.String()
	if s == Warning || s == Error {
		return plural.Count(n, one, one+"s")
	}
	return plural.Count(n, one, one)
}

// Severities are the names of the severities, the least first.
var Severities = []string{"info", "warning", "error", "critical"}

// String returns the name of s.
func (s Severity) String() string {
	if s < Info || s > Critical {
		return fmt.Sprintf("unknown(%d)", s)
	}
	return Severities[s-Info]
}

// ParseSeverity returns the severity with a name.
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

// Has reports whether c has a finding of that ID.
func (c *Collection) Has(id string) bool {
	_, ok := c.index[id]
	return ok
}

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

// List returns the findings, the most severe first, else in the order in which they
// were added.
func (c *Collection) List() []Finding {
	list := slices.Clone(c.list)
	slices.SortStableFunc(list, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return list
}

// Confirm returns the findings of first that are confirmed after some audits have run again and
// found second: findings in both, as in second, and findings of the other audits. gone counts the
// findings that were not confirmed, fresh the findings that only second has.
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

// units returns the subjects of f that count as one each: f's own and its members, without
// nodes whose ports are among them.
func (f *Finding) units() []Subject {
	all := f.subjects()
	parts := map[string]bool{} // nodes by GUID
	for _, s := range all {
		if s.Kind == KindPort {
			parts[s.Ends[0].Node.String()] = true
		}
	}
	var units []Subject
	for _, s := range all {
		if s.Kind != KindNode || !parts[s.Key()] {
			units = append(units, s)
		}
	}
	return units
}

// subjects returns f's subject and its members.
func (f *Finding) subjects() []Subject { return append([]Subject{f.Subject}, f.Members...) }

// idAt returns the ID of the fault at s.
func (f *Finding) idAt(s Subject) string { return f.Check + ":" + s.Key() }

// member returns the record of a member of f in a State: it may be a finding of its own, or have
// others as members, in another run. It has no message, and f is its cause.
func (f *Finding) member(s Subject) Finding {
	return Finding{Audit: f.Audit, Check: f.Check, Subject: s, Severity: f.Severity, Cause: f.ID(), Since: f.Since}
}

// isMember reports whether f is the record of a member.
func (f *Finding) isMember() bool { return f.Message == "" && f.Cause != "" }

// whole returns the ID of the finding of which f is the record, or the record of a member.
func (f *Finding) whole() string {
	if f.isMember() {
		return f.Cause
	}
	return f.ID()
}

// knownUnits returns how many units have IDs in known.
func (f *Finding) knownUnits(known map[string]bool) (n int) {
	for _, u := range f.units() {
		if known[f.idAt(u)] {
			n++
		}
	}
	return n
}

// isKnown reports whether known has the IDs of f, of all its members, and of all that it has
// absorbed.
func (f *Finding) isKnown(known map[string]bool) bool {
	if len(known) == 0 || len(f.Members) == 0 && !known[f.ID()] || f.knownUnits(known) < len(f.units()) {
		return false
	}
	for i := range f.Merged {
		if !f.Merged[i].isKnown(known) {
			return false
		}
	}
	return true
}

// isKnownBut reports whether known, together with the acknowledged subjects, has all of f.
func (f *Finding) isKnownBut(acked []Subject, known map[string]bool) bool {
	if len(acked) == 0 || len(known) == 0 {
		return false
	}
	all := maps.Clone(known)
	for _, s := range acked {
		all[f.idAt(s)] = true
	}
	return f.isKnown(all)
}

// IDs adds the IDs of found, and the IDs that they have absorbed, to ids.
func IDs(found []Finding, ids map[string]bool) {
	for i := range found {
		f := &found[i]
		for _, id := range append(f.ids(), f.Absorbed...) {
			ids[id] = true
		}
	}
}

// Merge returns list without the findings that others absorb: one fault is one finding. A
// finding is absorbed if as many findings as it has parts name it. The absorbing finding keeps
// the absorbed ones, so that acks of them apply to it, and the worse severity.
func Merge(list []Finding) []Finding {
	at := map[string]int{} // by all IDs of a finding
	for i := range list {
		for _, id := range list[i].ids() {
			if _, ok := at[id]; !ok {
				at[id] = i
			}
		}
	}
	by := map[int][]int{} // the findings that absorb one, in order
	for i := range list {
		for _, id := range list[i].Absorbs {
			j, ok := at[id]
			if n := len(by[j]); ok && j != i && (n == 0 || by[j][n-1] != i) {
				by[j] = append(by[j], i)
			}
		}
	}
	into := make([]int, len(list))
	for i := range list {
		into[i] = i
		if absorbers := by[i]; len(absorbers) > 0 && len(absorbers) >= list[i].Parts {
			into[i] = absorbers[0]
		}
	}
	out := slices.Clone(list)
	gone := make([]bool, len(list))
	has := map[int]map[string]bool{} // the IDs that a finding has absorbed
	for i := range list {
		root, steps := into[i], 0
		for into[root] != root && steps < len(list) {
			root, steps = into[root], steps+1
		}
		if root == i || steps == len(list) { // in a circle, none is absorbed
			continue
		}
		gone[i] = true
		f := &out[root]
		f.Severity = max(f.Severity, list[i].Severity)
		if has[root] == nil { // else the lists are its own
			has[root] = map[string]bool{}
			for _, id := range f.Absorbed {
				has[root][id] = true
			}
			f.Absorbed, f.Merged = slices.Clone(f.Absorbed), slices.Clone(f.Merged)
		}
		f.Merged = append(append(f.Merged, list[i]), list[i].Merged...)
		for _, id := range append(list[i].ids(), list[i].Absorbed...) {
			if !has[root][id] {
				has[root][id] = true
				f.Absorbed = append(f.Absorbed, id)
			}
		}
	}
	renamed := map[string]string{} // absorbed causes
	var kept []Finding
	for i := range out {
		if !gone[i] {
			for _, id := range out[i].Absorbed {
				renamed[id] = out[i].ID()
			}
			kept = append(kept, out[i])
		}
	}
	for i := range kept {
		if id, ok := renamed[kept[i].Cause]; ok && id != kept[i].ID() {
			kept[i].Cause = id
		}
	}
	if len(kept) == len(list) {
		return list
	}
	slices.SortStableFunc(kept, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return kept
}

// ids returns the IDs by which f is known: a link has one for each end.
func (f *Finding) ids() []string { return f.idsAt(f.Subject) }

// idsAt returns the IDs of the fault at s.
func (f *Finding) idsAt(s Subject) []string {
	keys := s.keys()
	for i, key := range keys {
		keys[i] = f.Check + ":" + key
	}
	return keys
}

// Group is a finding with its effects: the findings that follow from it.
type Group struct {
	*Finding
	Effects []*Group
}

// Size returns how many findings are in g.
func (g *Group) Size() int {
	n := 1
	for _, e := range g.Effects {
		n += e.Size()
	}
	return n
}

// Fold puts each finding below its cause: the finding it names, else the nearest finding
// about a larger part of the fabric that explains it. A fault of a node (checks named
// node.x) explains faults of its links (link.x, port.x), and a fault of a link
// explains faults of the counters at its ends (ctr.x), unless they are worse. The order
// of list is kept.
func Fold(list []Finding) []*Group {
	groups := make([]*Group, len(list))
	byID := make(map[string]int, len(list))
	at := map[string][]int{} // what may explain others, by the key of each end
	for i := range list {
		f := &list[i]
		groups[i] = &Group{Finding: f}
		byID[f.ID()] = i
		if rank(f.Check) > 0 {
			for _, key := range f.Subject.keys() {
				at[key] = append(at[key], i)
			}
		}
	}
	parent := make([]int, len(list))
	for i := range list {
		parent[i] = explains(list, at, i)
		if c, ok := byID[list[i].Cause]; ok && c != i {
			parent[i] = c
		}
	}
	var roots []*Group
	for i, g := range groups {
		if p := parent[i]; p >= 0 && !inCircle(parent, i) {
			groups[p].Effects = append(groups[p].Effects, g)
		} else {
			roots = append(roots, g)
		}
	}
	return roots
}

// rank returns how much a check explains: a node more than a link, a link more than a
// counter; 0: nothing.
func rank(check string) int {
	switch group, _, _ := strings.Cut(check, "."); group {
	case "node":
		return 3
	case "link", "port":
		return 2
	}
	return 0
}

// explainable returns the rank above which findings explain this one; 3: none does.
func explainable(check string) int {
	switch group, _, _ := strings.Cut(check, "."); group {
	case "ctr":
		return 1
	case "link", "port":
		return 2
	}
	return 3
}

// explains returns the index of the finding that explains i; -1: none does.
func explains(list []Finding, at map[string][]int, i int) int {
	f := &list[i]
	best := -1
	for _, e := range f.Subject.Ends {
		for _, key := range []string{e.key(), End{Node: e.Node, Num: NoPort}.key()} {
			for _, j := range at[key] {
				c := &list[j]
				if j == i || rank(c.Check) <= explainable(f.Check) || c.Severity < f.Severity {
					continue
				}
				if best < 0 || rank(c.Check) < rank(list[best].Check) || rank(c.Check) == rank(list[best].Check) && j < best {
					best = j
				}
			}
		}
	}
	return best
}

// inCircle reports whether following causes from i leads back to i.
func inCircle(parent []int, i int) bool {
	at := parent[i]
	for range parent {
		switch {
		case at < 0:
			return false
		case at == i:
			return true
		}
		at = parent[at]
	}
	return false // the circle is further up: its members become roots
}
