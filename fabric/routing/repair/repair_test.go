package repair

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// damage is what is out of order at present: the cables and nodes of a fabric.
type damage struct {
	f     *fabric.Fabric
	ports map[*fabric.Port]bool
	nodes map[*fabric.Node]bool
}

// graph returns the graph of what works.
func (d *damage) graph(t testing.TB) *graph.Graph {
	t.Helper()
	b := fabric.NewBuilder()
	handles := map[*fabric.Node]int{}
	for i := range d.f.Nodes() {
		n := &d.f.Nodes()[i]
		if d.nodes[n] {
			continue
		}
		handles[n] = b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name()})
		for num := range n.NumPorts() + 1 {
			if p := n.Port(num); p != nil && p.Info() != nil {
				b.SetPort(handles[n], num, p.Info())
			}
		}
	}
	for i := range d.f.Ports() {
		p := &d.f.Ports()[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || d.nodes[p.Node()] || d.nodes[q.Node()] || d.ports[p] || d.ports[q] {
			continue
		}
		if err := b.Link(handles[p.Node()], p.Num(), handles[q.Node()], q.Num()); err != nil {
			t.Fatal(err)
		}
	}
	g, err := graph.New(b.Build(), graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// change loses a cable or a switch, or brings one back.
func (d *damage) change(random *rand.Rand) string {
	switch what := random.IntN(8); {
	case what < 3 && len(d.ports) > 0:
		ports := make([]*fabric.Port, 0, len(d.ports))
		for p := range d.ports {
			ports = append(ports, p)
		}
		slices.SortFunc(ports, func(a, b *fabric.Port) int { return a.ID() - b.ID() })
		p := ports[random.IntN(len(ports))]
		delete(d.ports, p)
		return "back: " + p.Label()
	case what == 3 && len(d.nodes) > 0:
		for n := range d.nodes {
			delete(d.nodes, n)
			return "back: " + n.Label()
		}
	case what == 4 && len(d.nodes) == 0:
		n := &d.f.Nodes()[random.IntN(len(d.f.Nodes()))]
		d.nodes[n] = true
		return "lost: " + n.Label()
	}
	for {
		p := &d.f.Ports()[random.IntN(len(d.f.Ports()))]
		if q := p.Peer(); q != nil && !d.ports[p] && !d.ports[q] && (q.Node().IsSwitch() && p.Node().IsSwitch() || random.IntN(20) == 0) {
			d.ports[p] = true
			return "lost: " + p.Label()
		}
	}
}

// damaged is f with LIDs that stay, whatever is lost.
func damaged(t testing.TB, spec string) *damage {
	t.Helper()
	f := routingtest.Topology(t, spec)
	b := fabric.NewBuilder()
	lid := mad.LID(0)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name()})
		first := 1
		if n.IsSwitch() {
			first = 0
		}
		for num := first; num <= n.NumPorts() && (num == 0 || !n.IsSwitch()); num++ {
			lid++
			b.SetPort(i, num, &mad.PortInfo{LID: lid, PortState: mad.PortStateActive})
		}
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil && q.ID() > p.ID() {
			if err := b.Link(p.Node().ID(), p.Num(), q.Node().ID(), q.Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &damage{b.Build(), map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
}

// byHand is what following each packet by itself finds: the pairs that arrive, by their
// links in excess of the shortest way, and the dependencies of channels.
type byHand struct {
	reached  map[[2]mad.LID]int
	switches map[[2]mad.LID]int
	acyclic  bool // the dependencies of paths to CAs
	together bool // and of those to switches
}

// follow judges tables by none of the package's code but their entries.
func follow(r *routes.Routes) byHand {
	g := r.Graph()
	x := byHand{reached: map[[2]mad.LID]int{}, switches: map[[2]mad.LID]int{}}
	next, all := map[*fabric.Port]map[*fabric.Port]bool{}, map[*fabric.Port]map[*fabric.Port]bool{}
	add := func(next map[*fabric.Port]map[*fabric.Port]bool, path []*fabric.Port) {
		for k := 1; k < len(path); k++ {
			if next[path[k-1]] == nil {
				next[path[k-1]] = map[*fabric.Port]bool{}
			}
			next[path[k-1]][path[k]] = true
		}
	}
	for i := range g.Terminals() {
		dst := &g.Terminals()[i]
		for j := range g.Terminals() {
			src := &g.Terminals()[j]
			if i == j || src.Port.Node().IsSwitch() || src.Port.Peer() == nil {
				continue
			}
			at, hops := src.Port.Peer().Node(), 0
			var path []*fabric.Port
			for ; hops <= 64 && at.IsSwitch() && at != dst.Port.Node(); hops++ {
				out := at.Port(int(r.Row(g.SwitchOf(at)).Port(dst.LID)))
				if out == nil || out.Num() == 0 || out.Peer() == nil {
					break
				}
				path = append(path, out)
				at = out.Peer().Node()
			}
			if at != dst.Port.Node() || at.IsSwitch() && r.Row(g.SwitchOf(at)).Port(dst.LID) != 0 {
				continue
			}
			pair := [2]mad.LID{src.LID, dst.LID}
			add(all, path)
			if at.IsSwitch() {
				x.switches[pair] = hops
				continue
			}
			x.reached[pair] = hops
			add(next, path)
		}
	}
	x.acyclic, x.together = acyclic(next), acyclic(all)
	return x
}

// acyclic says whether there is no cycle.
func acyclic(next map[*fabric.Port]map[*fabric.Port]bool) bool {
	// Take away ports that lead to none, until none is left.
	for gone := true; gone; {
		gone = false
		for p, after := range next {
			for q := range after {
				if len(next[q]) == 0 {
					delete(after, q)
				}
			}
			if len(after) == 0 {
				delete(next, p)
				gone = true
			}
		}
	}
	return len(next) == 0
}

// TestRepairs: after each of many changes, the tables reach what a full run's reach, as
// shortly or legally, close no credit loop where the engine promises it, and their
// balance is nearly as good as after a full run.
func TestRepairs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, spec := range []string{
		"pgft:m=3/3/4,w=1/3/3,p=1/1/1", "pgft:m=4/4/4,w=1/4/4,p=1/1/1", "pgft:m=4/4,w=1/2,p=1/3", "pgft:m=2/3/2,w=1/2/3,p=1/1/2", "torus:dims=4/4,hosts=2", "random:n=14,degree=4,hosts=2",
	} {
		for _, promises := range engines.All() {
			name := promises.Name
			if promises.Repair == engines.Recompute || promises.Repair == engines.PatchOnly {
				continue
			}
			t.Run(fmt.Sprint(spec, " ", name), func(t *testing.T) {
				random := rand.New(rand.NewPCG(7, 7))
				d := damaged(t, spec)
				r, err := engines.Compute(t.Context(), d.graph(t), name, engines.Options{})
				if errors.As(err, new(*engines.Precondition)) {
					return // the engine is not for this network
				} else if err != nil {
					t.Fatal(err)
				}
				for step := range 30 {
					what := d.change(random)
					g := d.graph(t)
					full, err := engines.Compute(t.Context(), g, name, engines.Options{})
					if err != nil {
						t.Logf("step %d, %s: %v", step, what, err)
						continue
					}
					r, err = Tables(t.Context(), r, g)
					if err != nil {
						t.Fatalf("step %d, %s: %v", step, what, err)
					}
					got, want := follow(r), follow(full)
					if promises.Lanes { // follow knows none, and packets to switches are not judged
						got.acyclic, want.together = verified(t, r, verify.Options{}).Acyclic, false
					}
					for pair, hops := range want.reached {
						h, ok := got.reached[pair]
						if !ok || promises.Minimal && h > hops {
							t.Fatalf("step %d, %s: from %d to %d: %v in %d hops, %d by a full run", step, what, pair[0], pair[1], ok, h, hops)
						}
					}
					for pair := range want.switches {
						if _, ok := got.switches[pair]; !ok {
							t.Fatalf("step %d, %s: from %d to switch %d: no path", step, what, pair[0], pair[1])
						}
					}
					if promises.Acyclic && !got.acyclic {
						t.Fatalf("step %d, %s: a credit loop", step, what)
					}
					if promises.Acyclic && want.together && !got.together {
						t.Fatalf("step %d, %s: a credit loop of paths to switches", step, what)
					}
					a, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
					if err != nil {
						t.Fatal(err)
					}
					b, err := traffic.MeasureBalance(t.Context(), full, 0, nil)
					if err != nil {
						t.Fatal(err)
					}
					if !promises.Lanes && a.Routes.Max > b.Routes.Max+b.Routes.Max/maxWorse {
						t.Errorf("step %d, %s: %d routes on a link, %d by a full run", step, what, a.Routes.Max, b.Routes.Max)
					}
				}
			})
		}
	}
}

// TestHundredRepairs: after a hundred changes, each repaired, the balance of a fat tree is
// within 2 % of a full run's. Large trees, where repairs are not compared with one, are
// for FABSH_SOAK.
func TestHundredRepairs(t *testing.T) {
	specs, steps := []string{"pgft:m=4/4/4,w=1/4/4,p=1/1/1"}, 100
	if testing.Short() {
		steps = 20
	}
	if os.Getenv("FABSH_SOAK") != "" {
		specs = append(specs, routingtest.Nets["ft5832"])
	}
	for _, spec := range specs {
		for _, name := range []string{"minhop", "updn", "ftree", "dnup"} {
			random := rand.New(rand.NewPCG(11, 7))
			d := damaged(t, spec)
			r := compute(t, d.graph(t), name, engines.Options{})
			for step := 1; step <= steps; step++ {
				what := d.change(random)
				g := d.graph(t)
				var err error
				if r, err = Tables(t.Context(), r, g); err != nil {
					t.Fatal(err)
				}
				if step%20 > 0 {
					continue
				}
				a, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := traffic.MeasureBalance(t.Context(), compute(t, g, name, engines.Options{}), 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				if a.Routes.Max > b.Routes.Max+b.Routes.Max/maxWorse || a.Routes.Mean > b.Routes.Mean*1.02 {
					t.Errorf("%s %s, step %d, %s: at most %d routes on a link, in the mean %.1f; by a full run %d, %.1f", spec, name, step, what, a.Routes.Max, a.Routes.Mean, b.Routes.Max, b.Routes.Mean)
				}
			}
		}
	}
}

// TestRepairWithout: of tables that no engine vouches for, paths that arrive stay as they
// are; the others close no credit loop with them.
func TestRepairWithout(t *testing.T) {
	for _, spec := range []string{"pgft:m=3/3/4,w=1/3/3,p=1/1/1", "torus:dims=4/4,hosts=2", "random:n=14,degree=4,hosts=2"} {
		random := rand.New(rand.NewPCG(3, 3))
		d := damaged(t, spec)
		r := compute(t, d.graph(t), "updn", engines.Options{})
		r.ForgetOrigin()
		for step := range 20 {
			what := d.change(random)
			before := r.On(d.graph(t))
			r, err := Tables(t.Context(), r, before.Graph())
			if err != nil {
				t.Fatal(err)
			}
			got, want := follow(r), follow(before)
			for pair, hops := range want.reached {
				if got.reached[pair] != hops {
					t.Errorf("%s, step %d, %s: from %d to %d: %d hops, were %d", spec, step, what, pair[0], pair[1], got.reached[pair], hops)
				}
			}
			if !got.acyclic {
				t.Errorf("%s, step %d, %s: a credit loop", spec, step, what)
			}
		}
	}
}

// TestRepairShares: rows that repaired tables share are not changed through the others.
func TestRepairShares(t *testing.T) {
	g := routingtest.Graph(t, "fattree:k=4,levels=3", graph.BuildOptions{})
	old := compute(t, g, "ftree", engines.Options{})
	cut := g.ChannelPort(3)
	less, err := graph.New(g.Fabric(), graph.BuildOptions{Exclude: func(p *fabric.Port) bool { return p == cut }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Tables(t.Context(), old, less)
	if err != nil {
		t.Fatal(err)
	}
	before, after := old.Clone(), r.Clone()
	r.EditRow(2)[5] = 9
	old.EditRow(3)[5] = 9
	if d := old.Diff(before); d.Entries != 1 || old.Row(2)[5] == 9 {
		t.Errorf("%d entries of the older tables changed", d.Entries)
	}
	if d := r.Diff(after); d.Entries != 1 || r.Row(3)[5] == 9 {
		t.Errorf("%d entries of the newer tables changed", d.Entries)
	}
}

// TestRepairWithoutLID: a switch to which nothing is routed, because neither it nor its hosts have a
// LID, may have the next hops of the next switch.
func TestRepairWithoutLID(t *testing.T) {
	f := routingtest.Topology(t, "fattree:k=4,levels=3")
	lids := map[*fabric.Node]mad.LID{}
	for i := range f.Nodes() {
		lids[&f.Nodes()[i]] = mad.LID(i + 1)
	}
	for _, without := range routingtest.Graph(t, "fattree:k=4,levels=3", graph.BuildOptions{}).Switches() {
		o := graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
			if n := p.Node(); n.GUID() == without.GUID() || !n.IsSwitch() && p.Peer().Node().GUID() == without.GUID() {
				return 0, 0
			}
			return lids[p.Node()], 0
		}}
		g, err := graph.New(f, o)
		if err != nil {
			t.Fatal(err)
		}
		old := compute(t, g, "ftree", engines.Options{})
		for c := range g.Channels() {
			cut := g.ChannelPort(c)
			o.Exclude = func(p *fabric.Port) bool { return p == cut }
			less, err := graph.New(f, o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Tables(t.Context(), old, less)
			if err != nil {
				t.Fatal(err)
			}
			if v := verified(t, r, verify.Options{}); v.Wrong() {
				t.Errorf("no LID on %s, lost %s: %d pairs are unreachable, acyclic: %v", without.Name(), cut.Label(), v.Unreachable, v.Acyclic)
			}
		}
	}
}

// TestPartedPairs: hosts without a LID are no endpoints, and those on no switch are.
func TestPartedPairs(t *testing.T) {
	f := routingtest.Topology(t, "mesh:dims=4,hosts=2")
	first := routingtest.Graph(t, "mesh:dims=4,hosts=2", graph.BuildOptions{}).ChannelPort(0) // to the other switches
	for _, x := range []struct {
		without, alone string
		want           int64
	}{
		{"", "", 2 * 2 * 6},
		{"node-0001 HCA-1", "", 2 * 1 * 6},
		{"", "node-0003 HCA-1", 2*2*5 + 2*7},
		{"node-0001 HCA-1", "node-0003 HCA-1", 2*1*5 + 2*6},
	} {
		lid := mad.LID(0)
		g, err := graph.New(f, graph.BuildOptions{
			Exclude: func(p *fabric.Port) bool {
				return p.Node().GUID() == first.Node().GUID() && p.Num() == first.Num() || p.Node().Name() == x.alone
			},
			LIDs: func(p *fabric.Port) (mad.LID, int) {
				if lid++; p.Node().Name() == x.without {
					return 0, 0
				}
				return lid, 0
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		n, err := partedPairs(t.Context(), g)
		if v := verified(t, compute(t, g, "minhop", engines.Options{}), verify.Options{}); err != nil || n != x.want || v.Unreachable != n {
			t.Errorf("no LID on %q, %q on no switch: %d pairs, want %d, %v; the verdict has %d", x.without, x.alone, n, x.want, err, v.Unreachable)
		}
	}
}

// TestRepairReachesAll: where paths were added to up*/down*, fewer may be possible beside the entries that
// stay; then the result is a full run.
func TestRepairReachesAll(t *testing.T) {
	for _, x := range []struct {
		net, engine string
		seeds       []uint64
	}{
		{"torus:dims=3/4/3,hosts=1", "dnup", []uint64{27}},
		{"pgft:m=3/4/2,w=1/3/1,p=1/1/2,remove_links=30%", "updn", []uint64{51}},
		{"fattree:k=6,levels=3,remove_links=23%", "dnup", []uint64{0, 12, 44}},
	} {
		for _, seed := range x.seeds {
			random := rand.New(rand.NewPCG(seed, 5))
			d := damaged(t, fmt.Sprintf("%s,seed=%d", x.net, seed))
			for i := range d.f.Nodes() {
				if n := &d.f.Nodes()[i]; !n.IsSwitch() && random.IntN(3) == 0 {
					d.nodes[n] = true
				}
			}
			g := d.graph(t)
			r := compute(t, g, x.engine, engines.Options{})
			for range 3 {
				p := g.ChannelPort(random.IntN(len(g.Channels())))
				i := slices.IndexFunc(d.f.Nodes(), func(n fabric.Node) bool { return n.GUID() == p.Node().GUID() })
				d.ports[d.f.Nodes()[i].Port(p.Num())] = true
			}
			g = d.graph(t)
			full := compute(t, g, x.engine, engines.Options{})
			r, err := Tables(t.Context(), r, g)
			if err != nil {
				t.Fatal(err)
			}
			v, w := verified(t, r, verify.Options{}), verified(t, full, verify.Options{})
			if v.Unreachable > w.Unreachable || v.UnreachableSwitches() > w.UnreachableSwitches() {
				t.Errorf("%s, seed %d: %d pairs unreachable, and %d of switches; by a full run %d and %d", x.net, seed, v.Unreachable, v.UnreachableSwitches(), w.Unreachable, w.UnreachableSwitches())
			}
		}
	}
}

// TestRepairLateLIDs: CAs get LIDs after the tables were made, on switches without others too. Entries for
// others, of a known engine, and the levels of their paths stay, and there is no credit loop.
func TestRepairLateLIDs(t *testing.T) {
	for seed := range uint64(6) {
		f := damaged(t, "torus:dims=5/5,hosts=1").f
		random := rand.New(rand.NewPCG(seed, 1))
		late, few := lateCAs(f, random, 0.3), lateCAs(f, random, 0.1)
		for _, x := range []struct {
			engine  string
			maxVLs  int
			unknown bool
		}{{"dfsssp", 0, false}, {"nue", 1, true}, {"nue", 3, true}} {
			r := compute(t, withoutLIDs(t, f, late), x.engine, engines.Options{MaxVLs: x.maxVLs})
			if x.unknown {
				r = bySource(r)
			}
			still := maps.Clone(late)
			for i := range late {
				still[i] = x.unknown && few[i] || !x.unknown && i != slices.Min(slices.Collect(maps.Keys(late)))
			}
			got, err := Tables(t.Context(), r, withoutLIDs(t, f, still))
			if err != nil {
				t.Fatal(err)
			}
			if v := verified(t, got, verify.Options{}); !v.Acyclic || !x.unknown && v.Unreachable > 0 {
				t.Errorf("seed %d, %s: unreachable %d, acyclic %v, %q", seed, x.engine, v.Unreachable, v.Acyclic, got.Notes)
			}
			for _, d := range r.Graph().Dests() {
				for s := range r.Graph().Switches() {
					if !x.unknown && got.Row(s)[d.LID] != r.Row(s)[d.LID] {
						t.Fatalf("seed %d, %s: switch %d has another entry for LID %d", seed, x.engine, s, d.LID)
					}
				}
				for i, src := range r.Graph().Terminals() {
					if now := got.Graph().TerminalByLID(src.LID); src.Count > 0 && got.SL.Of(now, d.LID) != r.SL.Of(i, d.LID) {
						t.Fatalf("seed %d, %s: another level from LID %d to %d", seed, x.engine, src.LID, d.LID)
					}
				}
			}
		}
	}
}

// TestRepairStale: on a ring of four, packets go clockwise to three hosts and to one that is lost, or over
// a link that is. When it is back, its entries close a credit loop with the others, and get replaced.
func TestRepairStale(t *testing.T) {
	for _, lost := range []string{"host", "link"} {
		whole := damaged(t, "ring:n=4,hosts=2")
		g := whole.graph(t)
		at := func(i int) int { return routingtest.SwitchNamed(t, g, "switch-"+string(rune('1'+i%4))) }
		r := routes.New(g, 0)
		for i := range 4 {
			for _, d := range g.DestsOf(at(i)) {
				r.Row(at(i))[d.LID] = d.Out
				for back := 1; back < 4; back++ {
					r.Row(at(i + 4 - back))[d.LID] = portTo(g, at(i+4-back), at(i+5-back))
				}
				r.Row(at(i + 1))[d.LID] = portTo(g, at(i+1), at(i)) // which is one link the other way
			}
		}
		dests := g.DestsOf(at(0))
		r.Row(at(2))[dests[2].LID] = portTo(g, at(2), at(1)) // so only packets to the first host close the loop
		if v := verified(t, r, verify.Options{}); v.Acyclic {
			t.Fatal("no credit loop")
		}
		d := &damage{whole.f, map[*fabric.Port]bool{}, map[*fabric.Node]bool{}}
		for i := range whole.f.Ports() {
			p := &whole.f.Ports()[i]
			if p.Node().GUID() == g.Switches()[at(3)].GUID() && p.Peer() != nil && p.Peer().Node().GUID() == g.Switches()[at(0)].GUID() {
				d.ports[p] = lost == "link"
			}
			if p.LID() == dests[1].LID {
				d.nodes[p.Node()] = lost == "host"
			}
		}
		before := r.On(d.graph(t))
		if v := verified(t, before, verify.Options{}); !v.Acyclic {
			t.Fatal(lost, ": a credit loop at once")
		}
		got, err := Tables(t.Context(), before, g)
		if err != nil {
			t.Fatal(err)
		}
		isWhole(t, lost, got)
	}
}

// portTo is the port from a switch to another.
func portTo(g *graph.Graph, from, to int) uint8 {
	for c := g.FirstChannel(from); c < g.FirstChannel(from+1); c++ {
		if int(g.ChannelTo(c)) == to {
			return g.Channels()[c].Port
		}
	}
	return routes.NoPort
}
