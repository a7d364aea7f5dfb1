package audit

import (
	"slices"
	"strings"
	"time"
)

// ackIndex finds the acks of a finding without comparing it with each: a large fabric may have
// thousands of both.
type ackIndex struct {
	now    time.Time
	acks   Acks
	at     map[string][]int // into acks, by the part of the pattern without *
	counts map[*Ack]float64 // Ack.CountOf all findings
}

// index returns the index for found.
func (list Acks) index(found []Finding, now time.Time) *ackIndex {
	x := &ackIndex{now: now, acks: list, at: map[string][]int{}, counts: map[*Ack]float64{}}
	for i := range list {
		key := patternKey(list[i].Pattern)
		x.at[key] = append(x.at[key], i)
	}
	if len(list) == 0 {
		return x
	}
	for i := range found {
		f := &found[i]
		for _, a := range x.matching(append(f.ids(), f.Absorbed...)) {
			x.counts[a] = a.add(x.counts[a], f)
		}
	}
	return x
}

// patternKey returns the part of a pattern by which IDs find it: all of it, the check, the
// subject, or nothing.
func patternKey(pattern string) string {
	check, subject, ok := strings.Cut(pattern, ":")
	switch {
	case !strings.Contains(pattern, "*"):
		return pattern
	case ok && !strings.Contains(check, "*"):
		return check + ":"
	case ok && !strings.Contains(subject, "*"):
		return ":" + subject
	}
	return ""
}

// candidates returns the indices of the acks that may match id.
func (x *ackIndex) candidates(id string) []int {
	check, subject, _ := strings.Cut(id, ":")
	return slices.Concat(x.at[id], x.at[check+":"], x.at[":"+subject], x.at[""])
}

// matching returns the acks that match one of ids, in the order of the list.
func (x *ackIndex) matching(ids []string) (list []*Ack) {
	var all []int
	for _, id := range ids {
		for _, i := range x.candidates(id) {
			if matches(x.acks[i].Pattern, id) {
				all = append(all, i)
			}
		}
	}
	slices.Sort(all)
	for _, i := range slices.Compact(all) {
		list = append(list, &x.acks[i])
	}
	return list
}

// of returns the first ack in force that matches one of ids; without one, that which ended
// last.
func (x *ackIndex) of(ids []string) (a *Ack, inForce bool) {
	for _, m := range x.matching(ids) {
		switch {
		case m.InForce(x.now):
			return m, true
		case a == nil || a.Until.Before(m.Until):
			a = m
		}
	}
	return a, false
}

// cover is what acks cover of a finding.
type cover struct {
	ack   *Ack      // the first in force; without one, an ack that has ended
	full  bool      // the whole finding
	grown bool      // ack would cover it, but it has outgrown it
	acked []Subject // of a finding with members, the units that acks in force are about
	count int       // how many units were acknowledged: more than acked if it is unknown which
}

// cover returns what acks cover of f: all of it, by an ack of f, or of a finding of the same
// fault that it has absorbed; or some of its units.
func (x *ackIndex) cover(f *Finding) cover {
	if len(x.acks) == 0 {
		return cover{}
	}
	c := x.coverOwn(f)
	for i := range f.Merged {
		if c.full || c.grown {
			break
		}
		switch m := x.coverOwn(&f.Merged[i]); {
		case m.full, m.grown:
			return cover{ack: m.ack, full: m.full, grown: m.grown}
		case c.ack == nil && m.count == 0:
			c.ack = m.ack
		}
	}
	return c
}

func (x *ackIndex) coverOwn(f *Finding) (c cover) {
	if len(f.Members) > 0 {
		return x.coverUnits(f)
	}
	a, inForce := x.of(f.ids())
	c.ack, c.grown = a, inForce && a.outgrown(x.counts[a])
	c.full = inForce && !c.grown
	return c
}

// coverUnits covers a finding with members. An ack of its ID is about as many units as the
// finding had then: those that were added since are reported. If it has no count, it is
// about the subject that it names.
func (x *ackIndex) coverUnits(f *Finding) (c cover) {
	units := f.units()
	held := map[string]bool{} // subjects that acks are about, by key
	for i, s := range f.subjects() {
		a, inForce := x.of(f.idsAt(s))
		switch {
		case !inForce:
			if c.ack == nil {
				c.ack = a
			}
			continue
		case a.isPattern() && a.outgrown(x.counts[a]):
			return cover{ack: a, grown: true}
		case i == 0 && !a.isPattern() && a.Count >= float64(len(units)):
			return cover{ack: a, full: true}
		case i == 0 && !a.isPattern() && a.Count > 0:
			c.count = max(1, int(a.Count))
		}
		if c.ack == nil || !c.ack.InForce(x.now) {
			c.ack = a
		}
		// An ack of the whole, of fewer ports, is about no port in particular.
		if i > 0 || a.isPattern() || a.Count == 0 || s.Kind != KindNode || slices.ContainsFunc(units, func(u Subject) bool { return u.Key() == s.Key() }) {
			held[s.Key()] = true
		}
	}
	for _, u := range units {
		if held[u.Key()] || u.Kind == KindPort && held[u.Ends[0].Node.String()] {
			c.acked = append(c.acked, u)
		}
	}
	c.count = max(c.count, len(c.acked))
	c.full = len(c.acked) == len(units)
	return c
}
