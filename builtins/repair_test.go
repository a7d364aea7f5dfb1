package builtins

import "testing"

// TestRepairDiscovers: tables are repaired for the fabric as it is now, not as it was when a script
// discovered it.
func TestRepairDiscovers(t *testing.T) {
	onSim(t, "torus:dims=4/4,hosts=1", nil, func(t *testing.T, f *fixture) {
		out, explained, status := f.run(`
t = discover().graph().route("updn")
sim.unlink("switch-1-1/3")
r = t.repair()
print(r.verify().ok, r.diff(t).entries > 0, len(r.fabric.links) - len(t.fabric.links))
`)
		if out != "True True -1\n" || status != 0 {
			t.Errorf("status %d: %s%s", status, out, explained)
		}
	})
}
