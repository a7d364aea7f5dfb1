package verify

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// choiceWalk follows packets of a kind to one LID under all choices of switches. The choices make
// a graph: packets arrive if all its ends are the destination, and it has no loop; the longest
// path counts.
//
// Where the choice depends on no input port and all packets are on one virtual lane, a
// switch is visited once for each LID, and else each link and lane by which packets come.
//
// Time: O(C) for each LID, or O(C*V*P), P ports of a switch.
type choiceWalk struct {
	r        *routes.Routes
	g        *graph.Graph
	kind     PacketKind
	switches []*adaptive.Switch // nil: static
	down     []func(port uint8) bool
	lanes    bool    // a vertex is a link and a lane; else a switch
	vls      int     // of the dependency graph
	first    []int32 // by switch: its first word in masks; and the end

	lid mad.LID
	dst int32 // terminal
	now int32 // number of the present LID
	// By private LFT, then switch: what it does with packets of the kind.
	hops  [][]hop
	masks [][]uint64 // by private LFT; a bit for each channel out of a switch

	state []int32 // by switch, or by vertex: a state of Walk, or the links of the longest path
	seen  []int32 // switches or vertices whose state is known
	stack []choiceFrame
}

// hop is what a switch does with packets to a LID.
type hop struct {
	lid     int32 // number of the LID that it is for
	arrives bool  // some packets reach the destination
	lost    bool  // some packets do not get further
}

// choiceFrame is a switch on the path that is followed now.
type choiceFrame struct {
	node   int32 // switch or vertex; -1: where packets come in from an end port
	at     int32 // switch
	in     uint8
	plft   uint8
	word   int32  // next of the mask
	left   uint64 // of the present word
	result int32  // worst of the choices so far, or the longest path
}

// newChoiceWalk makes a choiceWalk for r, whose dependency graph has vls virtual lanes.
func newChoiceWalk(r *routes.Routes, kind PacketKind, vls int) *choiceWalk {
	g := r.Graph()
	x := &choiceWalk{r: r, g: g, kind: kind, switches: routes.ActiveSwitches(r), vls: vls, lanes: kind.PerPort || r.SL2VL != nil || vls > 1}
	x.down = make([]func(port uint8) bool, len(g.Switches()))
	plfts := 1
	words := int32(0)
	for s := range g.Switches() {
		x.down[s] = routes.Down(g, s)
		if a := x.switches[s]; a != nil {
			plfts = max(plfts, len(a.Tables))
			for _, row := range a.Private {
				plfts = max(plfts, int(row[kind.SL])+1)
			}
		}
		x.first = append(x.first, words)
		words += (g.FirstChannel(s+1) - g.FirstChannel(s) + 63) / 64
	}
	x.first = append(x.first, words)
	x.hops, x.masks = make([][]hop, plfts), make([][]uint64, plfts)
	n := len(g.Switches())
	if x.lanes {
		n = len(g.Channels()) * vls
	}
	x.state = slices.Repeat([]int32{Unknown}, n)
	return x
}

// Begin forgets the last LID.
func (x *choiceWalk) Begin(lid mad.LID) {
	x.lid, x.dst = lid, int32(x.g.TerminalByLID(lid))
	x.now++
	for _, i := range x.seen {
		x.state[i] = Unknown
	}
	x.seen = x.seen[:0]
}

// hop is what switch s does with packets that follow a private LFT.
func (x *choiceWalk) hop(s int32, plft uint8) *hop {
	if x.hops[plft] == nil {
		x.hops[plft] = make([]hop, len(x.g.Switches()))
		x.masks[plft] = make([]uint64, x.first[len(x.g.Switches())])
	}
	h := &x.hops[plft][s]
	if h.lid == x.now {
		return h
	}
	*h = hop{lid: x.now}
	mask := x.mask(s, plft)
	clear(mask)
	ports := x.ports(s, plft)
	h.lost = ports.Empty()
	for p := range ports.All() {
		switch target := x.g.Target(s, p); {
		case target.IsChannel():
			bit := target.Channel() - x.g.FirstChannel(int(s))
			mask[bit/64] |= 1 << (bit % 64)
		case target == graph.ToTerminal(x.dst):
			h.arrives = true
		default:
			h.lost = true
		}
	}
	return h
}

