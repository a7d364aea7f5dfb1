package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// TestTrafficBefore: what went before a change is counted where it went, although
// nobody read a counter in between.
func TestTrafficBefore(t *testing.T) {
	const second = 4096e3 / 4
	for name, test := range map[string]struct {
		change func(r *rig) error
		want   uint64 // that leaf-1/4 has sent
	}{
		"a cable":            {func(r *rig) error { return r.Cables.Unlink(r.named("leaf-1").GUID(), 4) }, 2 * second},
		"a hand":             {func(r *rig) error { return r.Cables.Pull(state.End{Node: r.named("leaf-1").ID(), Num: 4}) }, 2 * second},
		"power":              {func(r *rig) error { return r.Cables.Kill(r.named("spine-2").GUID()) }, 2 * second},
		"a set":              {func(r *rig) error { return r.route(mad.NoPort) }, 2 * second},
		"a reboot":           {func(r *rig) error { return r.Cables.Reboot(r.named("leaf-1").GUID()) }, 0},
		"all that was there": {func(r *rig) error { return r.Counters.Reset(r.named("leaf-1").GUID(), 4) }, 0},
	} {
		r, now := clocked(t, small)
		if err := r.Traffic.Set([]Flow{{From: r.cable("node-0001 HCA-1", 0), To: r.cable("node-0008 HCA-1", 1), Rate: 4096e3}}); err != nil {
			t.Fatal(err)
		}
		*now = now.Add(2 * time.Second)
		if err := test.change(r); err != nil {
			t.Fatal(err)
		}
		if got := r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)["port_xmit_data"]; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestTrafficBare: also where another program is the subnet manager, a cable that a
// hand pulls carries nothing.
func TestTrafficBare(t *testing.T) {
	r, now := clocked(t, small)
	r.state.SM = nil
	if err := r.Traffic.Set([]Flow{{From: r.cable("node-0001 HCA-1", 0), To: r.cable("node-0008 HCA-1", 1), Rate: 4096e3}}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	want := r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)
	want["port_xmit_discards"] = 1000 // it has no other way
	if err := r.Cables.Pull(state.End{Node: r.named("leaf-1").ID(), Num: 4}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Second)
	if diff := cmp.Diff(want, r.counters(mad.AttrPortCountersExtended, "leaf-1", 4)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// route sets where leaf-1 sends what is for node-0008.
func (r *rig) route(port byte) error {
	r.t.Helper()
	_, block := r.get(mad.AttrLinearForwardingTable, 0, leaf1)
	data := append([]byte(nil), block...)
	data[r.lid("node-0008 HCA-1")] = port
	r.set(mad.AttrLinearForwardingTable, 0, leaf1, data)
	return nil
}
