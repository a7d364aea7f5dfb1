package routes_test

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// choices are the choices of a switch for packets of a transport to LIDs, as text.
func choices(r *routes.Routes, s int, transport adaptive.Transport, lids ...mad.LID) (list []string) {
	for _, lid := range lids {
		c := r.Choice(s, adaptive.Packet{LID: lid, Transport: transport})
		list = append(list, fmt.Sprintf("%s %d: %s", c.State, c.Port, c.Ports))
	}
	return list
}

func TestSetChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	r := compute(t, g, "ftree", engines.Options{})
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
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	r := compute(t, g, "ftree", engines.Options{})
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
	less := routingtest.Graph(t, "fattree:remove_switches=1,seed=3", graph.BuildOptions{})
	moved := r.On(less)
	if s := less.SwitchByGUID(g.Switches()[leaf].GUID()); s >= 0 && moved.Adaptive(s) == nil {
		t.Error("adaptive routing is lost on another graph")
	}
	r.SetAdaptive(leaf, nil)
	if got := choices(r, leaf, adaptive.Any, 20); got[0] != "static 5: 5" || !r.AdaptiveKnown() {
		t.Errorf("after it is off: %q", got)
	}
}

func TestTraceChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	at := func(name string) int { return routingtest.SwitchNamed(t, g, name) }
	for _, x := range []struct {
		name string
		do   func()
		want string
	}{
		{"intact", func() {}, `node-0001 HCA-1/1
leaf-1/5-8  bounded; static port 8
spine-1/2, spine-2/2, spine-3/2, spine-4/2  static
leaf-2/4  static
node-0008 HCA-1/1
`},
		{"to a wrong host", func() { r.SetChoices(at("leaf-2"), []mad.LID{20}, adaptive.PortSet(3, 4)) }, `node-0001 HCA-1/1
leaf-1/5-8  bounded; static port 8
spine-1/2, spine-2/2, spine-3/2, spine-4/2  static
leaf-2/3-4  bounded; static port 4
"leaf-2" (0x0002c90300100010) sends LID 20 to port 1 of "node-0007 HCA-1" (0x0002c90310000060), which has another LID
`},
		{"back", func() {
			r.SetChoices(at("leaf-2"), []mad.LID{20}, adaptive.PortSet(4))
			r.SetChoices(at("spine-2"), []mad.LID{20}, adaptive.PortSet(1, 2))
		}, `node-0001 HCA-1/1
leaf-1/5-8  bounded; static port 8
spine-1/2, spine-3/2, spine-4/2  static
spine-2/1-2  bounded; static port 2
leaf-2/4  static
leaf-1/5-8  bounded; static port 8
some packets may loop
`},
	} {
		x.do()
		p, err := r.Trace(13, 20)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.String(); got != x.want {
			t.Errorf("%s:\n%s, want\n%s", x.name, got, x.want)
		}
	}
}

func TestDiffChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	leaf := routingtest.SwitchNamed(t, g, "leaf-1")
	less := r.Clone()
	less.SetChoices(leaf, []mad.LID{20, 21}, adaptive.PortSet(5, 6, 7, 8))
	less.SetChoices(leaf, []mad.LID{22}, adaptive.PortSet(5, 6))
	off := r.Clone()
	off.SetAdaptive(leaf, nil)
	mask := r.Clone()
	a := r.Adaptive(leaf).Clone()
	a.SLs = 1
	mask.SetAdaptive(leaf, a)
	adaptiveEntries := 0
	for lid := range r.Top() + 1 {
		if r.Adaptive(leaf).Table(0).Entry(lid).State != adaptive.Static {
			adaptiveEntries++
		}
	}
	for _, x := range []struct {
		name string
		r    *routes.Routes
		want string
	}{
		{"same", r.Clone(), "0 entries, 0 of choices, 0 blocks"},
		{"less", less, "1 entries, 1 of choices, 0 blocks"},
		{"off", off, fmt.Sprintf("%d entries, %[1]d of choices, 0 blocks", adaptiveEntries)},
		{"service levels", mask, fmt.Sprintf("%d entries, %[1]d of choices, 0 blocks", adaptiveEntries)},
	} {
		d := x.r.Diff(r)
		if got := fmt.Sprintf("%d entries, %d of choices, %d blocks", d.Entries, d.Choices, d.Blocks); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

// TestSaveChoices: a snapshot of routes keeps their choices, and other files the static ports.
func TestSaveChoices(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	r := compute(t, g, "updn", engines.Options{Adaptive: true})
	for _, x := range []struct {
		kind format.FormatName
		want *routes.Routes
	}{{format.KindSnapshot, r}, {format.KindLFTs, r.StaticPart()}} {
		var b, again bytes.Buffer
		if err := r.Write(t.Context(), &b, x.kind); err != nil {
			t.Fatal(err)
		}
		open := func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
		got, err := routes.Load(g.Fabric(), routes.Files{LFTs: "file"}, open)
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Diff(x.want); d.Entries > 0 || got.HasChoices() != x.want.HasChoices() {
			t.Errorf("%s: %d entries differ, choices %t, want %t", x.kind, d.Entries, got.HasChoices(), x.want.HasChoices())
		}
		if err := got.Write(t.Context(), &again, x.kind); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("%s: written again, it differs: %v", x.kind, err)
		}
	}
}
