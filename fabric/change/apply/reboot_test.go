package apply_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestReboot: a switch that is restarted in the middle of a change has lost LIDs, port
// states and tables. It is foreign: the change stops, as its taking back does, and it goes
// on, or back, when the table is there again.
func TestReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		r.bare("fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		j, err := apply.NewJournal("", &apply.Begin{Cells: r.cells}, clock{})
		if err != nil {
			t.Fatal(err)
		}
		c := r.change(e, j)
		first := r.cells[0]
		c.Log = func(string) {
			if err := r.subnet.Cables.Reboot(first.Node); err != nil {
				t.Fatal(err)
			}
			c.Log = func(string) {}
		}
		var foreign *apply.ForeignError
		want := []string{first.Name + ": all LIDs are dropped, as after a restart of the switch"}
		if err := c.Make(t.Context()); !errors.As(err, &foreign) || !slices.Equal(foreign.Cells, want) {
			t.Fatal(err)
		}
		if err := c.Revert(t.Context(), "test"); !errors.As(err, &foreign) || !slices.Equal(foreign.Cells, want) {
			t.Fatal(err)
		}
		for lid, port := range first.Old {
			if err := r.subnet.Edit.LFT(first.Node, mad.LID(lid), port); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Resume(t.Context()); err != nil || !r.are(after) {
			t.Error(err)
		}
	})
}

// bare has the rig on a subnet without a subnet manager in it, which would give LIDs and
// tables again to a switch that is restarted. Of the change it has what is before it.
func (r *rig) bare(spec string) {
	f, o, err := sim.Parse(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	o.Bare = true
	r.subnet = sim.New(f, o)
	for _, c := range r.cells {
		for lid, port := range c.Old {
			if err := r.subnet.Edit.LFT(c.Node, mad.LID(lid), port); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// TestPortState: a port that was active and is no more, as after a restart of a node, is
// found between two rounds though its link is up.
func TestPortState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		client := &sa.Client{Engine: e}
		manager, err := client.FindSM(t.Context(), r.f)
		if err != nil {
			t.Fatal(err)
		}
		checks, err := apply.NewChecks(t.Context(), client, r.f, manager, nil)
		if err != nil {
			t.Fatal(err)
		}
		guid := r.cells[0].Node
		if err := checks.Between(t.Context(), []mad.GUID{guid}); err != nil {
			t.Error(err)
		}
		if err := r.subnet.Edit.Port(guid, 2, func(info *mad.PortInfo) { info.PortState = mad.PortStateInitialize }); err != nil {
			t.Fatal(err)
		}
		var failed *apply.CheckError
		if err := checks.Between(t.Context(), []mad.GUID{guid}); !errors.As(err, &failed) || failed.Reason != "leaf-1/2 is now in state initialize; it was active: its link, or a node at its end, was restarted" {
			t.Error(err)
		}
	})
}

// TestPortStates: the ports of all switches that are written are read between two rounds, and
// by turns while a change waits.
func TestPortStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=8,levels=3")
		e := r.engine(-1, nil)
		defer e.Close()
		client := &sa.Client{Engine: e}
		manager, err := client.FindSM(t.Context(), r.f)
		if err != nil {
			t.Fatal(err)
		}
		var cells []*certificate.Change
		var nodes []mad.GUID
		for _, n := range r.f.OfType(mad.NodeTypeSwitch) {
			cells, nodes = append(cells, &certificate.Change{Node: n.GUID(), Attr: mad.AttrLinearForwardingTable}), append(nodes, n.GUID())
		}
		for _, guid := range []mad.GUID{nodes[0], nodes[len(nodes)-1]} {
			set := func(state mad.PortState) {
				if err := r.subnet.Edit.Port(guid, 2, func(info *mad.PortInfo) { info.PortState = state }); err != nil {
					t.Fatal(err)
				}
			}
			checks, err := apply.NewChecks(t.Context(), client, r.f, manager, cells)
			if err != nil {
				t.Fatal(err)
			}
			set(mad.PortStateInitialize)
			var failed *apply.CheckError
			if err := checks.Between(t.Context(), nodes); !errors.As(err, &failed) {
				t.Errorf("switch %v of %d: %v", guid, len(nodes), err)
			}
			err = checks.Waiting(t.Context(), cells)
			if err == nil {
				err = checks.Waiting(t.Context(), cells)
			}
			if !errors.As(err, &failed) {
				t.Errorf("switch %v of %d, waiting: %v", guid, len(nodes), err)
			}
			set(mad.PortStateActive)
		}
	})
}
