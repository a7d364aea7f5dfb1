package routing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

func TestRow(t *testing.T) {
	lids := []mad.LID{1, 2, 3, 5, 6, 99}
	for _, x := range []struct {
		name string
		do   func(r Row)
		want Row
	}{
		{"fill", func(r Row) { r.Fill(lids, 7) }, Row{0, 7, 7, 7, 4, 7, 7, 7}},
		{"fill mod 1", func(r Row) { r.FillMod(lids, []uint8{11, 12}, 1) }, Row{0, 11, 12, 11, 4, 12, 11, 7}},
		{"fill mod 2", func(r Row) { r.FillMod(lids, []uint8{11, 12, 13}, 2) }, Row{0, 11, 11, 12, 4, 12, 13, 7}},
		{"fill mod 0", func(r Row) { r.FillMod(lids, []uint8{11, 12}, 0) }, Row{0, 11, 12, 11, 4, 12, 11, 7}},
		{"fill mod of nothing", func(r Row) { r.FillMod(lids, nil, 1) }, Row{0, 1, 2, 3, 4, 5, 6, 7}},
		{"copy", func(r Row) { r.Copy(Row{9, 9, 9, 9}, lids) }, Row{0, 9, 9, 9, 4, 5, 6, 7}},
		{"copy all", func(r Row) { r.Copy(Row{9, 9, 9}, nil) }, Row{9, 9, 9, 3, 4, 5, 6, 7}},
		{"map", func(r Row) { r.Map(map[uint8]uint8{1: 2, 2: 1, 4: 9}, lids) }, Row{0, 2, 1, 3, 4, 5, 6, 7}},
		{"map all", func(r Row) { r.Map(map[uint8]uint8{1: 2, 2: 1, 4: 9}, nil) }, Row{0, 2, 1, 3, 9, 5, 6, 7}},
	} {
		r := Row{0, 1, 2, 3, 4, 5, 6, 7}
		x.do(r)
		if d := cmp.Diff(x.want, r); d != "" {
			t.Errorf("%s (-want +got)\n%s", x.name, d)
		}
	}
	if r := (Row{1, 2}); r.Port(1) != 2 || r.Port(2) != NoPort {
		t.Error(r.Port(1), r.Port(2))
	}
}

