package builtins

import (
	"slices"
	"strings"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// fabrics are the audits that judge the fabric.
func (r *auditRun) fabrics() []*Audit {
	return slices.DeleteFunc(slices.Clone(r.Audits.List), func(a *Audit) bool { return slices.Contains(a.own, runOption) })
}

// ofRun adds to found what audits find about the run itself. Without such audits,
// what changed meanwhile, and that there was nothing to compare with, is a note.
func (r *auditRun) ofRun(f *topology.Fabric, found []audit.Finding, changed string) ([]audit.Finding, error) {
	list := slices.DeleteFunc(slices.Clone(r.Audits.List), func(a *Audit) bool { return !slices.Contains(a.own, runOption) })
	if len(list) == 0 {
		if changed != "" {
			r.note("%s", changed)
		}
		if why := audits.Uncompared(r.Runtime); why != "" {
			r.note("counters were not judged: %s", why)
		}
		return found, nil
	}
	more, err := r.runAll(f, list, audits.WrapRun(r.Runtime, r.settled(found), found, changed))
	return append(found, more...), err
}

// settled is the report as it would be if found were all.
func (r *auditRun) settled(found []audit.Finding) *audit.Report {
	report := &audit.Report{Coverage: r.report.Coverage.Clone(), Failures: r.report.Failures}
	report.Settle(slices.Clone(found), r.acks, func(id string) bool { return r.known[id] }, r.Clock.Now())
	return report
}

// keep ends the run, and keeps for the next what it read and found.
func (r *auditRun) keep(f *topology.Fabric, found []audit.Finding) {
	gone, err := audits.EndRun(r.Runtime, f.Fabric, found, r.settled(found).Complete())
	if err != nil {
		r.report.Failures = append(r.report.Failures, audit.Failure{Audit: "state", Err: err})
	}
	// That a run was short of something is not news of the fabric.
	gone = slices.DeleteFunc(gone, func(f audit.Finding) bool { return strings.HasPrefix(f.Check, "audit.") })
	if len(gone) > 0 {
		var names []string
		for _, f := range gone[:min(len(gone), 3)] {
			names = append(names, f.Check+" "+f.Subject.Name())
		}
		if len(gone) > 3 {
			names = append(names, "...")
		}
		r.note("%s gone since the run before: %s", fabric.Plural(len(gone), "finding is", "findings are"), strings.Join(names, ", "))
	}
}
