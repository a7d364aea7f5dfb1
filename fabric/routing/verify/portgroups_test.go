package verify_test

import (
	"fmt"
	"slices"
	"strings"
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

// shortGroups are the switches with short groups, and how many they have.
func shortGroups(t *testing.T, r *routes.Routes) string {
	t.Helper()
	counts, err := verify.ShortGroups(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for s, n := range counts {
		if n != 0 {
			list = append(list, fmt.Sprintf("%s %d", r.Graph().Switches()[s].Name(), n))
		}
	}
	return strings.Join(list, ", ")
}

// TestShortGroups: whole fat trees have no short groups; where a link is missing,
// they are the groups of its leaf to all others, and the groups of all others to it.
func TestShortGroups(t *testing.T) {
	for _, x := range [][2]string{{"fattree:k=8", "updn"}, {"fattree:k=4,levels=3", "ftree"}, {"pgft:m=3/4/2,w=1/2/3,p=1/1/2", "updn"}} {
		g := routingtest.Graph(t, x[0], graph.BuildOptions{})
		if got := shortGroups(t, compute(t, g, x[1], engines.Options{Adaptive: true})); got != "" {
			t.Errorf("%s, %s: %s", x[0], x[1], got)
		}
	}
	g := routingtest.Graph(t, "fattree:k=8,levels=2,remove_links=1,seed=1", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	var leaf string // with three links up
	var others []string
	for s, n := range g.Switches() {
		if strings.HasPrefix(n.Name(), "leaf-") {
			others = append(others, n.Name()+" 1")
			if g.FirstChannel(s+1)-g.FirstChannel(s) == 3 {
				leaf = n.Name()
			}
		}
	}
	if got, want := shortGroups(t, r), strings.Join(others, ", "); got != want || leaf == "" {
		t.Errorf("got %s, want %s", got, want)
	}
	// A group is short also where a port of it has no link; and where switches are static or
	// unknown, the number is unknown.
	g = routingtest.Graph(t, "fattree:k=8", graph.BuildOptions{})
	r = compute(t, g, "updn", engines.Options{Adaptive: true})
	for i, change := range []func(a *adaptive.Switch, group int){
		func(a *adaptive.Switch, group int) { a.Tables[0].Groups.Set(group, 0, adaptive.PortSet(5, 6, 7, 40)) },
		func(a *adaptive.Switch, _ int) { a.Unknown = "no answer" },
		func(a *adaptive.Switch, _ int) { a.Enabled = false },
	} {
		s := routingtest.SwitchNamed(t, g, fmt.Sprintf("leaf-%d", i+1))
		a := r.Adaptive(s).Clone()
		a.Tables[0] = a.Tables[0].WithPorts(slices.Clone(r.Row(s)))
		change(a, int(a.Tables[0].Entry(routingtest.LID(t, g, "node-0032 HCA-1")).Group))
		r.SetAdaptive(s, a)
	}
	if got, want := shortGroups(t, r), "leaf-1 1, leaf-2 -1, leaf-3 -1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