func TestDiff(t *testing.T) {
	g := graph(t, "fattree:k=8,levels=3", GraphOptions{}) // LIDs to 208: four blocks
	old := compute(t, g, "ftree", Options{})
	r := old.Clone()
	r.Row(3)[64] ^= 1
	r.Row(3)[127] ^= 1
	r.Row(3)[128] ^= 1
	r.Row(7)[1] = NoPort
	longer := NewRoutes(g, 300)
	for s := range g.switches {
		longer.Row(s).Copy(old.Row(s), nil)
	}
	longer.Row(0)[299] = 5
	less, err := NewGraph(topology(t, "fattree:k=8,levels=3,remove_switches=1"), GraphOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name     string
		old, new *Routes
		want     string
	}{
		{"none", old, old.Clone(), "{Switches:[] Entries:0 Blocks:0 LIDs:[]}"},
		{"some", old, r, "{Switches:[{Switch:3 Entries:3 Blocks:[1 2]} {Switch:7 Entries:1 Blocks:[0]}] Entries:4 Blocks:3 LIDs:[1 64 127 128]}"},
		{"the other way", r, old, "{Switches:[{Switch:3 Entries:3 Blocks:[1 2]} {Switch:7 Entries:1 Blocks:[0]}] Entries:4 Blocks:3 LIDs:[1 64 127 128]}"},
		{"longer", old, longer, "{Switches:[{Switch:0 Entries:1 Blocks:[4]}] Entries:1 Blocks:1 LIDs:[299]}"},
		{"shorter", longer, old, "{Switches:[{Switch:0 Entries:1 Blocks:[4]}] Entries:1 Blocks:1 LIDs:[299]}"},
		{"a switch less", old, old.On(less), "{Switches:[] Entries:0 Blocks:0 LIDs:[]}"},
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

func TestTrace(t *testing.T) {
	g := graph(t, "fattree:k=4", GraphOptions{})
	r := compute(t, g, "ftree", Options{})
	leaf, spine := named(t, g, "leaf-1"), named(t, g, "spine-1")
	from, to := lidOf(t, g, "node-0001 HCA-1"), lidOf(t, g, "node-0007 HCA-1")
	path := func(src, dst mad.LID) string {
		t.Helper()
		p, err := r.Trace(src, dst)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(p.String())
	}
	lines := func(s ...string) string { return strings.Join(s, "\n") }
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	whole := lines("node-0001 HCA-1/1", "leaf-1/1", "leaf-1/3", "spine-1/1", "spine-1/4", "leaf-4/3", "leaf-4/1", "node-0007 HCA-1/1")
	expect(path(from, to), whole)
	expect(path(from, from), "node-0001 HCA-1/1")
	expect(path(from, g.terminals[spine].LID), lines("node-0001 HCA-1/1", "leaf-1/1", "leaf-1/3", "spine-1/1"))
	expect(path(g.terminals[leaf].LID, to), lines("leaf-1/0", "leaf-1/3", "spine-1/1", "spine-1/4", "leaf-4/3", "leaf-4/1", "node-0007 HCA-1/1"))
	expect(path(from, 999), "trace: no port has LID 999; the highest is 14")
	expect(path(0, to), "trace: no port has LID 0; the highest is 14")
	for port, want := range map[uint8]string{
		NoPort: `"spine-1" (0x0002c90300100040) drops LID 13`,
		9:      `"spine-1" (0x0002c90300100040) sends LID 13 to port 9, which it does not have`,
		0:      `"spine-1" (0x0002c90300100040) sends LID 13 to port 0 of "spine-1" (0x0002c90300100040), which has another LID`,
	} {
		r.Row(spine)[to] = port
		p, err := r.Trace(from, to)
		if err != nil || p.Broken != want {
			t.Errorf("port %d: %v %q", port, err, p.Broken)
		}
	}
	r.Row(spine)[to] = 1
	expect(path(from, to)[len(path(from, to))-len("goes round in circles"):], "goes round in circles")
	r.Row(leaf)[to] = 1
	if p, _ := r.Trace(from, to); p.Broken != `"leaf-1" (0x0002c90300100000) sends LID 13 to port 1 of "node-0001 HCA-1" (0x0002c90310000000), which has another LID` {
		t.Error(p.Broken)
	}
}

func TestLanes(t *testing.T) {
	g := graph(t, "ring:n=3", GraphOptions{})
	r := compute(t, g, "minhop", Options{})
	from, to := lidOf(t, g, "node-0001 HCA-1"), lidOf(t, g, "node-0002 HCA-1")
	r.SL = &SL{Dest: []uint8{0, 1, 2, 3, 4, 5, 6}}
	if p, _ := r.Trace(from, to); p.SL != uint8(to) || p.Hops[0].VL != 0 {
		t.Errorf("%+v", p)
	}
	r.SL2VL = NewSL2VL(g)
	if p, _ := r.Trace(from, to); p.Hops[0].VL != uint8(to) {
		t.Errorf("%+v", p)
	}
	one := g.terminals[g.TerminalByLID(from)]
	out := r.Row(one.Switch).Port(to)
	if err := r.SL2VL.Set(one.Switch, one.Out, out, [16]uint8{0, 0, 0, 0, 0, 7, 0}); err != nil {
		t.Fatal(err)
	}
	clone := r.Clone()
	if err := r.SL2VL.Set(one.Switch, one.Out, out, [16]uint8{5: DropVL}); err != nil {
		t.Fatal(err)
	}
	if p, _ := clone.Trace(from, to); p.Hops[0].VL != 7 || p.Broken != "" {
		t.Errorf("%+v", p)
	}
	if p, _ := r.Trace(from, to); p.Broken != `"switch-1" (0x0002c90300100000) drops SL 5 from port 1 to port 3` {
		t.Errorf("%+v", p)
	}
	// The lane that drops breaks that pair, and no other.
	v := verify(t, r, VerifyOptions{})
	if v.Unreachable != 1 || v.Pairs != 6 || len(v.Broken) != 1 || v.Broken[0].From != one.Port || v.Broken[0].LID != to {
		t.Errorf("%+v", v)
	}
	if err := r.SL2VL.Set(0, 1, 4, [16]uint8{}); err == nil || err.Error() != `"switch-1" (0x0002c90300100000) has ports 0..3, not 4` {
		t.Error(err)
	}
	r.SL.Pair = make([][]uint8, len(g.terminals))
	r.SL.Pair[0] = []uint8{9, 9}
	if r.SL.Of(0, 1) != 9 || r.SL.Of(0, 2) != 2 || r.SL.Of(1, 1) != 1 || r.SL.Of(1, 99) != 0 {
		t.Error("service levels of pairs")
	}
}

// TestLanesBreakLoops: a ring's credit loop is gone when packets change lanes
// where they pass the dateline.
func TestLanesBreakLoops(t *testing.T) {
	g := graph(t, "ring:n=6,hosts=1", GraphOptions{})
	r := compute(t, g, "minhop", Options{})
	if v := verify(t, r, VerifyOptions{}); v.Acyclic || len(v.Cycle) != 6 || v.OK() {
		t.Errorf("%+v", v)
	}
	// SL 1 for paths that pass between the last switch and the first.
	r.SL, r.SL2VL = &SL{Pair: make([][]uint8, len(g.terminals))}, NewSL2VL(g)
	for i, from := range g.terminals {
		r.SL.Pair[i] = make([]uint8, int(g.Top())+1)
		for _, to := range g.LIDs(ClassCN) {
			p, err := r.Trace(from.LID, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Hops {
				if c := g.target(int32(h.Switch), h.Out); c >= 0 && g.channels[c].From+g.channels[c].To == 5 && g.channels[c].From%5 == 0 {
					r.SL.Pair[i][to] = 1
				}
			}
		}
	}
	v := verify(t, r, VerifyOptions{})
	if !v.OK() || v.Policy != "static forwarding tables, their service levels and virtual lanes" || v.Notes[1] != "paths have service levels that OpenSM's engine file does not give out: under it this is analysis alone" {
		t.Errorf("%+v\n%s", v, Walk(v.Cycle))
	}
	// The lanes stay with the tables in another graph of the subnet.
	again, err := NewGraph(g.fabric, GraphOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := verify(t, r.On(again), VerifyOptions{With: r}); !v.OK() || r.On(again).SL.Of(2, 9) != r.SL.Of(2, 9) {
		t.Errorf("%+v\n%s", v, Walk(v.Cycle))
	}
	r.SL2VL = nil
	if v := verify(t, r, VerifyOptions{}); v.Acyclic || v.Policy != "static forwarding tables, their service levels, all on VL 0" {
		t.Errorf("%+v", v)
	}
}

// TestVerifyMixture: tables that are fine each may deadlock together.
func TestVerifyMixture(t *testing.T) {
	g := graph(t, "mesh:dims=2/2,hosts=1", GraphOptions{})
	xy := compute(t, g, "dor", Options{})
	yx, err := NewGraph(g.fabric, GraphOptions{PortOrder: func(*fabric.Node) []int { return []int{4, 5, 2, 3} }})
	if err != nil {
		t.Fatal(err)
	}
	other := compute(t, yx, "dor", Options{})
	for _, r := range []*Routes{xy, other} {
		if v := verify(t, r, VerifyOptions{}); !v.OK() {
			t.Errorf("%+v", v)
		}
	}
	if d := other.Diff(xy); d.Entries == 0 {
		t.Error("the tables are the same")
	}
	v := verify(t, xy, VerifyOptions{With: other})
	if v.Acyclic || v.Unreachable != 0 || v.Pairs != 12 || v.Policy != "static forwarding tables, SL 0, and any mixture with the other tables" {
		t.Errorf("%+v", v)
	}
}

func TestVerifyWords(t *testing.T) {
	g := graph(t, "ring:n=5", GraphOptions{})
	r := compute(t, g, "minhop", Options{})
	v := verify(t, r, VerifyOptions{})
	want := `switch-1/2 -> switch-5/3, VL 0, to LID 9
switch-5/2 -> switch-4/3, VL 0, to LID 8
switch-4/2 -> switch-3/3, VL 0, to LID 7
switch-3/2 -> switch-2/3, VL 0, to LID 6
switch-2/2 -> switch-1/3, VL 0, to LID 10
`
	if got := Walk(v.Cycle); got != want {
		t.Errorf("got\n%s", got)
	}
	if v.Endpoints != "all 5 ports of CAs and routers (5 cn)" || v.MaxHops != 4 || fmt.Sprint(v.Hops, v.Detours, v.Notes) != "[0 0 0 10 10] [20] [no port has a LID: they are numbered from 1, in the order of the fabric adaptive routing not determined]" {
		t.Errorf("%+v", v)
	}
	v = verify(t, r, VerifyOptions{Endpoints: ClassSwitch})
	if v.Endpoints != "5 ports (5 switch)" || v.Terminals != 5 || fmt.Sprint(v.Hops) != "[0 10 10]" {
		t.Errorf("%+v", v)
	}
	v = verify(t, r, VerifyOptions{Endpoints: ClassSwitch | ClassCN})
	if v.Endpoints != "10 ports (5 cn, 5 switch)" || fmt.Sprint(v.Hops) != "[0 20 30 30 10]" {
		t.Errorf("%+v", v)
	}
	// Pairs that need not reach each other.
	r.Row(0).Fill([]mad.LID{7, 8}, NoPort)
	v = verify(t, r, VerifyOptions{Require: func(src, dst *Terminal) bool { return dst.LID != 7 }, Examples: 2})
	var broken []string
	for _, b := range v.Broken {
		broken = append(broken, fmt.Sprintf("%s to %d: %s", b.From.Name(), b.LID, b.Why))
	}
	if v.Unreachable == 0 || v.Excused == 0 || v.Unreachable+v.Excused >= v.Pairs || broken[0] != `node-0001 HCA-1/1 to 8: "switch-1" (0x0002c90300100000) drops LID 8` {
		t.Errorf("%+v %q", v, broken)
	}
}
