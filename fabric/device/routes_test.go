package device_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestReadRoutes: rows are the tables that the switches have; rows of switches that do not answer,
// or have no address, drop all packets and are reported.
func TestReadRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topology, o, err := sim.Parse("ring:n=3")
		if err != nil {
			t.Fatal(err)
		}
		subnet := sim.New(topology, o)
		transport, err := subnet.Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(transport, engine.Options{})
		defer e.Close()
		f, err := discover.Sweep(t.Context(), e, discover.Options{Around: mad.DirectedRoute{0}})
		if err != nil {
			t.Fatal(err)
		}
		whole, failed, err := device.ReadRoutes(t.Context(), e, f)
		if err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
		for s, n := range whole.Graph().Switches() {
			lfts, err := device.ReadLFTs(t.Context(), e, []fabric.Dest{{Route: n.Route()}})
			if err != nil || !bytes.Equal(lfts[0].Entries, whole.Row(s)[:len(lfts[0].Entries)]) {
				t.Errorf("%v: %v, %v, want %v", n, err, whole.Row(s), lfts)
			}
		}
		if whole.Engine != "live" || whole.Entries() != 18 {
			t.Errorf("engine %q, %d entries", whole.Engine, whole.Entries())
		}

		silent := whole.Graph().Switches()[1]
		for p := range silent.Ports() {
			if p.Peer() != nil {
				if err := subnet.Cables.Silence(silent.GUID(), p.Num(), true); err != nil {
					t.Fatal(err)
				}
			}
		}
		part, failed, err := device.ReadRoutes(t.Context(), e, f)
		if err != nil || len(failed) != 1 || failed[0].Switch != silent || !errors.Is(failed[0].Err, engine.ErrTimeout) || part.Entries() != 12 {
			t.Errorf("%v, failed %v, %d entries", err, failed, part.Entries())
		}

		_, failed, err = device.ReadRoutes(t.Context(), e, topology)
		if err != nil || len(failed) != 3 || !errors.Is(failed[2].Err, device.ErrNoAddress) {
			t.Errorf("a file without LIDs: %v, failed %v", err, failed)
		}
	})
}