// ports are the ports that switch s may choose.
func (x *choiceWalk) ports(s int32, plft uint8) adaptive.Ports {
	a := x.switches[s]
	if a == nil {
		return adaptive.Single(x.r.Entry(s, x.lid)).Ports
	}
	return a.PortsOf(plft, x.kind.Packet(0), x.lid, x.down[s])
}

// mask has a bit for each channel out of switch s that it may choose.
func (x *choiceWalk) mask(s int32, plft uint8) []uint64 {
	return x.masks[plft][x.first[s]:x.first[s+1]]
}

// plft is the private LFT of packets that come in by a port.
func (x *choiceWalk) plft(s int32, in uint8) uint8 {
	if a := x.switches[s]; a != nil {
		return a.PLFT(in, x.kind.SL)
	}
	return 0
}

// From follows packets that come into switch s by port in, adds the dependencies of all
// their paths to d, and returns the worst that may become of them: Looping, Misrouted, or
// the links of the longest path.
func (x *choiceWalk) From(d *DependencyGraph, s int32, in uint8) int32 {
	if !x.lanes && x.state[s] != Unknown {
		return x.state[s]
	}
	x.push(d, s, s, in)
	if x.lanes {
		x.stack[0].node = -1
	}
	for {
		f := &x.stack[len(x.stack)-1]
		if f.left == 0 {
			if mask := x.mask(f.at, f.plft); int(f.word) < len(mask) {
				f.left = mask[f.word]
				f.word++
				continue
			}
			result := f.result
			x.settle(f.node, result)
			if x.stack = x.stack[:len(x.stack)-1]; len(x.stack) == 0 {
				return result
			}
			x.stack[len(x.stack)-1].add(result, 1)
			continue
		}
		bit := int32(bits.TrailingZeros64(f.left))
		f.left &= f.left - 1
		c := x.g.FirstChannel(int(f.at)) + (f.word-1)*64 + bit
		to := x.g.ChannelTo(c)
		node := to
		if x.lanes {
			ch := &x.g.Channels()[c]
			vl := x.r.SL2VL.VL(int(f.at), f.in, ch.Port, x.kind.SL)
			if vl >= mad.DropVL {
				if x.kind.Expected {
					f.add(misrouted, 0)
				}
				continue
			}
			node = d.Vertex(c, vl)
			d.Use(node)
			if x.kind.Expected {
				d.UseLane(vl)
			}
			if f.node >= 0 {
				d.Add(f.node, node)
			}
			in = ch.PeerPort
		} else {
			d.Use(c)
			x.hop(to, x.plft(to, 0))
			d.AddAll(c, x.mask(to, x.plft(to, 0)))
		}
		switch state := x.state[node]; state {
		case Unknown:
			x.push(d, node, to, in)
		case onStack:
			f.add(Looping, 0)
		default:
			f.add(state, 1)
		}
	}
}

// push goes on at a switch.
func (x *choiceWalk) push(d *DependencyGraph, node, at int32, in uint8) {
	f := choiceFrame{node: node, at: at, in: in, plft: x.plft(at, in), result: notYet}
	h := x.hop(at, f.plft)
	switch {
	case h.lost:
		f.result = misrouted
	case h.arrives:
		f.result = 0
	}
	if out := x.g.Terminals()[x.dst].Out; x.lanes && h.arrives && out > 0 && x.kind.Expected {
		if vl := x.r.SL2VL.VL(int(at), in, out, x.kind.SL); vl < mad.DropVL {
			d.UseLane(vl)
		}
	}
	x.stack = append(x.stack, f)
	if !x.lanes || len(x.stack) > 1 {
		x.state[node] = onStack
		x.seen = append(x.seen, node)
	}
}

// notYet is the result of a switch before its first choice.
const notYet = onStack - 1

// settle notes the result of a switch or vertex.
func (x *choiceWalk) settle(node, result int32) {
	if node >= 0 {
		x.state[node] = result
	}
}

// add adds the state of a choice, which is so many links away.
func (f *choiceFrame) add(state, links int32) {
	switch {
	case state >= 0:
		state += links
	}
	f.result = worseHops(f.result, state)
}

// noPacket is the state of packets that do not exist: of a service level that no path has, and
// that SL2VL drops.
const noPacket = notYet

// worseHops is the worse of two states of packets; of two that arrive, the longer path.
func worseHops(a, b int32) int32 {
	switch {
	case a == notYet:
		return b
	case b == notYet:
		return a
	case a == Looping || b == Looping:
		return Looping
	case a == misrouted || b == misrouted:
		return misrouted
	}
	return max(a, b)
}

