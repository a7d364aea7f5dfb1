package builtins

import (
	"slices"
	"testing"

	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
)

// TestRoutingProgress: what computes for long says what it is at, and takes that away
// again.
func TestRoutingProgress(t *testing.T) {
	loaded, _, err := sim.Parse("ring:n=4")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	f := plain(t, func(o *SessionOptions) {
		o.Env = topology.Env{Loaded: loaded}
		o.Progress = func(text string) { told = append(told, text) }
	})
	if _, why, status := f.run("t = discover().graph().route('updn')\nt.verify()\nt.repair()\nt.congestion()\nt.fail_each_link()"); status != 0 {
		t.Fatal(why)
	}
	want := []string{"computing tables by updn", "verifying the tables", "repairing the tables", "counting the loads of links", "failing one link after the other"}
	for _, line := range want {
		if i := slices.Index(told, line); i < 0 || i+1 == len(told) || told[i+1] != "" {
			t.Errorf("%q, want %q and then nothing", told, line)
		}
	}
}
