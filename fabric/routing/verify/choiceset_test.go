package verify_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
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

// checker judges choices one packet at a time: each service level, transport, source and LID
// by itself, over all paths, from the fields of the tables.
type checker struct {
	r  *routes.Routes
	g  *graph.Graph
	ar []*adaptive.Switch

	edges      map[[2]link]bool // that packets may wait over
	used       map[link]bool
	lanes      uint16 // a bit each, links to end ports included
	dropsAreOK bool   // of the present service level: no path has it
	unhashed   bool   // at switches whose settings are assumed, the present service level has no HBF
}

// link is a directed link on a virtual lane, by its first port.
type link struct {
	s    int32
	port uint8
	vl   uint8
}

// outcome is what may become of packets.
type outcome struct {
	lost, loops bool
	longest     int // links
}

func newChecker(r *routes.Routes) *checker {
	c := &checker{r: r, g: r.Graph(), edges: map[[2]link]bool{}, used: map[link]bool{}}
	for s := range c.g.Switches() {
		c.ar = append(c.ar, r.Adaptive(s))
	}
	return c
}

// mayTake are the ports that switch s may send a packet by.
func (c *checker) mayTake(s int32, in, sl uint8, transport adaptive.Transport, lid mad.LID) []uint8 {
	a := c.ar[s]
	up := func(p uint8) bool { return p == 0 || c.g.Target(s, p) != graph.NoTarget }
	if a == nil || !a.Enabled && !a.HBF {
		if p := c.r.Row(int(s)).Port(lid); p != 255 {
			return []uint8{p}
		}
		return nil
	}
	plft := 0
	if int(in) < len(a.Private) {
		plft = int(a.Private[in][sl])
	}
	if plft >= len(a.Tables) || a.Tables[plft] == nil {
		return nil
	}
	t := a.Tables[plft]
	e := t.Entry(lid)
	var group, groupUp []uint8
	for sub := range 4 {
		for p := range t.Groups.Ports(int(e.Group), sub).All() {
			group = append(group, p)
			if up(p) {
				groupUp = append(groupUp, p)
			}
		}
	}
	adaptiveSL := a.Enabled && a.SLs>>sl&1 == 1 && a.Static>>transport&1 == 0
	hashedSL := a.HBF && a.HBFSLs>>sl&1 == 1 && !(a.Assumed && c.unhashed)
	switch {
	case (e.State == adaptive.Bounded || e.State == adaptive.Free) && adaptiveSL:
		return groupUp
	case e.State != adaptive.Static && hashedSL && a.FastRecovery:
		return groupUp
	case e.State != adaptive.Static && hashedSL:
		return group
	}
	// The static port, and others of the group in its place.
	var ports []uint8
	if e.Port != 255 {
		ports = []uint8{e.Port}
	}
	if !a.FastRecovery || len(groupUp) == 0 {
		return ports
	}
	switch isUp := e.Port != 255 && up(e.Port); {
	case e.State == adaptive.Static && (isUp || e.Port == 255):
		return ports
	case !isUp:
		return groupUp
	}
	return append(ports, groupUp...)
}

// follow follows all paths from switch s, which packets enter by a port; before are the links
// so far, whose number a loop exceeds.
func (c *checker) follow(s int32, in, sl uint8, transport adaptive.Transport, lid mad.LID, before []link) outcome {
	if slices.ContainsFunc(before[:max(0, len(before)-1)], func(l link) bool { return l == before[len(before)-1] }) {
		return outcome{loops: true}
	}
	var o outcome
	ports := c.mayTake(s, in, sl, transport, lid)
	o.lost = len(ports) == 0
	for _, p := range ports {
		target := c.g.Target(s, p)
		switch {
		case target == graph.ToTerminal(int32(c.g.TerminalByLID(lid))):
			if vl := c.r.SL2VL.VL(int(s), in, p, sl); p > 0 && vl < 15 && !c.dropsAreOK {
				c.lanes |= 1 << vl
			}
			continue
		case !target.IsChannel():
			o.lost = true
			continue
		}
		l := link{s: s, port: p}
		if c.r.SL2VL != nil {
			l.vl = c.r.SL2VL.VL(int(s), in, p, sl)
		}
		if l.vl == 15 {
			o.lost = o.lost || !c.dropsAreOK
			continue
		}
		c.used[l] = true
		if !c.dropsAreOK {
			c.lanes |= 1 << l.vl
		}
		if n := len(before); n > 0 {
			c.edges[[2]link{before[n-1], l}] = true
		}
		ch := c.g.Channels()[target.Channel()]
		next := c.follow(ch.To, ch.PeerPort, sl, transport, lid, append(slices.Clone(before), l))
		o.lost, o.loops, o.longest = o.lost || next.lost, o.loops || next.loops, max(o.longest, next.longest+1)
	}
	return o
}

