package verify_test

import (
	"fmt"
	"slices"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// groupFaults are the faults in words.
func groupFaults(t *testing.T, r *routes.Routes) (list []string) {
	t.Helper()
	faults, err := verify.Groups(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		list = append(list, fmt.Sprintf("%s %s group %d LID %d of %d port %d", r.Graph().Switches()[f.Switch].Name(), f.Kind, f.Group, f.LID, f.LIDs, f.Port))
	}
	return list
}

// TestGroups: each kind of fault is found, at its group, and engines make none.
func TestGroups(t *testing.T) {
	for _, net := range routingtest.SmallNets() {
		for _, name := range []string{"updn", "ftree", "minhop", "dor"} {
			g := routingtest.Graph(t, net, graph.BuildOptions{})
			r, err := engines.Compute(t.Context(), g, name, engines.Options{Adaptive: true})
			if err != nil {
				continue // the engine does not apply
			}
			if list := groupFaults(t, r); len(list) > 0 {
				t.Errorf("%s, %s: %q", net, name, list)
			}
		}
	}
	g := routingtest.Graph(t, "fattree:k=4", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	leaf, spine := routingtest.SwitchNamed(t, g, "leaf-1"), routingtest.SwitchNamed(t, g, "spine-1")
	far := routingtest.LID(t, g, "node-0003 HCA-1")
	for _, x := range []struct {
		name   string
		at     int
		damage func(t *adaptive.Table, group int, e adaptive.Entry)
		want   string
	}{
		{"above", leaf, func(t *adaptive.Table, _ int, e adaptive.Entry) {
			e.Group = 77
			t.Set(far, e)
		}, "leaf-1 above group 77 LID %d of 1 port 0"},
		{"empty", leaf, func(t *adaptive.Table, group int, _ adaptive.Entry) { t.Groups.Set(group, 0, adaptive.Ports{}) }, "leaf-1 empty"},
		{"missing", leaf, func(t *adaptive.Table, group int, _ adaptive.Entry) {
			t.Groups.Set(group, 0, adaptive.PortSet(3, 4, 9))
		}, "leaf-1 dead"},
		{"another host", leaf, func(t *adaptive.Table, group int, _ adaptive.Entry) {
			t.Groups.Set(group, 0, adaptive.PortSet(2, 3, 4))
		}, "leaf-1 illegal"},
		{"back", spine, func(t *adaptive.Table, _ int, e adaptive.Entry) {
			t.Groups.Set(90, 0, adaptive.PortSet(1, e.Port))
			t.Set(far, adaptive.Entry{State: adaptive.Bounded, Port: e.Port, Group: 90})
		}, "spine-1 illegal group 90 LID %d of 1 port 1"},
		{"stale", leaf, func(t *adaptive.Table, group int, e adaptive.Entry) {
			ports := adaptive.PortSet(3, 4)
			ports.Remove(e.Port)
			t.Groups.Set(group, 0, ports)
		}, "leaf-1 lacks_static"},
		{"unequal", leaf, func(t *adaptive.Table, _ int, e adaptive.Entry) {
			t.Groups.Set(91, 0, adaptive.PortSet(e.Port))
			t.Set(far, adaptive.Entry{State: adaptive.Free, Port: e.Port, Group: 91})
		}, "leaf-1 unequal group"},
	} {
		c := r.Clone()
		a := c.Adaptive(x.at).Clone()
		tab := a.Tables[0].WithPorts(slices.Clone(c.Row(x.at)))
		a.Tables[0] = tab
		e := tab.Entry(far)
		x.damage(tab, int(e.Group), e)
		c.SetAdaptive(x.at, a)
		want := x.want
		if slices.Contains([]byte(want), '%') {
			want = fmt.Sprintf(want, far)
		}
		list := groupFaults(t, c)
		if len(list) != 1 || len(list[0]) < len(want) || list[0][:len(want)] != want {
			t.Errorf("%s: %q, want %q", x.name, list, want)
		}
	}
}

// TestGroupsPrivate: group 0 may be empty with several private LFTs, whose tables are checked
// each.
func TestGroupsPrivate(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	leaf, far := routingtest.SwitchNamed(t, g, "leaf-1"), routingtest.LID(t, g, "node-0003 HCA-1")
	a := r.Adaptive(leaf).Clone()
	a.Tables = append(a.Tables, a.Tables[0].WithPorts(slices.Clone(r.Row(leaf))).Clone())
	second := a.Tables[1]
	second.Groups = adaptive.NewGroups(1)
	second.Groups.Set(5, 0, adaptive.PortSet(2))
	for lid := range second.Top() + 1 {
		second.SetChoice(lid, adaptive.Static, 0)
	}
	second.SetChoice(far, adaptive.Bounded, 0)
	r.SetAdaptive(leaf, a)
	if list := groupFaults(t, r); list != nil {
		t.Errorf("group 0: %q", list)
	}
	a = a.Clone()
	a.Tables[1].SetChoice(far, adaptive.Bounded, 5)
	r.SetAdaptive(leaf, a)
	if list, want := groupFaults(t, r), fmt.Sprintf("leaf-1 illegal group 5 LID %d of 1 port 2", far); len(list) != 1 || list[0] != want {
		t.Errorf("%q, want %q", list, want)
	}
	if lids := verify.AdaptiveLIDs(r); !slices.Contains(lids, far) || slices.Contains(lids, mad.LID(0)) || !slices.IsSorted(lids) {
		t.Errorf("LIDs %v", lids)
	}
}
