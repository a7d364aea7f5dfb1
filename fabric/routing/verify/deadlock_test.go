package verify_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// network is a simulation of packets with credits: each link has, for each virtual lane, a
// buffer of few packets at its end, first in, first out. A switch chooses the port of a packet
// when it arrives; the packet then waits until the buffer of the next link has space. Hosts
// take all packets.
type network struct {
	*checker
	random  *rand.Rand
	size    int         // of a buffer
	buffers [][]*parcel // by channel and virtual lane
	used    []int       // buffers that have had packets
	queues  [][]*parcel // by terminal: packets to send
}

// parcel is a packet.
type parcel struct {
	sl        uint8
	transport adaptive.Transport
	lid       mad.LID
	next      int // the buffer that it waits for; -1: it leaves the network
}

const simulatedLanes = 16

func newNetwork(c *checker, random *rand.Rand, size int) *network {
	return &network{
		checker: c, random: random, size: size,
		buffers: make([][]*parcel, len(c.g.Channels())*simulatedLanes), queues: make([][]*parcel, len(c.g.Terminals())),
	}
}

// send adds a packet from a terminal.
func (n *network) send(from int, lid mad.LID, sl uint8, transport adaptive.Transport) {
	t := &n.g.Terminals()[from]
	p := &parcel{sl: sl, transport: transport, lid: lid}
	n.choose(p, int32(t.Switch), t.Out)
	n.queues[from] = append(n.queues[from], p)
}

// choose chooses the port of a packet that comes into switch s.
func (n *network) choose(p *parcel, s int32, in uint8) {
	p.next = -1
	ports := n.mayTake(s, in, p.sl, p.transport, p.lid)
	if len(ports) == 0 {
		return
	}
	out := ports[n.random.IntN(len(ports))]
	target := n.g.Target(s, out)
	if !target.IsChannel() {
		return
	}
	vl := uint8(0)
	if n.r.SL2VL != nil {
		vl = n.r.SL2VL.VL(int(s), in, out, p.sl)
	}
	if vl < mad.DropVL {
		p.next = int(target.Channel())*simulatedLanes + int(vl)
	}
}

// advance moves the first packet of a queue, if it can.
func (n *network) advance(queue *[]*parcel) bool {
	p := (*queue)[0]
	if to := p.next; to >= 0 {
		if len(n.buffers[to]) == n.size {
			return false
		}
		if n.buffers[to] == nil {
			n.used = append(n.used, to)
		}
		n.buffers[to] = append(n.buffers[to], p)
		ch := n.g.Channels()[to/simulatedLanes]
		n.choose(p, ch.To, ch.PeerPort)
	}
	*queue = (*queue)[1:]
	return true
}

// deadlocks runs until no packet can move, and reports whether some are left.
func (n *network) deadlocks() bool {
	for {
		moved, left := false, false
		for range len(n.used) + len(n.queues) {
			i := n.random.IntN(len(n.used) + len(n.queues))
			queue := &n.queues[i%len(n.queues)]
			if i >= len(n.queues) {
				queue = &n.buffers[n.used[i-len(n.queues)]]
			}
			moved = len(*queue) > 0 && n.advance(queue) || moved
		}
		if moved {
			continue
		}
		// By chance no packet that can advance was tried: each is tried now.
		for i := range n.queues {
			if len(n.queues[i]) > 0 {
				left, moved = true, n.advance(&n.queues[i]) || moved
			}
		}
		for i := 0; i < len(n.used); i++ {
			if queue := &n.buffers[n.used[i]]; len(*queue) > 0 {
				left, moved = true, n.advance(queue) || moved
			}
		}
		if !moved {
			return left
		}
	}
}

// sendAtRandom adds packets of all terminals to others, of service levels that their paths
// may have.
func (n *network) sendAtRandom(each int) {
	terminals := n.g.Terminals()
	for from := range terminals {
		if terminals[from].Out == 0 {
			continue
		}
		for range each {
			to := n.random.IntN(len(terminals))
			if to == from || terminals[to].Out == 0 {
				continue
			}
			lid := terminals[to].LID + mad.LID(n.random.IntN(terminals[to].Count))
			sl := uint8(n.random.IntN(16))
			if n.r.SL != nil {
				sl = n.r.SL.Of(from, lid)
			}
			n.send(from, lid, sl, adaptive.RC+adaptive.Transport(n.random.IntN(4)))
		}
	}
}

