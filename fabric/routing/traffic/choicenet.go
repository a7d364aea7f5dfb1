package traffic

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// choiceNet has the paths that switches may choose for packets of reliable connections, the
// transport that adaptive routing is for. The choice depends on the private LFT, so a vertex
// is a switch and a private LFT.
type choiceNet struct {
	r        *routes.Routes
	g        *graph.Graph
	capacity *graph.Capacity    // in which loads are
	switches []*adaptive.Switch // nil: static
	plfts    int32              // vertices of each switch
	sources  []int32            // terminals that send, on switches
	sl       uint8              // of all paths where r has no service levels
	levels   [16]*levelNet      // by service level; nil: no path has it
}

// levelNet are the paths of a service level.
type levelNet struct {
	kind verify.PacketKind
	of   []*classNet // by LID; nil: not wanted

	mu    []sync.Mutex // by switch
	known []map[adaptive.Ports][]hop
}

// classNet are the paths to the LIDs of a class.
type classNet struct {
	lid   mad.LID // the first of the class
	sl    uint8
	safe  []uint64 // by vertex, a bit each: all choices of its packets arrive
	order []place  // the safe vertices, each before the vertices that it sends to
	lossy bool     // some vertices are not safe
}

// hop is a choice: a link, and where packets on it come to. noHop: they arrive.
type hop struct{ channel, to int32 }

var noHop = hop{-1, -1}

