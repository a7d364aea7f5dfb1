package sim

import (
	"testing"
	"time"
)

// TestManyFlows: traffic of all hosts of a large subnet is begun at once; it took 5 s
// while each flow looked for its nodes among all.
func TestManyFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("a large subnet")
	}
	r := newRig(t, "fattree:k=254,levels=2")
	begun := time.Now()
	flows := r.Traffic.HostPairs(1e9)
	if err := r.Traffic.Set(flows); err != nil || len(flows) != 32258 {
		t.Fatal(len(flows), err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("%d flows took %v", len(flows), took)
	}
}
