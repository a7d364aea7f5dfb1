package repair

import (
	"errors"
	"fmt"
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

// laneEngines give paths lanes, or search for paths that need one only.
var laneEngines = []struct {
	name   string
	maxVLs int
}{{"dfsssp", 0}, {"lash", 0}, {"torus-2qos", 0}, {"nue", 0}, {"nue", 3}}

// lose takes away so many switches and links between switches, at random.
func (d *damage) lose(random *rand.Rand, switches, links int) {
	var nodes []*fabric.Node
	for i := range d.f.Nodes() {
		if n := &d.f.Nodes()[i]; n.IsSwitch() {
			nodes = append(nodes, n)
		}
	}
	for range switches {
		d.nodes[nodes[random.IntN(len(nodes))]] = true
	}
	var ports []*fabric.Port
	for i := range d.f.Ports() {
		p := &d.f.Ports()[i]
		if q := p.Peer(); q != nil && p.ID() < q.ID() && p.Node().IsSwitch() && q.Node().IsSwitch() && !d.nodes[p.Node()] && !d.nodes[q.Node()] {
			ports = append(ports, p)
		}
	}
	for range min(links, len(ports)) {
		d.ports[ports[random.IntN(len(ports))]] = true
	}
}

// repaired compares tables before a loss, after their repair, and by a full run.
type repaired struct {
	old, r, full *routes.Routes
	least        int    // blocks with an entry that must change: it leads along no shortest path now
	blocks       int    // that the repair changes
	all          int    // that a full run changes
	lost         int    // with an entry of a switch from which packets no longer arrive
	used         []bool // by LID: it must change
	moved        int    // paths that stay, to other lanes, by the notes
	crowded      bool   // other LIDs had to make room on the lane of nue
	wrong        []string
}

// judge compares them. LIDs that are gone do not count.
func judge(t *testing.T, old, r, full *routes.Routes) repaired {
	g := r.Graph()
	h, err := graph.AllHops(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := engines.Named(old.Engine)
	was := old.On(g)
	x := repaired{old: was, r: r, full: full}
	wrong := func(format string, a ...any) { x.wrong = append(x.wrong, fmt.Sprintf(format, a...)) }
	arrives := x.arrivals()
	before, err := graph.AllHops(t.Context(), old.Graph())
	if err != nil {
		t.Fatal(err)
	}
	number, _ := graph.OlderNumbers(g, old.Graph())
	wasShortest := func(s, d int, port uint8) bool {
		return before.IsNextHop(int(number[s]), int(number[d]), port)
	}
	used, changed := make([]bool, int(g.Top())+1), make([]bool, int(g.Top())+1)
	for s := range g.Switches() {
		var must, blocks, all, off []int
		for d := range g.Switches() {
			for _, dest := range g.DestsOf(d) {
				port, block := was.Row(s).Port(dest.LID), int(dest.LID)/mad.LFTBlock
				leads := port == routes.NoPort || g.Target(int32(s), port) != graph.NoTarget
				if s != d && h.Distance(s, d) >= 0 && (e.Minimal || wasShortest(s, d, port)) {
					leads = h.IsNextHop(s, d, port)
				}
				if !leads {
					must, used[dest.LID] = append(must, block), true
				}
				if !arrives(s, dest) {
					off, used[dest.LID] = append(off, block), true
				}
				if r.Row(s)[dest.LID] != port {
					blocks, changed[dest.LID] = append(blocks, block), true
				}
				if full.Row(s)[dest.LID] != port {
					all = append(all, block)
				}
			}
		}
		x.least += distinct(must)
		x.blocks += distinct(blocks)
		x.lost += distinct(off)
		x.all += distinct(all)
	}
	x.crowded = slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "to leave room") })
	x.used = used
	for lid := range used {
		if changed[lid] && !used[lid] && !x.crowded {
			wrong("LID %d changes, and used nothing that was lost", lid)
		}
	}
	most := 3 * x.least
	switch old.Engine {
	case "torus-2qos":
		most = max(most, x.lost) // where a ring is open, there is one way only
	case "nue":
		most = max(most, x.lost+x.lost/3) // the short way may close a credit loop
	}
	if x.blocks > most {
		wrong("%d blocks change, %d must, paths of %d are lost", x.blocks, x.least, x.lost)
	}
	v := verified(t, r, verify.Options{Require: func(src, dst *graph.Terminal) bool { return h.Distance(src.Switch, dst.Switch) >= 0 }})
	if v.Unreachable > 0 || v.Loops > 0 || !v.Acyclic {
		wrong("unreachable %d, loops %d, acyclic %t", v.Unreachable, v.Loops, v.Acyclic)
	}
	for _, note := range r.Notes {
		var n int
		if _, err := fmt.Sscanf(note, "repair: %d of these paths used nothing that was lost", &n); err == nil {
			x.moved = n
		}
	}
	if n := x.otherLevels(); n > x.moved {
		wrong("%d paths that stay have other service levels; notes count %d", n, x.moved)
	}
	return x
}