// TestChoicesNeverDeadlock: in 10,000 runs with buffers of one to three packets, no traffic
// deadlocks by random tables that verify accepts; where it finds a credit loop, some does.
func TestChoicesNeverDeadlock(t *testing.T) {
	nets := []string{
		"ring:n=4,hosts=2", "random:n=6,degree=3,hosts=2,seed=3", "mesh:dims=2/3,hosts=2", "pgft:m=2/3,w=1/2,p=1/1", "torus:dims=3,hosts=2,links=2",
		"pgft:m=2/3,w=1/2,p=1/1,remove_links=1,seed=2", "mesh:dims=3/3,hosts=1", "hyperx:dims=2/3,hosts=2", "dragonfly:a=2,p=1,h=1",
	}
	runs, perTable := 10000, 10
	if testing.Short() {
		runs = 600
	}
	random := rand.New(rand.NewPCG(8, 1))
	accepted, looping, deadlocked := 0, 0, 0
	for i := 0; accepted*perTable < runs; i++ {
		net := nets[i%len(nets)]
		g := routingtest.Graph(t, net, graph.BuildOptions{Workers: 1})
		name := []string{"updn", "minhop"}[random.IntN(2)]
		r := compute(t, g, name, engines.Options{})
		h, err := graph.AllHops(t.Context(), g)
		if name == "updn" && err == nil {
			h, err = graph.UpDown(t.Context(), g, graph.RanksFrom(g, []int{0}))
		}
		if err != nil {
			t.Fatal(err)
		}
		randomChoices(random, r, h, random.IntN(4) == 0)
		randomLanes(random, r)
		v := routingtest.Verified(t, r, verify.Options{})
		c := newChecker(r)
		switch {
		case v.OK():
			accepted++
			for range perTable {
				n := newNetwork(c, random, 1+random.IntN(3))
				n.sendAtRandom(8)
				if n.deadlocks() {
					t.Fatalf("table %d on %s: traffic deadlocks, and the verdict is ok", i, net)
				}
			}
		case v.Unreachable == 0 && !v.Acyclic && looping < runs/perTable/4:
			looping++
			for range 200 {
				n := newNetwork(c, random, 1)
				n.sendAtRandom(12)
				if n.deadlocks() {
					deadlocked++
					break
				}
			}
		}
	}
	t.Logf("%d tables accepted, %d runs; traffic deadlocks by %d of %d with a credit loop", accepted, accepted*perTable, deadlocked, looping)
	if deadlocked*2 < looping || looping == 0 {
		t.Errorf("traffic deadlocks by %d of %d tables with a credit loop: the simulation proves little", deadlocked, looping)
	}
}

// clockwise gives all switches of a ring of n adaptive routing that set changes, with a group of
// one port, to the next switch, in its second sub-group. set also changes the entries of LIDs two
// switches ahead, which are for this group.
func clockwise(t *testing.T, g *graph.Graph, set func(a *adaptive.Switch, e *adaptive.Entry)) *routes.Routes {
	t.Helper()
	r := compute(t, g, "updn", engines.Options{})
	n := len(g.Switches())
	for s := range n {
		next := (s + 1) % n
		port := uint8(0)
		for _, to := range g.Neighbours(s) {
			if int(to.To) == next {
				port = to.Ports[0]
			}
		}
		groups := adaptive.NewGroups(2)
		groups.Set(1, 1, adaptive.PortSet(port))
		a := &adaptive.Switch{Enabled: true, SLs: adaptive.AllSLs}
		table := adaptive.NewTable(r.Top(), groups)
		for d := range n {
			for _, dest := range g.DestsOf(d) {
				e := adaptive.Entry{State: adaptive.Static, Port: r.Row(s).Port(dest.LID)}
				if d == (s+2)%n && dest.Out > 0 {
					e.Group = 1
					set(a, &e)
				}
				table.Set(dest.LID, e)
			}
		}
		a.Tables = append([]*adaptive.Table{table}, a.Tables...)
		for i := 1; i < len(a.Tables); i++ { // further private LFTs, without choices
			other := table.Clone()
			for lid := range other.Top() + 1 {
				e := other.Entry(lid)
				e.State, e.Group = adaptive.Static, 0
				other.Set(lid, e)
			}
			a.Tables[i] = other
		}
		r.SetAdaptive(s, a)
	}
	return r
}