// acyclic removes links that wait for none until no more can be removed.
func (c *checker) acyclic() bool {
	waits := map[link]int{}
	for e := range c.edges {
		waits[e[0]]++
	}
	left := c.edges
	for {
		rest := map[[2]link]bool{}
		for e := range left {
			if waits[e[1]] > 0 {
				rest[e] = true
			}
		}
		if len(rest) == len(left) {
			return len(left) == 0
		}
		clear(waits)
		for e := range rest {
			waits[e[0]]++
		}
		left = rest
	}
}

// verdict is the result in words.
func (c *checker) verdict() string {
	var pairs, unreachable, loops, longest int
	for src := range c.g.Terminals() {
		from := &c.g.Terminals()[src]
		for dst := range c.g.Terminals() {
			to := &c.g.Terminals()[dst]
			if src == dst || from.Out == 0 || to.Out == 0 {
				continue
			}
			for lid := to.LID; lid < to.LID+mad.LID(to.Count); lid++ {
				var all outcome
				for sl := range uint8(16) {
					if c.r.SL != nil && c.r.SL.Of(src, lid) != sl {
						continue
					}
					c.dropsAreOK = c.r.SL == nil && sl != 0
					for i := range adaptive.Transport(8) {
						t := adaptive.RC + i/2
						c.unhashed = i%2 == 1
						o := c.follow(int32(from.Switch), from.Out, sl, t, lid, nil)
						all.lost, all.loops, all.longest = all.lost || o.lost, all.loops || o.loops, max(all.longest, o.longest)
					}
				}
				pairs++
				switch {
				case all.loops:
					loops++
					unreachable++
				case all.lost:
					unreachable++
				default:
					longest = max(longest, all.longest+2)
				}
			}
		}
	}
	return fmt.Sprintf("%d pairs, %d unreachable, %d loop, longest %d, %d links, %d waits, acyclic %t, %d lanes", pairs, unreachable, loops, longest, len(c.used), len(c.edges), c.acyclic(), bits.OnesCount16(c.lanes))
}

func words(v *verify.Verdict) string {
	return fmt.Sprintf("%d pairs, %d unreachable, %d loop, longest %d, %d links, %d waits, acyclic %t, %d lanes", v.Pairs, v.Unreachable, v.Loops, v.MaxHops, v.Channels, v.Dependencies, v.Acyclic, v.Lanes)
}

