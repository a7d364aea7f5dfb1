package repair

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestRepairUnknown: tables with lanes that were read from files are repaired as by the engine that
// made them: without a credit loop, with no lane more, and only where paths used what was lost. A second
// loss is no worse.
func TestRepairUnknown(t *testing.T) {
	for _, x := range []struct {
		engine, spec string
		maxVLs       int
	}{{"dfsssp", "torus:dims=5/5,hosts=2", 0}, {"dfsssp", "dragonfly:a=4,p=2,h=2", 0}, {"lash", "torus:dims=5/5,hosts=2", 0}, {"lash", "random:n=24,degree=4,hosts=2", 0}, {"nue", "dragonfly:a=4,p=2,h=2", 3}} {
		whole := damaged(t, x.spec)
		links := whole.switchLinks()
		old := routingtest.Reread(t, whole.f, compute(t, whole.graph(t), x.engine, engines.Options{MaxVLs: x.maxVLs}))
		if old.Lanes() < 2 || engines.BasisOf(old) != nil {
			t.Fatalf("%s %s: %d lanes, basis %v", x.engine, x.spec, old.Lanes(), engines.BasisOf(old))
		}
		for i := 0; i < len(links); i += len(links)/4 + 1 {
			d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
			before := old
			for _, lost := range []int{i, (i + len(links)/2) % len(links)} {
				d.ports[links[lost]] = true
				r, err := Tables(t.Context(), before, d.graph(t))
				if err != nil {
					t.Fatal(err)
				}
				before.Engine = x.engine // which judge compares with
				if got := judge(t, before, r, r); got.wrong != nil {
					t.Errorf("%s %s without link %d: %q, %q", x.engine, x.spec, lost, got.wrong, r.Notes)
				}
				if r.Lanes() > before.Lanes() {
					t.Errorf("%s %s without link %d: %d lanes, before %d", x.engine, x.spec, lost, r.Lanes(), before.Lanes())
				}
				before = r
			}
		}
	}
}

// withoutLIDs is a graph of f in which the ports of late CAs, by number, have no LID.
func withoutLIDs(t *testing.T, f *fabric.Fabric, late map[int]bool) *graph.Graph {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
		if late[p.Node().ID()] {
			return 0, 0
		}
		return p.LID(), 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lateCAs are a share of the CAs.
func lateCAs(f *fabric.Fabric, random *rand.Rand, share float64) map[int]bool {
	late := map[int]bool{}
	for i := range f.Nodes() {
		if !f.Nodes()[i].IsSwitch() && random.Float64() < share {
			late[i] = true
		}
	}
	return late
}

// bySource are the tables with levels for each source, of unknown origin.
func bySource(r *routes.Routes) *routes.Routes {
	r = r.Clone()
	r.ForgetOrigin()
	if r.SL == nil {
		return r
	}
	sl := &routes.SL{Pair: make([][]uint8, len(r.Graph().Terminals()))}
	for i := range sl.Pair {
		for lid := range r.Top() + 1 {
			sl.Pair[i] = append(sl.Pair[i], r.SL.Of(i, lid))
		}
	}
	r.SL = sl
	return r
}

// isWhole reports problems of tables that have to reach all pairs, on judged lanes without a credit loop.
func isWhole(t *testing.T, what string, r *routes.Routes) {
	t.Helper()
	v := verified(t, r, verify.Options{})
	if v.Unreachable > 0 || !v.Acyclic || slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "judged") }) {
		t.Errorf("%s: unreachable %d, acyclic %v, %q", what, v.Unreachable, v.Acyclic, r.Notes)
	}
}