// TestChoicesOfEachKind: a credit loop that only packets of one kind can close is found, and is
// gone without these; by its choices, traffic of this kind deadlocks.
func TestChoicesOfEachKind(t *testing.T) {
	g := routingtest.Graph(t, "ring:n=5,hosts=1", graph.BuildOptions{})
	hop := func(a *adaptive.Switch, e *adaptive.Entry) { e.State = adaptive.Free }
	with := func(change func(a *adaptive.Switch)) func(a *adaptive.Switch, e *adaptive.Entry) {
		return func(a *adaptive.Switch, e *adaptive.Entry) { hop(a, e); change(a) }
	}
	hbf := func(sls adaptive.SLs) func(a *adaptive.Switch, e *adaptive.Entry) {
		return func(a *adaptive.Switch, e *adaptive.Entry) {
			e.State, a.Enabled, a.HBF, a.HBFSLs = adaptive.HBF, false, true, sls
		}
	}
	static := func(down, recovers bool) func(a *adaptive.Switch, e *adaptive.Entry) {
		return func(a *adaptive.Switch, e *adaptive.Entry) {
			a.FastRecovery = recovers
			if down {
				e.Port = 40 // without a link
			}
		}
	}
	// Packets from hosts follow the first private LFT, or all packets do, or packets between switches.
	plft := func(host, between uint8) func(a *adaptive.Switch, e *adaptive.Entry) {
		return with(func(a *adaptive.Switch) {
			a.Tables = make([]*adaptive.Table, 1)
			a.Private = make([][16]uint8, 4)
			for in := range a.Private {
				for sl := range a.Private[in] {
					if a.Private[in][sl] = between; in == 1 {
						a.Private[in][sl] = host
					}
				}
			}
		})
	}
	// Packets of all service levels are on VL 1 where they go from one port of a switch to
	// another, and else on VL 0.
	lanes := func(from, to uint8) func(r *routes.Routes) {
		return func(r *routes.Routes) {
			r.SL2VL = routes.NewSL2VL(g)
			for s := range g.Switches() {
				for in := uint8(0); in < 4; in++ {
					for out := uint8(1); out < 4; out++ {
						var vls [16]uint8
						for sl := range vls {
							if in == from && out == to {
								vls[sl] = 1
							}
						}
						r.SL2VL.Set(s, in, out, vls)
					}
				}
			}
		}
	}
	var back, on uint8 // ports to the last and to the next switch, of switch 1
	for _, to := range g.Neighbours(1) {
		if to.To == 0 {
			back = to.Ports[0]
		} else {
			on = to.Ports[0]
		}
	}
	for _, x := range []struct {
		name string
		set  func(a *adaptive.Switch, e *adaptive.Entry)
		more func(r *routes.Routes)
		want string
	}{
		{"static entries", func(*adaptive.Switch, *adaptive.Entry) {}, nil, "ok"},
		{"the second sub-group", hop, nil, "credit loop"},
		{"SL 3 alone", with(func(a *adaptive.Switch) { a.SLs = 1 << 3 }), nil, "credit loop"},
		{"no SL", with(func(a *adaptive.Switch) { a.SLs = 0 }), nil, "ok"},
		{"UD alone", with(func(a *adaptive.Switch) { a.Static = adaptive.TransportSet(adaptive.RC, adaptive.UC, adaptive.DC) }), nil, "credit loop"},
		{"no transport", with(func(a *adaptive.Switch) {
			a.Static = adaptive.TransportSet(adaptive.RC, adaptive.UC, adaptive.UD, adaptive.DC)
		}), nil, "ok"},
		{"hashes", hbf(adaptive.AllSLs), nil, "credit loop"},
		{"hashes of SL 5", hbf(1 << 5), nil, "credit loop"},
		{"hashes of no SL", hbf(0), nil, "ok"},
		{"static port up, recovery", static(false, true), nil, "ok"},
		{"static port down", static(true, false), nil, "unreachable"},
		{"static port down, recovery", static(true, true), nil, "credit loop"},
		{"adaptive entries of no SL, recovery", with(func(a *adaptive.Switch) { a.SLs, a.FastRecovery = 0, true }), nil, "credit loop"},
		{"private LFT of packets from hosts", plft(0, 1), nil, "credit loop"},
		{"private LFT of packets between switches", plft(1, 0), nil, "ok"},
		{"VL 1 from switch to switch", hop, lanes(back, on), "ok"},
		{"VL 1 from hosts", hop, lanes(1, on), "ok"},
		{"VL 1 the other way", hop, lanes(on, back), "credit loop"},
	} {
		r := clockwise(t, g, x.set)
		if x.more != nil {
			x.more(r)
		}
		v := routingtest.Verified(t, r, verify.Options{})
		got := "ok"
		switch {
		case v.Unreachable > 0:
			got = "unreachable"
		case !v.Acyclic:
			got = "credit loop"
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s\n%s", x.name, got, x.want, verify.FormatCycle(v.Cycle))
		}
		if got, want := words(v), newChecker(r).verdict(); got != want {
			t.Errorf("%s: %s, checker: %s", x.name, got, want)
		}
		deadlocks := false
		random := rand.New(rand.NewPCG(1, 2))
		for range 3000 {
			n := newNetwork(newChecker(r), random, 1)
			n.sendAtRandom(8)
			if deadlocks = n.deadlocks(); deadlocks {
				break
			}
		}
		if want := x.want == "credit loop"; deadlocks != want {
			t.Errorf("%s: traffic deadlocks: %t, want %t", x.name, deadlocks, want)
		}
	}
}