// randomChoices gives r choices of all kinds; wild ones lead anywhere.
func randomChoices(random *rand.Rand, r *routes.Routes, h *graph.Hops, wild bool) {
	g := r.Graph()
	chance := func(percent int) bool { return random.IntN(100) < percent }
	manyPLFTs, transports, fr, hbf, alike, assumed := chance(40), chance(70), chance(30), chance(40), chance(60), chance(20)
	slMask := adaptive.AllSLs
	if chance(30) {
		slMask = adaptive.SLs(random.Uint32())
	}
	for s, n := range g.Switches() {
		if chance(15) {
			continue
		}
		a := &adaptive.Switch{Enabled: !chance(10), SLs: slMask, HBF: hbf, HBFSLs: adaptive.SLs(random.Uint32()), FastRecovery: fr && chance(80), Assumed: assumed && chance(80)}
		if transports {
			a.Static = adaptive.OpenSMStatic
		}
		if chance(10) {
			a.SLs = adaptive.SLs(random.Uint32())
		}
		plfts := 1
		if manyPLFTs {
			plfts = 2
			for range n.NumPorts() + 1 {
				var row [16]uint8
				for sl := range row {
					row[sl] = uint8(random.IntN(2))
				}
				if chance(70) {
					row = [16]uint8{}
				}
				a.Private = append(a.Private, row)
			}
		}
		groups := adaptive.NewGroups(1 + random.IntN(3))
		for range plfts {
			t := adaptive.NewTable(r.Top(), groups)
			for d := range g.Switches() {
				var last adaptive.Entry // of the LID before, on this switch
				for i, dest := range g.DestsOf(d) {
					e := adaptive.Entry{State: adaptive.State(random.IntN(4)), Port: r.Row(s).Port(dest.LID), Group: uint16(groups.Len())}
					if s == d {
						e.State, e.Group = adaptive.Static, 0
					} else if alike && i > 0 {
						e.State, e.Group = last.State, last.Group
					} else if groups.Len() > 0 && chance(10) {
						e.Group = uint16(random.IntN(groups.Len()))
					} else {
						for sub := range groups.SubGroups() {
							var ports adaptive.Ports
							for _, p := range h.Next(s, d) {
								if chance(70) || sub == 0 {
									ports.Add(p)
								}
							}
							if wild && chance(4) {
								ports.Add(uint8(1 + random.IntN(n.NumPorts()+1)))
							}
							if wild && chance(1) {
								ports = adaptive.Ports{}
							}
							groups.Set(int(e.Group), sub, ports)
						}
					}
					if wild && (chance(1) || alike && chance(8)) {
						e.Port = uint8(random.IntN(n.NumPorts() + 2))
					}
					t.Set(dest.LID, e)
					last = e
				}
			}
			a.Tables = append(a.Tables, t)
		}
		r.SetAdaptive(s, a)
	}
	if !r.HasChoices() {
		randomChoices(random, r, h, wild)
	}
}

// randomLanes gives r service levels and virtual lanes, or one of them, or none.
func randomLanes(random *rand.Rand, r *routes.Routes) {
	g := r.Graph()
	if random.IntN(3) == 0 {
		for t := range g.Terminals() {
			if random.IntN(2) == 0 {
				lids := g.LIDs(0)
				r.SetSL([]int{t}, lids[:random.IntN(len(lids))], uint8(random.IntN(4)))
			}
		}
		if random.IntN(2) == 0 {
			r.SL2VL = nil
		}
	}
	if random.IntN(3) > 0 {
		return
	}
	r.SL2VL = routes.NewSL2VL(g)
	for s, n := range g.Switches() {
		for in := range n.NumPorts() + 1 {
			for out := 1; out <= n.NumPorts(); out++ {
				var vls [16]uint8
				for sl := range vls {
					vls[sl] = uint8(sl % 2)
					if random.IntN(10) == 0 {
						vls[sl] = uint8(random.IntN(3))
					}
					if random.IntN(300) == 0 {
						vls[sl] = 15
					}
				}
				r.SL2VL.Set(s, uint8(in), uint8(out), vls)
			}
		}
	}
}

