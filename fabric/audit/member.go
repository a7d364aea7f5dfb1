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