// TestRepairHostBack: by lash, a host that comes back gets the service levels of the others on its switch,
// and no other path gets another, whatever its LID.
func TestRepairHostBack(t *testing.T) {
	whole := damaged(t, "torus:dims=4/4,hosts=2")
	for _, name := range []string{"node-0001 HCA-1", "node-0011 HCA-1", "node-0012 HCA-1"} {
		host := whole.f.NodeByName(name)[0]
		d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{host: true}}
		old := compute(t, d.graph(t), "lash", engines.Options{})
		r, err := Tables(t.Context(), old, whole.graph(t))
		if err != nil {
			t.Fatal(err)
		}
		g := r.Graph()
		for i, from := range g.Terminals() {
			for j, to := range g.Terminals() {
				if from.Out == 0 || to.Out == 0 || i == j {
					continue
				}
				if there, back := r.SL.Of(i, to.LID), r.SL.Of(j, from.LID); there != back {
					t.Fatalf("%s back: from LID %d to %d SL %d, back %d", name, from.LID, to.LID, there, back)
				}
				o := old.Graph()
				a, b := o.TerminalByLID(from.LID), o.TerminalByLID(to.LID)
				if a >= 0 && b >= 0 && old.SL.Of(a, to.LID) != r.SL.Of(i, to.LID) {
					t.Fatalf("%s back: from LID %d to %d SL %d, before %d", name, from.LID, to.LID, r.SL.Of(i, to.LID), old.SL.Of(a, to.LID))
				}
			}
		}
	}
}

