package audit

import "slices"

// Merge returns list without the findings that others absorb: one fault is one finding. A
// finding is absorbed if as many findings as it has parts name it. The absorbing finding keeps
// the IDs, so that acks of them apply to it, and the worse severity.
func Merge(list []Finding) []Finding {
	at := map[string]int{} // by all IDs of a finding
	for i := range list {
		for _, id := range list[i].ids() {
			if _, ok := at[id]; !ok {
				at[id] = i
			}
		}
	}
	by := map[int][]int{} // the findings that absorb one
	for i := range list {
		for _, id := range list[i].Absorbs {
			if j, ok := at[id]; ok && j != i && !slices.Contains(by[j], i) {
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
		f.Absorbed = slices.Clone(f.Absorbed)
		f.AbsorbedAt = append(slices.Clone(f.AbsorbedAt), list[i].Subject)
		f.AbsorbedAt = append(f.AbsorbedAt, list[i].AbsorbedAt...)
		for _, id := range append(list[i].ids(), list[i].Absorbed...) {
			if !slices.Contains(f.Absorbed, id) {
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
func (f *Finding) ids() []string {
	keys := f.Subject.keys()
	for i, key := range keys {
		keys[i] = f.Check + ":" + key
	}
	return keys
}