// newChoiceNet finds the paths from terminals to the LIDs that are wanted, by the service
// levels of r or, where it has none, sl.
func newChoiceNet(ctx context.Context, r *routes.Routes, sources []int32, wanted []bool, sl uint8) (*choiceNet, error) {
	g := r.Graph()
	x := &choiceNet{r: r, g: g, capacity: g.Capacity(), switches: routes.ActiveSwitches(r), plfts: 1, sources: sources, sl: sl}
	for _, a := range x.switches {
		if a == nil {
			continue
		}
		if a.Private != nil {
			x.plfts = max(x.plfts, int32(len(a.Tables))+1) // private LFTs without a table count as one
		}
	}
	used := uint16(1) << sl
	if r.SL != nil {
		used = r.SL.Used()
	}
	for sl := range uint8(16) {
		if used>>sl&1 == 0 {
			continue
		}
		if err := x.addLevel(ctx, sl, wanted); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// addLevel finds the paths of a service level.
func (x *choiceNet) addLevel(ctx context.Context, sl uint8, wanted []bool) error {
	g := x.g
	l := &levelNet{
		kind: verify.PacketKind{SL: sl, SLs: 1 << sl, Transport: adaptive.RC}, of: make([]*classNet, len(wanted)),
		mu: make([]sync.Mutex, len(g.Switches())), known: make([]map[adaptive.Ports][]hop, len(g.Switches())),
	}
	classes, err := verify.ChoiceClasses(ctx, x.r, l.kind, wanted)
	if err != nil {
		return err
	}
	byHome := make([][]int, len(g.Switches()))
	for i, lids := range classes {
		if home := g.Terminals()[g.TerminalByLID(lids[0])].Switch; home >= 0 {
			byHome[home] = append(byHome[home], i)
		}
	}
	nets := make([]*classNet, len(classes))
	walks := make([]*classWalk, g.Workers())
	err = graph.Each(ctx, g.Workers(), len(byHome), func(worker, home int) {
		if walks[worker] == nil {
			walks[worker] = &classWalk{x: x, l: l, state: make([]int8, x.vertices())}
		}
		walks[worker].home(byHome[home], classes, nets)
	})
	for i, lids := range classes {
		for _, lid := range lids {
			l.of[lid] = nets[i]
		}
	}
	x.levels[sl] = l
	return err
}

// vertex is where packets of a service level are that come into switch s by a port.
func (x *choiceNet) vertex(s int32, in, sl uint8) int32 {
	v := s * x.plfts
	if a := x.switches[s]; a != nil {
		v += min(int32(a.PLFT(in, sl)), x.plfts-1)
	}
	return v
}

// vertices is how many there are.
func (x *choiceNet) vertices() int { return int(x.plfts) * len(x.g.Switches()) }

// alike reports whether packets of two terminals of a switch have equal choices.
func (x *choiceNet) alike(t, u int32) bool {
	if x.r.SL != nil && !x.r.SL.SameFrom(int(t), int(u)) {
		return false
	}
	for sl, l := range x.levels {
		if l != nil && x.entry(t, uint8(sl)) != x.entry(u, uint8(sl)) {
			return false
		}
	}
	return true
}

// level is the service level of packets of a terminal to lid.
func (x *choiceNet) level(terminal int32, lid mad.LID) uint8 {
	if x.r.SL == nil {
		return x.sl
	}
	return x.r.SL.Of(int(terminal), lid) & 15
}

// entry is the vertex at which packets of a terminal on a switch begin.
func (x *choiceNet) entry(terminal int32, sl uint8) int32 {
	t := &x.g.Terminals()[terminal]
	return x.vertex(int32(t.Switch), t.Out, sl)
}

// classWalk finds the paths of classes: the memory of a worker.
type classWalk struct {
	x     *choiceNet
	l     *levelNet
	state []int8 // by vertex
	c     *classNet
}

// States of a vertex of a classWalk.
const (
	vertexUnknown int8 = iota
	vertexOpen         // on the path that is followed now
	vertexSafe
	vertexLost // some packets do not arrive, or loop
)

// home finds the paths to classes of LIDs on one switch. Classes with equal choices wherever
// packets pass have one classNet: other switches may have entries that differ.
func (w *classWalk) home(list []int, classes [][]mad.LID, nets []*classNet) {
	var known []*classNet
	for _, i := range list {
		lid := classes[i][0]
		at := slices.IndexFunc(known, func(c *classNet) bool { return w.same(c, lid) })
		if at < 0 {
			at = len(known)
			known = append(known, w.class(lid))
		}
		nets[i] = known[at]
	}
}

// same reports whether packets to lid have the choices of c.
func (w *classWalk) same(c *classNet, lid mad.LID) bool {
	if c.lossy {
		return false
	}
	x, k := w.x, &w.l.kind
	w.c = &classNet{lid: lid}
	return !slices.ContainsFunc(c.order, func(p place) bool {
		s := p.vertex / x.plfts
		if a := x.switches[s]; a != nil && a.Enabled && a.SLs.Has(k.SL) && !a.Static.Has(k.Transport) {
			if t := a.Table(uint8(p.vertex % x.plfts)); t != nil {
				e, f := t.Entry(c.lid), t.Entry(lid)
				if e.State.Adaptive() && f.State.Adaptive() && e.Group == f.Group && !slices.Contains(p.hops, noHop) {
					return false
				}
			}
		}
		hops, lost := w.hops(p.vertex)
		return lost || !slices.Equal(hops, p.hops)
	})
}

// class finds the paths to the LIDs of the class of lid.
func (w *classWalk) class(lid mad.LID) *classNet {
	clear(w.state)
	w.c = &classNet{lid: lid, sl: w.l.kind.SL, safe: make([]uint64, (len(w.state)+63)/64)}
	for _, t := range w.x.sources {
		w.follow(w.x.entry(t, w.l.kind.SL))
	}
	slices.Reverse(w.c.order)
	return w.c
}

// follow follows packets from a vertex on, and returns its state.
func (w *classWalk) follow(v int32) int8 {
	if w.state[v] != vertexUnknown {
		return w.state[v]
	}
	w.state[v] = vertexOpen
	state := vertexSafe
	hops, lost := w.hops(v)
	if lost {
		state = vertexLost
	}
	for _, h := range hops {
		if h != noHop && w.follow(h.to) != vertexSafe {
			state = vertexLost
		}
	}
	w.state[v] = state
	w.c.lossy = w.c.lossy || state == vertexLost
	if state == vertexSafe {
		w.c.safe[v/64] |= 1 << (v % 64)
		w.c.order = append(w.c.order, place{v, hops})
	}
	return state
}

// hops are the choices at a vertex; lost: some packets do not get further.
func (w *classWalk) hops(v int32) (list []hop, lost bool) {
	x, s := w.x, v/w.x.plfts
	var ports adaptive.Ports
	if a := x.switches[s]; a == nil {
		ports = adaptive.Single(x.r.Entry(s, w.c.lid)).Ports
	} else {
		ports = a.PortsOf(uint8(v%x.plfts), w.l.kind.Packet(0), w.c.lid, routes.Down(x.g, int(s)))
	}
	if ports.Empty() {
		return nil, true
	}
	w.l.mu[s].Lock()
	list = w.l.known[s][ports]
	w.l.mu[s].Unlock()
	if list != nil {
		return list, false
	}
	arrives := false
	for p := range ports.All() {
		target := x.g.Target(s, p)
		switch {
		case target.IsChannel():
			c := target.Channel()
			list = append(list, hop{c, x.vertex(x.g.ChannelTo(c), x.g.Channels()[c].PeerPort, w.l.kind.SL)})
		case target == graph.ToTerminal(int32(x.g.TerminalByLID(w.c.lid))):
			list = append(list, noHop)
			arrives = true
		default:
			return list, true
		}
	}
	if !arrives { // else for this LID alone
		w.l.mu[s].Lock()
		if w.l.known[s] == nil {
			w.l.known[s] = map[adaptive.Ports][]hop{}
		}
		w.l.known[s][ports] = list
		w.l.mu[s].Unlock()
	}
	return list, false
}

// demand is the traffic to the LIDs of a class. Packets to all of them may take equal paths, so
// they are split together.
type demand struct {
	class  *classNet
	from   []source
	active []place // vertices that packets may pass, each before the vertices that it sends to
}

// place is a vertex with its choices.
type place struct {
	vertex int32
	hops   []hop
}

// source is the traffic that begins at a vertex.
type source struct {
	vertex int32
	amount float64
}

// demands collect flows.
type demands struct {
	x    *choiceNet
	of   map[*classNet]map[int32]float64
	lost int64 // flows that some choice loses
}

func newDemands(x *choiceNet) *demands { return &demands{x: x, of: map[*classNet]map[int32]float64{}} }

// add adds n equal flows from a terminal to lid.
func (d *demands) add(terminal int32, lid mad.LID, n int64, traffic float64) {
	sl := d.x.level(terminal, lid)
	class, v := d.x.levels[sl].of[lid], d.x.entry(terminal, sl)
	if class.safe[v/64]>>(v%64)&1 == 0 {
		d.lost += n
		return
	}
	from := d.of[class]
	if from == nil {
		from = map[int32]float64{}
		d.of[class] = from
	}
	from[v] += float64(n) * traffic
}

// group are terminals whose packets have equal choices.
type group struct {
	first int32
	flows int64 // of all of them
}

// groups sorts terminals into groups; of is by terminal, -1 for others.
func (x *choiceNet) groups(terminals []int32, flows []int64) (groups []group, of []int) {
	of = make([]int, len(x.g.Terminals()))
	for t := range of {
		of[t] = -1
	}
	on := make([][]int, len(x.g.Switches())) // groups
	for _, t := range terminals {
		s := x.g.Terminals()[t].Switch
		at := slices.IndexFunc(on[s], func(i int) bool { return x.alike(groups[i].first, t) })
		if at < 0 {
			at = len(on[s])
			on[s] = append(on[s], len(groups))
			groups = append(groups, group{first: t})
		}
		of[t] = on[s][at]
		groups[of[t]].flows += flows[t]
	}
	return groups, of
}

// list are the demands, in an order that depends on the flows alone.
func (d *demands) list(ctx context.Context) ([]*demand, error) {
	var list []*demand
	for class, from := range d.of {
		one := &demand{class: class}
		for v, amount := range from {
			one.from = append(one.from, source{v, amount})
		}
		slices.SortFunc(one.from, func(a, b source) int { return cmp.Compare(a.vertex, b.vertex) })
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *demand) int {
		return cmp.Or(cmp.Compare(a.class.lid, b.class.lid), cmp.Compare(a.class.sl, b.class.sl))
	})
	reached := make([][]bool, d.x.g.Workers())
	return list, graph.Each(ctx, len(reached), len(list), func(worker, i int) {
		if reached[worker] == nil {
			reached[worker] = make([]bool, d.x.vertices())
		}
		list[i].activate(reached[worker])
	})
}

// activate finds the vertices that packets may pass. reached is by vertex, and false before and
// after.
func (d *demand) activate(reached []bool) {
	for _, from := range d.from {
		reached[from.vertex] = true
	}
	for _, p := range d.class.order {
		if !reached[p.vertex] {
			continue
		}
		reached[p.vertex] = false
		d.active = append(d.active, p)
		for _, h := range p.hops {
			if h != noHop {
				reached[h.to] = true
			}
		}
	}
}
