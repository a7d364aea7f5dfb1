package run

// Together are the names of the audits that may run by turns with others.
func (set *Set) Together() (names []string) {
	for _, a := range set.List {
		if a.together {
			names = append(names, a.Name)
		}
	}
	return names
}

// SetTogether sets whether the audits may run by turns with each other.
func (set *Set) SetTogether(together bool) {
	for _, a := range set.List {
		a.together = together
	}
}
