package audit

import "slices"

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
