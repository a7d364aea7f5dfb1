package routes_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engine"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// choices are those of a switch for packets of a transport to LIDs, as text.
func choices(r *routes.Routes, s int, transport adaptive.Transport, lids ...mad.LID) (list []string) {
	for _, lid := range lids {
		c := r.Choice(s, adaptive.Packet{LID: lid, Transport: transport})
		list = append(list, fmt.Sprintf("%s %d: %s", c.State, c.Port, c.Ports))
	}
	return list
}

func TestSetChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.Options{})
	r := compute(t, g, "ftree", engine.Options{})
	leaf := routingtest.SwitchNamed(t, g, "leaf-1")
	before := choices(r, leaf, adaptive.Any, 13, 20, 21, 22)
	if r.AdaptiveKnown() || r.HasChoices() || r.Adaptive(leaf) != nil {
		t.Error("computed tables have adaptive routing")
	}
	c := r.Clone()
	for _, x := range []struct {
		lids  []mad.LID
		ports adaptive.Ports
	}{{[]mad.LID{20, 21}, adaptive.PortSet(5, 6)}, {[]mad.LID{22}, adaptive.PortSet(5, 6)}, {[]mad.LID{23}, adaptive.PortSet(7)}} {
		if err := c.SetChoices(leaf, x.lids, x.ports); err != nil {
			t.Fatal(err)
		}
	}
	later := c.Clone()
	if err := later.SetChoices(leaf, []mad.LID{20}, adaptive.PortSet(6, 7, 8)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name      string
		r         *routes.Routes
		transport adaptive.Transport
		want      []string
	}{
		{"set", c, adaptive.RC, []string{"bounded 5: 5-6", "bounded 5: 5-6", "bounded 6: 5-6", "static 7: 7", "static 255: "}},
		{"of datagrams", c, adaptive.UD, []string{"bounded 5: 5", "bounded 5: 5", "bounded 6: 6", "static 7: 7", "static 255: "}},
		{"later", later, adaptive.RC, []string{"bounded 6: 6-8", "bounded 5: 5-6", "bounded 6: 5-6", "static 7: 7", "static 255: "}},
		{"on the same graph", c.On(g), adaptive.RC, []string{"bounded 5: 5-6", "bounded 5: 5-6", "bounded 6: 5-6", "static 7: 7", "static 255: "}},
		{"up to LID 21", c.UpTo(100), adaptive.RC, []string{"bounded 5: 5-6", "bounded 5: 5-6", "bounded 6: 5-6", "static 7: 7", "static 255: "}},
		{"without choices", c.StaticPart(), adaptive.RC, []string{"static 5: 5", "static 5: 5", "static 6: 6", "static 7: 7", "static 255: "}},
	} {
		if got := choices(x.r, leaf, x.transport, 20, 21, 22, 23, 99); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
	if got := choices(r, leaf, adaptive.Any, 13, 20, 21, 22); !slices.Equal(got, before) {
		t.Errorf("the original changes with its clone: %q, want %q", got, before)
	}
	a := c.Adaptive(leaf)
	if a.Table(0).Groups.Len() != 1 {
		t.Errorf("%d groups, want 1: equal sets share one", a.Table(0).Groups.Len())
	}
	if !c.AdaptiveKnown() || !c.HasChoices() || c.Adaptive(0) != nil && leaf != 0 {
		t.Error("choices of one switch are not known, or are those of another")
	}
	for _, ports := range []adaptive.Ports{{}, adaptive.PortSet(0), adaptive.PortSet(200)} {
		if err := c.SetChoices(leaf, []mad.LID{20}, ports); err == nil {
			t.Errorf("ports %q are accepted", ports)
		}
	}
	if err := c.SetChoices(leaf, []mad.LID{999}, adaptive.PortSet(5)); err == nil {
		t.Error("a LID beyond the last is accepted")
	}
}

func TestSetAdaptive(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.Options{})
	r := compute(t, g, "ftree", engine.Options{})
	leaf := routingtest.SwitchNamed(t, g, "leaf-1")
	groups := adaptive.NewGroups(2)
	groups.Set(0, 0, adaptive.PortSet(5, 6, 9)) // port 9 does not exist
	groups.Set(0, 1, adaptive.PortSet(7))
	table := adaptive.NewTable(20, groups)
	table.Set(20, adaptive.Entry{State: adaptive.Free, Port: 8})
	a := &adaptive.Switch{Enabled: true, SLs: adaptive.AllSLs, Tables: []*adaptive.Table{table}}
	r.SetAdaptive(leaf, a)
	if got := r.Row(leaf).Port(20); got != 8 {
		t.Errorf("the static port of LID 20 is %d, want 8", got)
	}
	if got := choices(r, leaf, adaptive.Any, 20); got[0] != "free 8: 5-7" {
		t.Errorf("choices %q, want 5-7 of free", got)
	}
	got := r.Adaptive(leaf)
	want := a.Clone()
	want.Tables[0] = want.Tables[0].UpTo(r.Top())
	want.Tables[0].Groups = groups
	if !reflect.DeepEqual(got.Append(nil), want.Append(nil)) {
		t.Errorf("adaptive routing\n%x, want\n%x", got.Append(nil), want.Append(nil))
	}
	r.EditRow(leaf)[20] = 5
	if got := choices(r, leaf, adaptive.Any, 20); got[0] != "free 5: 5-7" {
		t.Errorf("after a change of the row: %q, want static port 5", got)
	}
	// A graph with other switches: by GUID.
	less := routingtest.Graph(t, "fattree:remove_switches=1,seed=3", graph.Options{})
	moved := r.On(less)
	if s := less.SwitchByGUID(g.Switches()[leaf].GUID()); s >= 0 && moved.Adaptive(s) == nil {
		t.Error("adaptive routing is lost on another graph")
	}
	r.SetAdaptive(leaf, nil)
	if got := choices(r, leaf, adaptive.Any, 20); got[0] != "static 5: 5" || !r.AdaptiveKnown() {
		t.Errorf("after it is off: %q", got)
	}
}
