package audits

// Together returns the names of the audits that may run at the same time as others.
func (set *Selection) Together() (names []string) {
	for _, a := range set.List {
		if a.together {
			names = append(names, a.Name)
		}
	}
	return names
}

// SetTogether sets whether the audits may run together.
func (set *Selection) SetTogether(together bool) {
	for _, a := range set.List {
		a.together = together
	}
}
