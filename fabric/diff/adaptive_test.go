package diff

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// TestAdaptive: of switches that route adaptively the settings and the ports by LID are
// compared, whatever the numbers of their groups.
func TestAdaptive(t *testing.T) {
	f := routed(t, tree(t))
	with := func(edit func(list map[string]*adaptive.Switch)) *fabric.Fabric {
		list := map[string]*adaptive.Switch{}
		read := fabric.Reading{Adaptive: make([]*adaptive.Switch, len(f.Nodes()))}
		for i := range f.OfType(mad.NodeTypeSwitch) {
			n := &f.Nodes()[i]
			groups := adaptive.NewGroups(1)
			groups.Set(1, 0, adaptive.PortSet(1, 2))
			groups.Set(2, 0, adaptive.PortSet(3))
			table := adaptive.NewTable(14, groups)
			for lid := range mad.LID(15) {
				table.Set(lid, adaptive.Entry{State: adaptive.Bounded, Port: n.LFT()[lid], Group: 1})
			}
			list[n.Name()] = &adaptive.Switch{Enabled: true, SLs: adaptive.AllSLs, Tables: []*adaptive.Table{table}}
		}
		edit(list)
		for i := range f.OfType(mad.NodeTypeSwitch) {
			read.Adaptive[i] = list[f.Nodes()[i].Name()]
		}
		return f.With(read)
	}
	set := func(s *adaptive.Switch, lid mad.LID, state adaptive.State, group uint16) {
		e := s.Tables[0].Entry(lid)
		e.State, e.Group = state, group
		s.Tables[0].Set(lid, e)
	}
	for _, test := range []struct {
		name string
		edit func(list map[string]*adaptive.Switch)
		want string
	}{
		{"nothing", func(map[string]*adaptive.Switch) {}, ""},
		{"another group", func(l map[string]*adaptive.Switch) {
			set(l["leaf-1"], 3, adaptive.Bounded, 2)
			set(l["leaf-1"], 4, adaptive.Static, 1)
		}, "routes forwarding tables of 1 switch\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0xffff] 2 LIDs have other ports\n"},
		{"a member less", func(l map[string]*adaptive.Switch) { l["leaf-1"].Tables[0].Groups.Set(1, 0, adaptive.PortSet(1)) },
			"routes forwarding tables of 1 switch 14 pairs rerouted, of which 13 do not arrive, max load +0\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0xffff] 15 LIDs have other ports\n"},
		{"groups renumbered", func(l map[string]*adaptive.Switch) {
			l["leaf-1"].Tables[0].Groups.Set(3, 0, adaptive.PortSet(1, 2))
			set(l["leaf-1"], 3, adaptive.Bounded, 3)
		}, "routes forwarding tables of 1 switch\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0xffff] settings, or ports of groups that no LID uses, differ\n"},
		{"settings", func(l map[string]*adaptive.Switch) {
			l["leaf-1"].SLs = 1
			*l["leaf-2"] = adaptive.Switch{}
			l["leaf-3"].Enabled, l["leaf-3"].HBF, l["leaf-3"].Unknown = false, true, "why"
		}, "routes forwarding tables of 3 switches 42 pairs rerouted, of which 38 do not arrive, max load +0\n  table.ar leaf-1 [on, SLs 0xffff > on, SLs 0x0001]\n  table.ar leaf-2 [on, SLs 0xffff > off]\n  table.ar leaf-3 [on, SLs 0xffff > hashes only, unknown: why]\n"},
		{"not read", func(l map[string]*adaptive.Switch) { delete(l, "leaf-1") }, "unread: adaptive routing of leaf-1: missing in the newer fabric\n"},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, with(func(map[string]*adaptive.Switch) {}), with(test.edit), test.want) })
	}
	check(t, with(func(map[string]*adaptive.Switch) {}), f, "not compared: adaptive routing: missing in the newer fabric\n")
}
