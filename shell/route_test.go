package shell

import (
	"slices"
	"testing"

	"fabsh/builtins/script"
)

// TestPolicyOptions: no option of a shipped policy has the name of a flag of route, which
// would hide it.
func TestPolicyOptions(t *testing.T) {
	for _, p := range script.Policies.Shipped() {
		for _, option := range policyProgram(p.Name).Options {
			if slices.Contains(routeFlags, option) {
				t.Errorf("fabsh route %s: %s is a flag of route", p.Name, option)
			}
		}
	}
}
