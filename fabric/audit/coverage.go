package audit

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Outcome is the outcome of a request.
type Outcome uint8

const (
	Answered    Outcome = iota
	Unsupported         // the agent, the file or the transport does not have the attribute
	TimedOut
	Failed // the answer was another error
)

// Row counts the requests of an audit for one attribute.
type Row struct {
	Audit, Attribute                                  string
	Requests, Answered, Unsupported, TimedOut, Failed int
}

// Complete reports whether all requests were answered, by agents that have the attribute.
func (r *Row) Complete() bool { return r.TimedOut == 0 && r.Failed == 0 }

func (r *Row) count(o Outcome, n int) {
	r.Requests += n
	switch o {
	case Answered:
		r.Answered += n
	case Unsupported:
		r.Unsupported += n
	case TimedOut:
		r.TimedOut += n
	default:
		r.Failed += n
	}
}

// Coverage counts the requests of one run.
type Coverage struct {
	audits []string // in the order in which they began; one that is forgotten keeps its place
	rows   []Row
	index  map[[2]string]int
	misses []miss
}

// miss is a request without an answer.
type miss struct {
	row     int
	outcome Outcome
	subject Subject
	n       int
}

// Count counts n requests of an audit for an attribute of s, all with outcome o.
func (c *Coverage) Count(audit, attribute string, s Subject, o Outcome, n int) {
	if n == 0 {
		return
	}
	key := [2]string{audit, attribute}
	i, ok := c.index[key]
	if !ok {
		if c.index == nil {
			c.index = map[[2]string]int{}
		}
		i = len(c.rows)
		c.index[key] = i
		if !slices.Contains(c.audits, audit) {
			c.audits = append(c.audits, audit)
		}
		c.rows = append(c.rows, Row{Audit: audit, Attribute: attribute})
	}
	c.rows[i].count(o, n)
	if o == TimedOut || o == Failed {
		c.misses = append(c.misses, miss{i, o, s, n})
	}
}

// Begin sets the order in which audits are listed, whichever of them sends requests first, or again.
func (c *Coverage) Begin(audits ...string) { c.audits = audits }

// Rows returns the rows by audit, in the order of Begin, then in the order of first requests; the
// rows of an audit by attribute.
func (c *Coverage) Rows() []Row {
	rows := slices.Clone(c.rows)
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(c.audits, a.Audit), slices.Index(c.audits, b.Audit)), cmp.Compare(a.Attribute, b.Attribute))
	})
	return rows
}

// Clone returns a copy of c.
func (c *Coverage) Clone() Coverage {
	return Coverage{slices.Clone(c.audits), slices.Clone(c.rows), maps.Clone(c.index), slices.Clone(c.misses)}
}

// Forget drops the requests of an audit, which runs again.
func (c *Coverage) Forget(audit string) {
	old := *c
	*c = Coverage{audits: old.audits}
	for _, r := range old.rows {
		if r.Audit != audit {
			c.Count(r.Audit, r.Attribute, Subject{}, Answered, r.Answered)
			c.Count(r.Audit, r.Attribute, Subject{}, Unsupported, r.Unsupported)
		}
	}
	for _, m := range old.misses {
		if r := old.rows[m.row]; r.Audit != audit {
			c.Count(r.Audit, r.Attribute, m.subject, m.outcome, m.n)
		}
	}
}

// Complete reports whether nothing that was requested is missing.
func (c *Coverage) Complete() bool {
	return !slices.ContainsFunc(c.rows, func(r Row) bool { return !r.Complete() })
}

// Total sums all rows up.
func (c *Coverage) Total() (t Row) {
	for _, r := range c.rows {
		t.Requests += r.Requests
		t.Answered += r.Answered
		t.Unsupported += r.Unsupported
		t.TimedOut += r.TimedOut
		t.Failed += r.Failed
	}
	return t
}

// Share returns the share of requests that were answered, in words. Unsupported attributes
// do not count.
func (c *Coverage) Share() string {
	t := c.Total()
	wanted := t.Requests - t.Unsupported
	switch {
	case t.Requests == 0:
		return "no requests"
	case c.Complete():
		return "100 % of " + plural.Count(wanted, "request", "requests")
	}
	return fmt.Sprintf("%.2f %% of %d requests", min(100*float64(t.Answered)/float64(max(wanted, 1)), 99.99), wanted)
}