// TestRepairLevelsBetween: in tables from files no path gets a level that no path had before: here such
// a level shares a lane with others.
func TestRepairLevelsBetween(t *testing.T) {
	whole := damaged(t, "torus:dims=4/4,hosts=2")
	r := bySource(compute(t, whole.graph(t), "lash", engines.Options{}))
	if r.Lanes() != 2 {
		t.Fatal(r.Lanes())
	}
	for _, row := range r.SL.Pair {
		for lid := range row {
			row[lid] *= 2
		}
	}
	for s, n := range r.Graph().Switches() {
		for in := range n.NumPorts() + 1 {
			for out := range n.NumPorts() + 1 {
				if err := r.SL2VL.Set(s, uint8(in), uint8(out), [16]uint8{2: 2}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	links := whole.switchLinks()
	if testing.Short() {
		links = links[:4]
	}
	for i, p := range links {
		d := &damage{whole.f, map[*fabric.Port]bool{p: true}, map[*fabric.Node]bool{}}
		got, err := Tables(t.Context(), r, d.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		if got.SL.Used()&^r.SL.Used() != 0 {
			t.Errorf("without link %d: levels %b, before %b", i, got.SL.Used(), r.SL.Used())
		}
	}
}

// TestRepairHostsWithoutLID: the levels of ports of a switch that have no LID, and to LIDs of their own
// switch, do not matter.
func TestRepairHostsWithoutLID(t *testing.T) {
	whole := damaged(t, "torus:dims=5/5,hosts=2")
	late := lateCAs(whole.f, rand.New(rand.NewPCG(1, 1)), 0.2)
	r := bySource(compute(t, withoutLIDs(t, whole.f, late), "dfsssp", engines.Options{}))
	g := r.Graph()
	for i, term := range g.Terminals() {
		if r.SL.Pair[i][term.LID] = 1; term.Count == 0 {
			r.SL.Pair[i] = nil
		}
	}
	gone := whole.switchLinks()[7]
	less, err := graph.New(whole.f, graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == gone || p.Peer() == gone }, LIDs: func(p *fabric.Port) (mad.LID, int) {
		if late[p.Node().ID()] {
			return 0, 0
		}
		return p.LID(), 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Tables(t.Context(), r, less)
	if err != nil {
		t.Fatal(err)
	}
	isWhole(t, "dfsssp", got)
}

// TestRepairBackInFile: a host that comes back gets the service levels of the others in tables of nue that
// were read from files, so that each LID still has one lane.
func TestRepairBackInFile(t *testing.T) {
	whole := damaged(t, "dragonfly:a=4,p=2,h=1")
	host := whole.f.NodeByName("node-0011 HCA-1")[0]
	d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{host: true}}
	less := d.graph(t)
	old := routingtest.Reread(t, less.Fabric(), compute(t, less, "nue", engines.Options{MaxVLs: 3}))
	r, err := Tables(t.Context(), old, whole.graph(t))
	if err != nil {
		t.Fatal(err)
	}
	g := r.Graph()
	back, other := g.TerminalByLID(host.Port(1).LID()), g.TerminalByLID(whole.f.NodeByName("node-0001 HCA-1")[0].Port(1).LID())
	levels := map[uint8]bool{}
	for _, x := range g.Terminals() {
		if x.Out == 0 || x.LID == g.Terminals()[back].LID || x.LID == g.Terminals()[other].LID {
			continue
		}
		level := r.SL.Of(back, x.LID)
		levels[level] = true
		if want := r.SL.Of(other, x.LID); level != want {
			t.Errorf("to LID %d: SL %d, of another host %d", x.LID, level, want)
		}
	}
	if len(levels) < 2 {
		t.Error("all levels are the same")
	}
}

// TestRepairUnjudged: where lanes depend on the switch, the shortest paths are taken, and a note reports if
// these close a credit loop; so does one if others do on the one lane that there is without a file of
// lanes.
func TestRepairUnjudged(t *testing.T) {
	for _, x := range []struct {
		engine, spec string
		lost         []int
		without      string // what the files lack
		notes        []string
	}{
		{"dragonfly", "dragonfly:a=4,p=2,h=2", []int{0}, "", nil},
		{"dragonfly", "dragonfly:a=4,p=2,h=2", []int{0, 27}, "", []string{"repair: the new paths are the shortest ones, and close a credit loop on the virtual lanes in use, which depend on more than the destination; graph.route() computes all tables again"}},
		{"dfsssp", "torus:dims=4/4,hosts=2", []int{0}, "lanes", []string{"repair: the remaining paths already have a credit loop, so the new paths are the shortest ones"}},
		{"dfsssp", "torus:dims=4/4,hosts=2", []int{0}, "levels and lanes", []string{"repair: the remaining paths already have a credit loop, so the new paths are the shortest ones; if paths have service levels, read these and their virtual lanes too: load_routes(sl=, sl2vl=)"}},
	} {
		whole := damaged(t, x.spec)
		r := compute(t, whole.graph(t), x.engine, engines.Options{})
		r.ForgetOrigin()
		if x.without != "" {
			r.SL2VL = nil
		}
		if x.without == "levels and lanes" {
			r.SL = nil
		}
		d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
		for _, i := range x.lost {
			d.ports[whole.switchLinks()[i]] = true
		}
		got, err := Tables(t.Context(), r, d.graph(t))
		if err != nil || !slices.Equal(got.Notes, x.notes) {
			t.Errorf("%s without links %d: %q, %v", x.engine, x.lost, got.Notes, err)
			continue
		}
		if loop := len(x.notes) > 0; verified(t, got, verify.Options{}).Acyclic == loop {
			t.Errorf("%s without links %d: no credit loop: %v", x.engine, x.lost, loop)
		}
	}
}
