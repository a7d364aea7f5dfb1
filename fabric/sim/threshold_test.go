package sim

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
)

// TestThresholds: where a counter of exceeded thresholds grows, the port says so; not
// where it is cleared, or another one grows.
func TestThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small)
		c := r.traps()
		leaf := r.named("leaf-4").GUID()
		const integrity, overrun = "local_link_integrity_errors", "excessive_buffer_overrun_errors"
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		do(r.Counters.Set(leaf, 2, map[string]uint64{integrity: 3}))
		do(r.Counters.Set(leaf, 2, map[string]uint64{integrity: 0, "symbol_error_counter": 9}))
		do(r.Counters.Add(leaf, 1, "ExcessiveBufferOverrunErrors", 2))
		do(r.Counters.SetRates(leaf, 2, map[string]float64{integrity: 0.5, "symbol_error_counter": 9}))
		do(r.Counters.SetRates(leaf, 2, map[string]float64{integrity: 0, overrun: 0}))
		if _, err := r.Counters.SetByName(state.End{Node: r.named("leaf-4").ID(), Num: 3}, "PortCounters", "ExcessiveBufferOverrunErrors", 5); err != nil {
			t.Fatal(err)
		}
		const watchdog = "port_vl_xmit_flow_ctl_update_errors1"
		do(r.Counters.Set(leaf, 2, map[string]uint64{watchdog: 1}))
		do(r.Counters.Set(r.named("node-0001 HCA-1").GUID(), 1, map[string]uint64{watchdog: 1}))
		want := []string{
			"Trap 1 4: trap 129 of LID 4, ", "Trap 2 4: trap 130 of LID 4, ", "Trap 3 4: trap 129 of LID 4, ", "Trap 4 4: trap 130 of LID 4, ",
			"Trap 5 4: trap 131 of LID 4, ",
		}
		if diff := cmp.Diff(want, r.events(c)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for range 8 { // of several counters in one call, too
			do(r.Counters.Set(leaf, 1, map[string]uint64{integrity: 0, overrun: 0}))
			r.state.Lock()
			r.Notices.LastTrap = 0
			r.state.Unlock()
			do(r.Counters.Set(leaf, 1, map[string]uint64{integrity: 1, overrun: 1}))
			if diff := cmp.Diff([]string{"Trap 1 4: trap 130 of LID 4, ", "Trap 2 4: trap 129 of LID 4, "}, r.events(c)); diff != "" {
				t.Errorf("of two counters (-want +got)\n%s", diff)
			}
		}
		r.Notices.StopTraps()
	})
}