// TestRepairMovedHosts: by lash, where two hosts, the only ones of their switches, have changed places,
// paths there and back are on one lane, and no lane has a credit loop.
func TestRepairMovedHosts(t *testing.T) {
	whole := damaged(t, "torus:dims=4/4,hosts=1")
	old := compute(t, whole.graph(t), "lash", engines.Options{})
	one, two := whole.f.NodeByName("node-0001 HCA-1")[0], whole.f.NodeByName("node-0002 HCA-1")[0]
	b := fabric.NewBuilder()
	for i := range whole.f.Nodes() {
		n := &whole.f.Nodes()[i]
		switch n {
		case one:
			n = two
		case two:
			n = one
		}
		b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name()})
		for num := range n.NumPorts() + 1 {
			if p := n.Port(num); p != nil && p.Info() != nil {
				b.SetPort(i, num, p.Info())
			}
		}
	}
	for i := range whole.f.Ports() {
		if p := &whole.f.Ports()[i]; p.Peer() != nil && p.ID() < p.Peer().ID() {
			if err := b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := (&damage{f: b.Build()}).graph(t)
	r, err := Tables(t.Context(), old, g)
	if err != nil {
		t.Fatal(err)
	}
	if v := verified(t, r, verify.Options{}); !v.OK() {
		t.Errorf("unreachable %d, loops %d, acyclic %t", v.Unreachable, v.Loops, v.Acyclic)
	}
	for i, from := range g.Terminals() {
		for j, to := range g.Terminals() {
			if there, back := r.SL.Of(i, to.LID), r.SL.Of(j, from.LID); from.Out > 0 && to.Out > 0 && i != j && there != back {
				t.Fatalf("from LID %d to %d SL %d, back %d", from.LID, to.LID, there, back)
			}
		}
	}
}

// distinct is how many different blocks are in list.
func distinct(list []int) int {
	slices.Sort(list)
	return len(slices.Compact(list))
}

// arrivals reports whether packets from a switch to a LID arrive by the tables before.
func (x *repaired) arrivals() func(s int, dest graph.Dest) bool {
	g := x.r.Graph()
	w, last := verify.NewWalk(g), -1
	var entries []uint8
	return func(s int, dest graph.Dest) bool {
		if int(dest.LID) != last {
			w.Begin()
			last, entries = int(dest.LID), x.old.Column(dest.LID)
		}
		w.From(int32(s), entries, dest.Terminal)
		return w.State[s] >= 0
	}
}

// otherLevels counts the paths from a switch to a LID, by lash of pairs of switches, with another
// service level, of which neither the path there nor that back has changed. By nue, the paths to a LID
// that must change may all move to another lane.
func (x *repaired) otherLevels() int {
	g := x.r.Graph()
	same := func(from, to int) bool {
		a, err := x.old.Trace(g.Terminals()[from].LID, g.Terminals()[to].LID)
		b, err2 := x.r.Trace(g.Terminals()[from].LID, g.Terminals()[to].LID)
		return err == nil && err2 == nil && a.Broken == "" && slices.EqualFunc(a.Hops, b.Hops, func(i, j routes.Hop) bool { return i.Switch == j.Switch && i.Out == j.Out })
	}
	paths := map[[2]int]bool{}
	for from, s := range g.Terminals() {
		for to, d := range g.Terminals() {
			if s.Out == 0 || d.Out == 0 || x.r.Engine == "nue" && x.used[d.LID] || x.old.SL.Of(from, d.LID) == x.r.SL.Of(from, d.LID) || !same(from, to) || !same(to, from) {
				continue
			}
			if x.r.Engine == "lash" {
				paths[[2]int{min(s.Switch, d.Switch), max(s.Switch, d.Switch)}] = true
			} else {
				paths[[2]int{s.Switch, int(d.LID)}] = true
			}
		}
	}
	return len(paths)
}

// TestRepairLanes: after random losses, of tables with lanes only those destinations change that
// used what was lost (by nue, in most cases), in no more than three times the blocks that must; paths that stay keep
// their service levels, except the number in a note, and in most cases the number of lanes stays. With -v it
// prints a line for each case.
func TestRepairLanes(t *testing.T) {
	seeds, nets := uint64(3), routingtest.SmallNets()
	if testing.Short() {
		seeds, nets = 1, nets[9:14] // from a torus to a random one
	}
	cases, lanes, crowded := map[string]int{}, map[string]int{}, map[string]int{}
	for _, spec := range nets {
		whole := damaged(t, spec)
		g := whole.graph(t)
		for _, e := range laneEngines {
			o := engines.Options{MaxVLs: e.maxVLs}
			name := fmt.Sprint(e.name, " ", e.maxVLs)
			old, err := engines.Compute(t.Context(), g, e.name, o)
			if errors.As(err, new(*engines.Precondition)) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			for seed := range seeds {
				random := rand.New(rand.NewPCG(33, seed))
				for _, lost := range [][2]int{{0, 1}, {1, 0}, {1, 3}} {
					d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
					d.lose(random, lost[0], lost[1])
					less := d.graph(t)
					if len(less.Switches()) == 0 {
						continue
					}
					full, err := engines.Compute(t.Context(), less, e.name, o)
					if errors.As(err, new(*engines.Precondition)) {
						continue
					} else if err != nil {
						t.Fatal(err)
					}
					r, err := Tables(t.Context(), old, less)
					if err != nil {
						t.Fatal(err)
					}
					x := judge(t, old, r, full)
					cases[name]++
					if x.crowded {
						crowded[name]++
					}
					if r.Lanes() > max(old.Lanes(), full.Lanes()) {
						lanes[name]++
					}
					if r.Lanes() > max(old.Lanes(), full.Lanes())+1 {
						x.wrong = append(x.wrong, fmt.Sprintf("%d lanes, before %d", r.Lanes(), old.Lanes()))
					}
					line := fmt.Sprintf("%s, %s, without %d switches and %d links, seed %d: blocks full run %d, repair %d, must %d; lanes before %d, full run %d, repair %d", spec, name, lost[0], lost[1], seed, x.all, x.blocks, x.least, old.Lanes(), full.Lanes(), r.Lanes())
					if x.wrong != nil {
						t.Errorf("%s: %s", line, strings.Join(x.wrong, "; "))
					} else {
						t.Log(line)
					}
				}
			}
		}
	}
	for _, e := range laneEngines {
		name := fmt.Sprint(e.name, " ", e.maxVLs)
		t.Logf("%s: %d cases, %d with a lane more than before and by a full run, %d with other LIDs", name, cases[name], lanes[name], crowded[name])
		if !testing.Short() && (lanes[name]*20 > cases[name] || crowded[name]*20 > cases[name]) {
			t.Errorf("%s: too many", name)
		}
	}
}

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

// TestRepairLimit: where more virtual lanes are needed than before, a note compares their number with that of
// a new run, which replaces the repair if links have too few lanes for it.
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
