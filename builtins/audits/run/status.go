package run

import (
	"fabsh/builtins/lang"
	"fabsh/builtins/status"
	"fabsh/fabric/audit"
)

// Status returns the exit status of a run: of failOn or worse, findings make it
// 1; what was not answered or not done, 3; a broken audit, 2.
func Status(r *audit.Report, failOn audit.Severity) int {
	code := lang.StatusClean
	if r.Worst() >= failOn {
		code = lang.StatusFindings
	}
	if !r.Complete() {
		code = lang.StatusFabric
	}
	for _, f := range r.Failures {
		if !f.Skipped && !status.OfFabric(f.Err) {
			code = lang.StatusUsage
		}
	}
	return code
}