// TestChoicesInjectedAtRandom: where switches get one choice more, the verdict agrees with the
// checker, and packets may wait over each step of a credit loop; without the choice there is no
// loop, and static ports make no loop.
func TestChoicesInjectedAtRandom(t *testing.T) {
	nets := []string{"pgft:m=2/3,w=1/2,p=1/1", "ring:n=5,hosts=1", "mesh:dims=2/3,hosts=1", "random:n=6,degree=3,hosts=1,seed=3", "fattree:k=4,levels=2"}
	tables := 600
	if testing.Short() {
		tables = 100
	}
	random := rand.New(rand.NewPCG(9, 1))
	found := map[string]int{}
	for i := range tables {
		net := nets[i%len(nets)]
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		r := compute(t, g, "updn", engines.Options{Adaptive: true})
		if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() {
			t.Fatalf("%s: the tables are not ok before", net)
		}
		static := r.StaticPart()
		for range 1 + random.IntN(2*len(g.Switches())) {
			s := random.IntN(len(g.Switches()))
			dest := g.Dests()[random.IntN(len(g.Dests()))]
			if dest.Out == 0 || g.Terminals()[dest.Terminal].Switch == s {
				continue
			}
			ports := r.Choice(s, adaptive.Packet{LID: dest.LID, Transport: adaptive.RC}).Ports
			first := g.FirstChannel(s)
			ports.Add(g.Channels()[first+int32(random.IntN(int(g.FirstChannel(s+1)-first)))].Port)
			if err := r.SetChoices(s, []mad.LID{dest.LID}, ports); err != nil {
				t.Fatal(err)
			}
		}
		if d := r.StaticPart().Diff(static); d.Entries > 0 {
			t.Fatalf("%s: %d static ports differ", net, d.Entries)
		}
		v, c := routingtest.Verified(t, r, verify.Options{}), newChecker(r)
		if got, want := words(v), c.verdict(); got != want {
			t.Fatalf("table %d on %s:\n%s, want\n%s", i, net, got, want)
		}
		for k, w := range v.Cycle {
			next := v.Cycle[(k+1)%len(v.Cycle)]
			edge := [2]link{{int32(g.SwitchOf(w.Port.Node())), uint8(w.Port.Num()), w.VL}, {int32(g.SwitchOf(next.Port.Node())), uint8(next.Port.Num()), next.VL}}
			if !c.edges[edge] {
				t.Errorf("table %d on %s: no packet waits on %s for %s", i, net, w.Port.Name(), next.Port.Name())
			}
		}
		found[fmt.Sprintf("acyclic %t, reached %t", v.Acyclic, v.Unreachable == 0)]++
	}
	t.Logf("%v", found)
	if len(found) < 3 {
		t.Errorf("verdicts of few kinds: %v", found)
	}
}