// TestChoicesAgree compares verdicts with the verdicts of the checker, on 1,000 tables.
func TestChoicesAgree(t *testing.T) {
	nets := []string{
		"ring:n=3,hosts=1", "ring:n=4,hosts=1", "random:n=5,degree=2,hosts=1,seed=2", "random:n=6,degree=3,hosts=1,seed=3", "mesh:dims=2/2,hosts=1",
		"mesh:dims=2/3,hosts=1", "pgft:m=2/2,w=1/2,p=1/2", "pgft:m=2/3,w=1/2,p=1/1", "hyperx:dims=3,hosts=2", "torus:dims=3,hosts=1,links=2",
		"pgft:m=2/3,w=1/2,p=1/1,remove_links=1,seed=2", "mesh:dims=2/2,hosts=2", "ring:n=3,hosts=3",
	}
	tables := 1000
	if testing.Short() {
		tables = 150
	}
	random := rand.New(rand.NewPCG(3, 1))
	seen := map[string]int{}
	for i := range tables {
		net := nets[i%len(nets)]
		g := routingtest.Graph(t, net, graph.BuildOptions{Workers: 1 + i%2})
		name := []string{"updn", "minhop"}[random.IntN(2)]
		r := compute(t, g, name, engines.Options{})
		h, err := graph.AllHops(t.Context(), g)
		if name == "updn" && err == nil && random.IntN(2) == 0 {
			h, err = graph.UpDown(t.Context(), g, graph.RanksFrom(g, []int{0}))
		}
		if err != nil {
			t.Fatal(err)
		}
		randomChoices(random, r, h, random.IntN(2) == 0)
		randomLanes(random, r)
		v := routingtest.Verified(t, r, verify.Options{})
		if got, want := words(v), newChecker(r).verdict(); got != want {
			t.Fatalf("table %d on %s:\n%s, want\n%s", i, net, got, want)
		}
		for _, b := range v.Broken {
			if b.Why == "" {
				t.Fatalf("table %d on %s: pair %s to LID %d is broken without a reason", i, net, b.From.Name(), b.LID)
			}
		}
		if len(v.Cycle) > 0 && slices.ContainsFunc(v.Cycle, func(c verify.CycleChannel) bool { return c.LID == 0 }) {
			t.Fatalf("table %d on %s: a link of the credit loop has no LID:\n%s", i, net, verify.FormatCycle(v.Cycle))
		}
		seen[fmt.Sprintf("acyclic %t, reached %t, loops %t", v.Acyclic, v.Unreachable == 0, v.Loops > 0)]++
	}
	t.Logf("%v", seen)
	if len(seen) < 5 {
		t.Errorf("the tables have verdicts of few kinds: %v", seen)
	}
}

// TestLanesUsed: a verdict counts the lanes that paths use, not all up to the highest, those of links to
// end ports included.
func TestLanesUsed(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=4,hosts=2", graph.BuildOptions{})
	a, near := g.DestsOf(0)[1].LID, g.DestsOf(0)[2].LID
	far := g.DestsOf(2)[1].LID
	for _, x := range []struct {
		to   mad.LID
		sl   uint8
		want int
	}{{far, 0, 1}, {far, 3, 2}, {near, 5, 2}, {a, 6, 1}} {
		r := compute(t, g, "updn", engines.Options{})
		if err := r.SetSL([]int{g.TerminalByLID(a)}, []mad.LID{x.to}, x.sl); err != nil {
			t.Fatal(err)
		}
		r.SL2VL = routes.NewSL2VL(g)
		if v := routingtest.Verified(t, r, verify.Options{}); v.Lanes != x.want {
			t.Errorf("SL %d from LID %d to LID %d: %d lanes, want %d", x.sl, a, x.to, v.Lanes, x.want)
		}
	}
}

