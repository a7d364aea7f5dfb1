package builtins

import "testing"

// TestSavePath: the error for arguments in the wrong order does not show all of the value.
func TestSavePath(t *testing.T) {
	onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
		out, explained, status := f.run(`print(catch(save, "a.csv", 5000 * "x").message)`)
		if want := "save: for parameter path: got a text of 5000 bytes, and a path has at most 4096; write save(VALUE, PATH)\n"; out != want || status != 0 {
			t.Errorf("status %d: %s%s", status, out, explained)
		}
	})
}
