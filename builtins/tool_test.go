package builtins

import (
	"context"
	"testing"

	"fabsh/builtins/check"
	"fabsh/builtins/program"
)

// TestTools: what is said of each tool can be typed, and does not fail.
func TestTools(t *testing.T) {
	for _, tool := range check.Tools() {
		if tool.Here == "" && tool.Command == "" && tool.Note == "" {
			t.Errorf("%s: nothing is said", tool.Name)
		}
		onSim(t, "", nil, func(t *testing.T, f *fixture) {
			code := "target = \"leaf-1\"; port = 1; discover()\n" + tool.Here
			if err := program.RunCode(context.Background(), f.Interpreter, "<tool>", code); err != nil && tool.Name != "vendstat" && tool.Name != "ibccquery" { // which this switch does not have
				t.Errorf("%s: %s", tool.Name, f.Explain(err))
			}
		})
	}
}