// lack returns which answers to requests of an audit for an attribute are missing, in words; "":
// none, or it was not requested.
func (c *Coverage) lack(audit, attribute string) string {
	i, ok := c.index[[2]string{audit, attribute}]
	if !ok {
		return ""
	}
	switch r := &c.rows[i]; {
	case r.TimedOut+r.Failed > 0:
		return fmt.Sprintf("%s: no answer to %d of %s", attribute, r.TimedOut+r.Failed, plural.Count(r.Requests, "request", "requests"))
	case r.Requests > 0 && r.Unsupported == r.Requests:
		return attribute + ": not supported"
	}
	return ""
}

// answered returns how many requests of an audit were answered.
func (c *Coverage) answered(audit string) (n int) {
	for i := range c.rows {
		if c.rows[i].Audit == audit {
			n += c.rows[i].Answered
		}
	}
	return n
}

// Unsupported returns which attributes an audit requested, in words, if none of its requests was
// supported; else "".
func (c *Coverage) Unsupported(audit string) string {
	var lacks []string
	for _, r := range c.Rows() {
		switch {
		case r.Audit != audit || r.Requests == 0:
		case r.Unsupported < r.Requests:
			return ""
		default:
			lacks = append(lacks, c.lack(audit, r.Attribute))
		}
	}
	return strings.Join(lacks, "; ")
}

// Missing returns the subjects that did not answer, each once.
func (c *Coverage) Missing() (list []Subject) {
	seen := map[string]bool{}
	for _, m := range c.misses {
		if key := m.subject.Key(); !seen[key] {
			seen[key] = true
			list = append(list, m.subject)
		}
	}
	return list
}

// Miss is a request without an answer.
type Miss struct {
	Audit, Attribute string
	Subject          Subject // that was asked
}

// Misses returns the requests without an answer, in order.
func (c *Coverage) Misses() iter.Seq[Miss] {
	return func(yield func(Miss) bool) {
		for _, m := range c.misses {
			if r := &c.rows[m.row]; !yield(Miss{r.Audit, r.Attribute, m.subject}) {
				return
			}
		}
	}
}

// Excuse removes the subjects that are known not to answer from the count.
func (c *Coverage) Excuse(known func(Subject) bool) {
	c.misses = slices.DeleteFunc(c.misses, func(m miss) bool {
		if !known(m.subject) {
			return false
		}
		r := &c.rows[m.row]
		r.Requests -= m.n
		if m.outcome == TimedOut {
			r.TimedOut -= m.n
		} else {
			r.Failed -= m.n
		}
		return true
	})
}

// Sweep stands for the sweep among the audits of a coverage.
const Sweep = "sweep"

// CountSweep counts the requests of the sweep that made f, as far as f shows them: requests that were
// repeated on another route count once. Of a file (live is false), what it lacks is
// unsupported. missed is what else was missed, in words.
func (c *Coverage) CountSweep(f *fabric.Fabric, live bool) (missed []string) {
	one := func(a *mad.Attribute, s Subject, known, asked bool) {
		outcome := Unsupported
		switch {
		case known:
			outcome = Answered
		case asked:
			outcome = TimedOut
		}
		c.Count(Sweep, a.Name, s, outcome, 1)
	}
	nodes := f.Nodes()
	for i := range nodes {
		n := &nodes[i]
		asked := n.Route() != nil
		one(mad.AttrNodeInfo, OfNode(n), true, asked)
		if n.IsSwitch() {
			one(mad.AttrSwitchInfo, OfNode(n), n.SwitchInfo() != nil, asked)
			one(mad.AttrPortInfo, OfPort(n.Port(0)), n.Port(0).Info() != nil, asked)
		}
		for p := range n.Ports() {
			// A sweep reads the ports of a CA that links lead to, and the one that it begins at.
			if n.IsSwitch() || p.Peer() != nil || p.Info() != nil || p == f.From() {
				one(mad.AttrPortInfo, OfPort(p), p.Info() != nil, asked)
			}
			if asked && p.PeerUnknown() {
				one(mad.AttrNodeInfo, OfPort(p), false, true)
			}
		}
	}
	for _, p := range f.Problems() {
		switch {
		case !p.Kind.Missing(), p.Attribute == mad.AttrNodeInfo.Name, p.Attribute == mad.AttrPortInfo.Name, p.Attribute == mad.AttrSwitchInfo.Name:
			continue
		case p.Kind == fabric.ProblemNoLinks: // Report.Answered
		case p.Attribute == "" && !live && (p.Kind == fabric.ProblemTimedOut || p.Kind == fabric.ProblemFailed):
			continue // in a file the attribute is unknown; what it lacks is counted above
		case p.Attribute == "":
			c.Count(Sweep, mad.AttrNodeInfo.Name, OfFabric(), Failed, 1)
		default:
			c.Count(Sweep, p.Attribute, OfFabric(), TimedOut, 1)
		}
		missed = append(missed, p.Text)
	}
	return missed
}
