package builtins

import (
	"testing"
	"time"
)

// TestPlayInRealTime: by the machine's clock, the actions happen at their times while the
// script sleeps, and end with the session.
func TestPlayInRealTime(t *testing.T) {
	onSim(t, "fattree:seed=3", nil, func(t *testing.T, f *fixture) {
		begun := time.Now()
		got, explained, _ := f.run(`
sim.play("flap")
sleep("25s")
print([(a["at"], a["action"]) for a in sim.actions()])
print(len(discover().links))
sim.play("flap", seed=1)
`)
		if want := "[(10, \"unlink\"), (12, \"link\"), (20, \"unlink\"), (22, \"link\")]\n64\n"; got != want || explained != "" {
			t.Errorf("got %s%s, want %s", got, explained, want)
		}
		if took := time.Since(begun); took.Round(time.Second) != 25*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
