package change_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"fabsh/fabric/change"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// writesOf are the blocks by which tables differ from those in force.
func writesOf(r, live *routes.Routes) (all []change.Write) {
	for _, sd := range r.Diff(live).Switches {
		n := r.Graph().Switches()[sd.Switch]
		for _, b := range sd.Blocks {
			w := change.Write{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: n.GUID(), Label: n.Label(), New: make([]byte, mad.LFTBlock)}
			for i := range w.New {
				w.New[i] = r.Row(sd.Switch).Port(mad.LID(b*mad.LFTBlock + i))
			}
			all = append(all, w)
		}
	}
	return all
}

// TestLanesAreRead: where tables have a credit loop on one lane, the lanes that the
// switches have are read, and the proof is per lane: of the service levels that are in
// use, or of all where that is not known.
func TestLanesAreRead(t *testing.T) {
	f, _, err := sim.Parse("dragonfly:p=1,a=4,h=1")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target, err := engines.Compute(t.Context(), g, "dragonfly", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// All service levels on the lanes of SL 0, or all but SL 1.
	lanes, but := routes.NewSL2VL(g), routes.NewSL2VL(g)
	for s, n := range g.Switches() {
		for in := range n.NumPorts() + 1 {
			for out := range n.NumPorts() + 1 {
				var all [mad.ServiceLevels]uint8
				for sl := range all {
					all[sl] = target.SL2VL.VL(s, uint8(in), uint8(out), 0)
				}
				if err := lanes.Set(s, uint8(in), uint8(out), all); err != nil {
					t.Fatal(err)
				}
				all[1] = 0
				if err := but.Set(s, uint8(in), uint8(out), all); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	zero := &routes.SL{Dest: []uint8{}}
	one := &routes.SL{Dest: slices.Repeat([]uint8{1}, int(g.Top())+1)}
	for i, c := range []struct {
		lanes  *routes.SL2VL
		levels *routes.SL
		safe   bool
	}{{lanes, nil, true}, {routes.NewSL2VL(g), nil, false}, {nil, nil, false}, {but, nil, false}, {but, zero, true}, {but, one, false}, {lanes, one, true}} {
		live, err := engines.Compute(t.Context(), g, "nue", engines.Options{})
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		tables := change.Tables{Live: live, Lanes: func(_ context.Context, r *routes.Routes) error {
			read++
			if r.SL2VL = c.lanes; r.SL2VL == nil {
				return errors.New("no answer")
			}
			return nil
		}}
		told := 0
		tables.Levels = func(context.Context, *routes.Routes) (*routes.SL, string, error) {
			told++
			return c.levels, "known", nil
		}
		_, s, err := tables.Order(t.Context(), writesOf(target, live))
		if safe := s != nil; safe != c.safe || change.CreditLoop(err) == c.safe || read != 1 || told > 1 {
			t.Errorf("case %d: read %d times, told %d times, a schedule: %v, %v", i, read, told, safe, err)
		}
	}
}
