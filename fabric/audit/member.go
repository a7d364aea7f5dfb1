package audit

import "maps"

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

// isKnownBut reports whether known would have all of f with those that are acknowledged.
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

// IDs adds the IDs of found, and those that they stand for, to ids.
func IDs(found []Finding, ids map[string]bool) {
	for i := range found {
		f := &found[i]
		for _, id := range append(f.ids(), f.Absorbed...) {
			ids[id] = true
		}
	}
}
