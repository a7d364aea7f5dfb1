package routing

import "slices"

// Report is what was found out about tables. What was not asked for is nil.
type Report struct {
	Routes   *Routes
	Verdict  *Verdict
	Diff     *Diff // from the tables that the switches have
	Failures []LinkFailure
}

// Sound says that nothing speaks against the tables: the verdict is OK, or there
// is none.
func (r *Report) Sound() bool { return r.Verdict == nil || r.Verdict.OK() }

// Clean says that there is no finding: the tables are sound, and no single link
// cuts the network. A difference is no finding.
func (r *Report) Clean() bool {
	return r.Sound() && !slices.ContainsFunc(r.Failures, func(f LinkFailure) bool { return f.Cuts })
}
