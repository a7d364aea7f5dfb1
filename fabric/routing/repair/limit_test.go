package repair

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// withVLs is d where all links have so many virtual lanes for data.
func (d *damage) withVLs(t *testing.T, vls mad.OperationalVLs) *damage {
	b := fabric.NewBuilder()
	for i := range d.f.Nodes() {
		n := &d.f.Nodes()[i]
		h := b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name()})
		for num := range n.NumPorts() + 1 {
			var info mad.PortInfo
			if p := n.Port(num); p != nil && p.Info() != nil {
				info = *p.Info()
			}
			info.OperationalVLs = vls
			b.SetPort(h, num, &info)
		}
	}
	for i := range d.f.Ports() {
		if p := &d.f.Ports()[i]; p.Peer() != nil && p.ID() < p.Peer().ID() {
			if err := b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &damage{b.Build(), map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
}

// TestRepairLimit: where more virtual lanes are needed than before, a note compares them with those of a new
// run, which replaces the repair if links have too few lanes for it.
func TestRepairLimit(t *testing.T) {
	for _, x := range []struct {
		vls    mad.OperationalVLs
		maxVLs int
		links  int
		lanes  int
		notes  []string
	}{
		{mad.OperationalVLs0To7, 0, 10, 3, []string{
			"repair: 153 paths between switches have another service level; hosts read path records again",
			"repair: 3 virtual lanes, 1 before; a new run with max_vls=2 needs 2, but changes 50 blocks instead of 43",
		}},
		{mad.OperationalVLs0To1, 0, 10, 2, []string{"repair: no tables found that keep other paths on 2 virtual lanes; computed again by lash"}},
		{mad.OperationalVLs0To7, 2, 10, 2, []string{"repair: no tables found that keep other paths on 2 virtual lanes; computed again by lash"}},
		{mad.OperationalVLs0, 0, 4, 2, []string{
			"repair: 106 paths between switches have another service level; hosts read path records again",
			"repair: 2 virtual lanes, 1 before; a new run found no fewer",
			"repair: some links have only 1 virtual lane (operational_vls); updn, ftree and nue find paths on one",
		}},
	} {
		whole := damaged(t, "mesh:dims=6/6,hosts=1").withVLs(t, x.vls)
		old := compute(t, whole.graph(t), "lash", engines.Options{MaxVLs: x.maxVLs})
		o := engines.BasisOf(old).On(old.Graph())
		whole.lose(rand.New(rand.NewPCG(8, 0)), 0, x.links)
		r, err := Tables(t.Context(), old, whole.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		if !engines.MadeBy(r, r.Graph(), "lash", o) {
			t.Errorf("links with %v, max_vls %d: the options are others", x.vls, x.maxVLs)
		}
		if v := verified(t, r, verify.Options{}); !v.OK() || r.Lanes() != x.lanes || !slices.Equal(r.Notes, x.notes) {
			t.Errorf("links with %v, max_vls %d: %d lanes, want %d; ok %t; notes %q", x.vls, x.maxVLs, r.Lanes(), x.lanes, v.OK(), r.Notes)
		}
	}
}
