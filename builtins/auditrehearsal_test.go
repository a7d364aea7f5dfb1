package builtins

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/builtins/audits"
)

// play has a session play a scenario.
func play(t *testing.T, f *fixture, name string) {
	t.Helper()
	if out, explained, exit := f.run("sim.play(\"" + name + "\")"); exit != 0 {
		t.Fatal(out, explained)
	}
}

// TestFlapIsFound: the default audit finds the shipped scenario flap whenever it starts while the
// link is up, and with its earlier reads as a link that flaps.
func TestFlapIsFound(t *testing.T) {
	onSim(t, "fattree:seed=3", func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
		play(t, f, "flap")
		for _, start := range []time.Duration{time.Second, 4 * time.Second, time.Minute} {
			time.Sleep(start)
			if got := told(audited(t, f, audits.RunOptions{Job: "x"})); !strings.Contains(got, "error ctr.downed leaf-") || !strings.Contains(got, ": 1 link-down event in 10 s; ") {
				t.Errorf("got\n%s", got)
			}
		}
		audited(t, f, audits.RunOptions{Job: "x"}, "counters", "--over=last")
		time.Sleep(time.Minute)
		if got := told(audited(t, f, audits.RunOptions{Job: "x"}, "counters", "--over=last")); !strings.Contains(got, "error link.flap leaf-") {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestRehearsedFaults: the standard audits find what methods of sim do, and nothing else.
func TestRehearsedFaults(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{`sim.speed("leaf-1/5", "edr")`, "link.speed"},
		{`sim.speed("leaf-1/5", width="2x")`, "link.width"},
		{`sim.speed("leaf-1/5", "edr", width="2x")`, "link.speed link.width"},
		{`every("3s", lambda: sim.speed("leaf-1/5", "hdr"), start="3s", until="9s")`, "link.flap"},
		{`at("5s", lambda: sim.speed("leaf-1/5", "edr", once=True)); at("7s", lambda: port_reset(discover().node("leaf-1").ports[5]))`, "link.flap"},
		{`sim.guid("node-0003 HCA-1", discover().node("node-0004 HCA-1").guid)`, "guid.dup"},
		{`sim.second_sm("node-0003 HCA-1", "master")`, "sm.many"},
		{`sim.rename("node-0003 HCA-1", "localhost mlx5_0")`, "name.default"},
	} {
		onSim(t, "fattree", nil, func(t *testing.T, f *fixture) {
			write(t, f.fs, "/work/x.star", "def scenario(sim):\n    "+test.code+"\n")
			play(t, f, "x.star")
			var got []string
			r := audited(t, f, audits.RunOptions{})
			for i := range r.Findings {
				if check := r.Findings[i].Check; check != "audit.changed_during" { // the subnet manager sweeps
					got = append(got, check)
				}
			}
			slices.Sort(got)
			if want := strings.Fields(test.want); !slices.Equal(got, want) {
				t.Errorf("%s: got\n%swant %s; %v", test.code, told(r), test.want, r.Notes)
			}
		})
	}
}
