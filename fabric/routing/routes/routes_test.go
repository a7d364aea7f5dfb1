package routes_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/mad"
)

// compute computes tables by an engine, and fails the test on an error.
var compute = routingtest.Computing(engines.Compute)

func TestRow(t *testing.T) {
	lids := []mad.LID{1, 2, 3, 5, 6, 99}
	for _, x := range []struct {
		name string
		do   func(r routes.Row)
		want routes.Row
	}{
		{"fill", func(r routes.Row) { r.Fill(lids, 7) }, routes.Row{0, 7, 7, 7, 4, 7, 7, 7}},
		{"fill mod 1", func(r routes.Row) { r.FillMod(lids, []uint8{11, 12}, 1) }, routes.Row{0, 11, 12, 11, 4, 12, 11, 7}},
		{"fill mod 2", func(r routes.Row) { r.FillMod(lids, []uint8{11, 12, 13}, 2) }, routes.Row{0, 11, 11, 12, 4, 12, 13, 7}},
		{"fill mod 0", func(r routes.Row) { r.FillMod(lids, []uint8{11, 12}, 0) }, routes.Row{0, 11, 12, 11, 4, 12, 11, 7}},
		{"fill mod of nothing", func(r routes.Row) { r.FillMod(lids, nil, 1) }, routes.Row{0, 1, 2, 3, 4, 5, 6, 7}},
		{"copy", func(r routes.Row) { r.Copy(routes.Row{9, 9, 9, 9}, lids) }, routes.Row{0, 9, 9, 9, 4, 5, 6, 7}},
		{"copy all", func(r routes.Row) { r.Copy(routes.Row{9, 9, 9}, nil) }, routes.Row{9, 9, 9, 3, 4, 5, 6, 7}},
		{"map", func(r routes.Row) { r.Map(map[uint8]uint8{1: 2, 2: 1, 4: 9}, lids) }, routes.Row{0, 2, 1, 3, 4, 5, 6, 7}},
		{"map all", func(r routes.Row) { r.Map(map[uint8]uint8{1: 2, 2: 1, 4: 9}, nil) }, routes.Row{0, 2, 1, 3, 9, 5, 6, 7}},
	} {
		r := routes.Row{0, 1, 2, 3, 4, 5, 6, 7}
		x.do(r)
		if d := cmp.Diff(x.want, r); d != "" {
			t.Errorf("%s (-want +got)\n%s", x.name, d)
		}
	}
	if r := (routes.Row{1, 2}); r.Port(1) != 2 || r.Port(2) != routes.NoPort {
		t.Error(r.Port(1), r.Port(2))
	}
}

func TestDiff(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=8,levels=3", graph.BuildOptions{}) // LIDs to 208: four blocks
	old := compute(t, g, "ftree", engines.Options{})
	r := old.Clone()
	r.Row(3)[64] ^= 1
	r.Row(3)[127] ^= 1
	r.Row(3)[128] ^= 1
	r.Row(7)[1] = routes.NoPort
	longer := routes.New(g, 300)
	for s := range g.Switches() {
		longer.Row(s).Copy(old.Row(s), nil)
	}
	longer.Row(0)[299] = 5
	less, err := graph.New(routingtest.Topology(t, "fattree:k=8,levels=3,remove_switches=1"), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name     string
		old, new *routes.Routes
		want     string
	}{
		{"none", old, old.Clone(), "{Switches:[] Entries:0 Choices:0 Blocks:0 LIDs:[]}"},
		{"some", old, r, "{Switches:[{Switch:3 Entries:3 Choices:0 Blocks:[1 2]} {Switch:7 Entries:1 Choices:0 Blocks:[0]}] Entries:4 Choices:0 Blocks:3 LIDs:[1 64 127 128]}"},
		{"the other way", r, old, "{Switches:[{Switch:3 Entries:3 Choices:0 Blocks:[1 2]} {Switch:7 Entries:1 Choices:0 Blocks:[0]}] Entries:4 Choices:0 Blocks:3 LIDs:[1 64 127 128]}"},
		{"longer", old, longer, "{Switches:[{Switch:0 Entries:1 Choices:0 Blocks:[4]}] Entries:1 Choices:0 Blocks:1 LIDs:[299]}"},
		{"shorter", longer, old, "{Switches:[{Switch:0 Entries:1 Choices:0 Blocks:[4]}] Entries:1 Choices:0 Blocks:1 LIDs:[299]}"},
		{"a switch less", old, old.On(less), "{Switches:[] Entries:0 Choices:0 Blocks:0 LIDs:[]}"},
	} {
		if got := fmt.Sprintf("%+v", *x.new.Diff(x.old)); got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.want)
		}
	}
	// A switch that comes back has everything new.
	if d := old.Diff(old.On(less)); len(d.Switches) != 1 || d.Entries != 208 || d.Blocks != 4 {
		t.Errorf("%+v", d)
	}
	if n := old.Entries(); n != 80*208 {
		t.Errorf("%d entries", n)
	}
}

func BenchmarkDiff(b *testing.B) {
	routingtest.BenchTables(b, compute, func(b *testing.B, r *routes.Routes) error {
		r.Diff(r)
		return nil
	})
}