// TestChoicesInjected: credit loops and loops that only choices have are found, in a fat tree
// whose tables have none.
func TestChoicesInjected(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	at := func(name string) int { return routingtest.SwitchNamed(t, g, name) }
	portTo := func(a, b string) uint8 {
		for _, n := range g.Neighbours(at(a)) {
			if int(n.To) == at(b) {
				return n.Ports[0]
			}
		}
		t.Fatalf("%s has no link to %s", a, b)
		return 0
	}
	lidOn := func(name string) mad.LID {
		for _, d := range g.DestsOf(at(name)) {
			if d.Out > 0 {
				return d.LID
			}
		}
		return 0
	}
	for _, x := range []struct {
		name string
		do   func(r *routes.Routes)
		want string
	}{
		{"intact", func(*routes.Routes) {}, "ok"},
		{"a choice less", func(r *routes.Routes) {
			r.SetChoices(at("leaf-1"), []mad.LID{lidOn("leaf-2")}, adaptive.PortSet(portTo("leaf-1", "spine-1"), portTo("leaf-1", "spine-2")))
		}, "ok"},
		{"down and up again", func(r *routes.Routes) {
			// leaf-2 gets packets for leaf-3 by way of spine-1, and leaf-1 gets some by way of
			// spine-2: each is passed on by the other spine.
			for _, y := range [][4]string{{"spine-1", "leaf-2", "spine-2", "leaf-3"}, {"spine-2", "leaf-1", "spine-1", "leaf-4"}} {
				lid := lidOn(y[3])
				r.SetChoices(at(y[0]), []mad.LID{lid}, adaptive.PortSet(portTo(y[0], y[1]), portTo(y[0], y[3])))
				r.SetChoices(at(y[1]), []mad.LID{lid}, adaptive.PortSet(portTo(y[1], y[2])))
			}
		}, "credit loop"},
		{"down and up again, in one direction", func(r *routes.Routes) {
			lid := lidOn("leaf-3")
			r.SetChoices(at("spine-1"), []mad.LID{lid}, adaptive.PortSet(portTo("spine-1", "leaf-2"), portTo("spine-1", "leaf-3")))
			r.SetChoices(at("leaf-2"), []mad.LID{lid}, adaptive.PortSet(portTo("leaf-2", "spine-2")))
		}, "ok"},
		{"back", func(r *routes.Routes) {
			r.SetChoices(at("spine-1"), []mad.LID{lidOn("leaf-3")}, adaptive.PortSet(portTo("spine-1", "leaf-1"), portTo("spine-1", "leaf-3")))
		}, "loops: may loop: leaf-1 > spine-1 > leaf-1"},
		{"to a host", func(r *routes.Routes) {
			r.SetChoices(at("leaf-1"), []mad.LID{lidOn("leaf-3")}, adaptive.PortSet(1, portTo("leaf-1", "spine-1")))
		}, `unreachable: "leaf-1" (0x0002c90300100000) may send LID 21 to port 1 of "node-0001 HCA-1" (0x0002c90310000000), which has another LID`},
	} {
		r := compute(t, g, "updn", engines.Options{Adaptive: true})
		x.do(r)
		v := routingtest.Verified(t, r, verify.Options{})
		got := "ok"
		switch {
		case v.Loops > 0:
			got = "loops: " + v.Broken[0].Why
		case v.Unreachable > 0:
			got = "unreachable: " + v.Broken[0].Why
		case !v.Acyclic:
			got = "credit loop"
		case !v.OK():
			got = "not ok"
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
		if v := routingtest.Verified(t, r.StaticPart(), verify.Options{}); x.want == "credit loop" && !v.OK() {
			t.Errorf("%s: the static ports are not ok: %s", x.name, words(v))
		}
	}
}

func TestAdaptiveState(t *testing.T) {
	g := routingtest.Graph(t, "fattree", graph.BuildOptions{})
	all := compute(t, g, "updn", engines.Options{Adaptive: true})
	some := all.Clone()
	some.SetAdaptive(0, nil)
	off := all.StaticPart()
	off.SetAdaptive(0, nil)
	unread := all.Clone()
	unread.SetAdaptive(3, &adaptive.Switch{Unknown: "several private LFTs are in use"})
	for _, x := range []struct {
		r    *routes.Routes
		o    verify.Options
		want string
	}{
		{all, verify.Options{}, "on ok true, "},
		{some, verify.Options{}, "mixed ok true, adaptive routing is mixed: 11 switches route adaptively, 1 statically"},
		{off, verify.Options{}, "off ok true, "},
		{all.StaticPart(), verify.Options{}, " ok true, adaptive routing not determined"},
		{unread, verify.Options{}, "unknown ok false, adaptive routing is unknown, and so is the verdict: " + g.Switches()[3].Label() + ": several private LFTs are in use"},
		{all.StaticPart(), verify.Options{Adaptive: verify.AdaptiveOn}, "unknown ok false, adaptive routing: packets take other paths than those of the tables; the verdict is unknown"},
		{off, verify.Options{Adaptive: verify.AdaptiveMinimal}, " ok true, "},
	} {
		v := routingtest.Verified(t, x.r, x.o)
		notes := v.Notes[1:] // after that on LIDs
		if got := fmt.Sprintf("%s ok %t, %s", v.Adaptive.Word(), v.OK(), strings.Join(notes, "; ")); got != x.want {
			t.Errorf("%s, want %s", got, x.want)
		}
	}
}
