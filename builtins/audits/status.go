package audits

import (
	"fabsh/builtins/lang"
	"fabsh/fabric/audit"
)

// RunStatus returns the exit status of a run: 1 for findings of at least failOn, 3 for requests
// without an answer or audits that did not run, 2 for errors of an audit.
func RunStatus(r *audit.Report, failOn audit.Severity) int {
	code := lang.StatusClean
	if r.Worst() >= failOn {
		code = lang.StatusFindings
	}
	if !r.Answered() {
		code = lang.StatusFabric
	}
	for _, f := range r.Failures {
		if !f.Skipped && !isFabricError(f.Err) {
			code = lang.StatusUsage
		}
	}
	return code
}