// Explain is the reason why packets to the present LID that come into switch s by port in may
// not arrive; "": all arrive. It names a switch on a path with fewest links, or a loop.
func (x *choiceWalk) Explain(s int32, in uint8) string {
	type visit struct {
		at int32
		in uint8
	}
	key := func(v visit) visit {
		if !x.lanes {
			v.in = 0
		}
		return v
	}
	queue := []visit{{s, in}}
	next := map[visit][]visit{}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		if _, known := next[key(v)]; known {
			continue
		}
		if why := x.lostAt(v.at, v.in); why != "" {
			return why
		}
		list := []visit{}
		for c := range x.channels(v.at, v.in) {
			ch := &x.g.Channels()[c]
			if x.r.SL2VL.VL(int(v.at), v.in, ch.Port, x.kind.SL) >= mad.DropVL {
				continue
			}
			list = append(list, visit{ch.To, ch.PeerPort})
		}
		next[key(v)] = list
		queue = append(queue, list...)
	}
	// No end of a path is wrong, so it loops: a walk that always takes the first choice
	// from which a loop is reached meets itself.
	state := map[visit]int{} // 1: on the path, 2: done without a loop
	var path []visit
	var search func(v visit) []visit
	search = func(v visit) []visit {
		switch state[key(v)] {
		case 1:
			for i := range path {
				if key(path[i]) == key(v) {
					return path[i:]
				}
			}
		case 2:
			return nil
		}
		state[key(v)] = 1
		path = append(path, v)
		for _, w := range next[key(v)] {
			if loop := search(w); loop != nil {
				return loop
			}
		}
		path = path[:len(path)-1]
		state[key(v)] = 2
		return nil
	}
	loop := search(visit{s, in})
	if loop == nil {
		return ""
	}
	names := make([]string, 0, len(loop)+1)
	for _, v := range append(loop, loop[0]) {
		names = append(names, x.g.Switches()[v.at].Name())
	}
	return "may loop: " + strings.Join(names, " > ")
}

// channels are the channels that packets which come into a switch by a port may take.
func (x *choiceWalk) channels(s int32, in uint8) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for p := range x.ports(s, x.plft(s, in)).All() {
			if target := x.g.Target(s, p); target.IsChannel() && !yield(target.Channel()) {
				return
			}
		}
	}
}

// lostAt is the reason why switch s may lose packets that come in by a port; "": it does not.
func (x *choiceWalk) lostAt(s int32, in uint8) string {
	n := x.g.Switches()[s]
	plft := x.plft(s, in)
	ports := x.ports(s, plft)
	if ports.Empty() {
		a := x.switches[s]
		if a == nil || a.Table(plft) == nil {
			return fmt.Sprintf("%s drops LID %d", n.Label(), x.lid)
		}
		p := x.kind.Packet(in)
		p.LID = x.lid
		c := a.Choose(p, x.down[s])
		switch {
		case !c.Adaptive && !c.Hashed:
			return fmt.Sprintf("%s drops LID %d", n.Label(), x.lid)
		case a.Table(plft).Groups.All(int(c.Group)).Empty():
			return fmt.Sprintf("%s drops LID %d: its port group %d is empty", n.Label(), x.lid, c.Group)
		}
		return fmt.Sprintf("%s drops LID %d: no port of its group %d has a link", n.Label(), x.lid, c.Group)
	}
	for p := range ports.All() {
		switch target := x.g.Target(s, p); {
		case target.IsChannel():
			if vl := x.r.SL2VL.VL(int(s), in, p, x.kind.SL); vl >= mad.DropVL && x.kind.Expected {
				return fmt.Sprintf("%s drops SL %d from port %d to port %d", n.Label(), x.kind.SL, in, p)
			}
		case target == graph.ToTerminal(x.dst):
		case target.IsTerminal():
			return fmt.Sprintf("%s may send LID %d to %s, which has another LID", n.Label(), x.lid, x.g.Terminals()[target.Terminal()].Port.Label())
		case int(p) > n.NumPorts():
			return fmt.Sprintf("%s may send LID %d to port %d, which does not exist", n.Label(), x.lid, p)
		default:
			return fmt.Sprintf("%s may send LID %d to port %d, which has no link", n.Label(), x.lid, p)
		}
	}
	return ""
}
