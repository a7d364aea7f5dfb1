package verify

import (
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// vlWalk follows packets where service levels and virtual lanes matter. The lane of
// a packet depends on the port it comes in by (IBA 7.6.6), so pairs of a channel
// and a lane are visited once, not switches.
//
// Time: O(G + C*V) for each LID, G groups of terminals and V virtual lanes.
type vlWalk struct {
	state []pathState // by vertex of the CDG, for the present flow
	seen  []int32     // vertices whose state is not unknown
	stack []int32     // vertices of the path that is followed now
	bySL  [16][]int32 // groups by the SL of their packets to the present LID
}

// pathState is a state of a walk, or the number of links between switches on a path
// that arrives.
type pathState int32

func (s pathState) arrives() bool { return s >= 0 }

// vlFlow stands for the packets of one destination LID and service level: where two of them
// come in by one port, they take one channel and lane.
type vlFlow struct {
	dst   int32   // terminal
	ports []uint8 // by switch: the entry for the LID
	sl    uint8
}

// vlGroup are endpoints on one switch whose packets to each LID have equal service levels
// and, as the ports that they come in by have equal lanes, equal virtual lanes.
type vlGroup struct {
	first     int32 // terminal
	on        int32 // its switch
	terminals []int32
}

func newVLWalk(g *graph.Graph, vls int) *vlWalk {
	l := &vlWalk{state: make([]pathState, len(g.Channels())*vls)}
	for i := range l.state {
		l.state[i] = Unknown
	}
	return l
}

// forget forgets the paths of one flow.
func (l *vlWalk) forget() {
	for _, vertex := range l.seen {
		l.state[vertex] = Unknown
	}
	l.seen = l.seen[:0]
}

// vlGroups groups the endpoints.
func (v *verification) vlGroups(r *routes.Routes) []vlGroup {
	var groups []vlGroup
	switches := routes.ActiveSwitches(r)
	of := make([][]int, len(v.g.Switches())) // groups, by switch
	for i, is := range v.Is {
		t := &v.g.Terminals()[i]
		if !is || t.Switch < 0 {
			continue
		}
		at := slices.IndexFunc(of[t.Switch], func(x int) bool {
			o := groups[x].first
			in := v.g.Terminals()[o].Out
			return r.SL.SameFrom(int(o), i) && r.SL2VL.SameInto(t.Switch, in, t.Out) && samePrivate(switches[t.Switch], in, t.Out)
		})
		if at < 0 {
			of[t.Switch] = append(of[t.Switch], len(groups))
			groups = append(groups, vlGroup{int32(i), int32(t.Switch), []int32{int32(i)}})
			continue
		}
		x := &groups[of[t.Switch][at]]
		x.terminals = append(x.terminals, int32(i))
	}
	return groups
}

// followDirect is follow where all lanes of a path are the lane of its service level: the
// paths to a LID are one tree, and a link has the lanes of all service levels behind it.
// False: some packets loop, and the tree is not one.
func (v *verification) followDirect(f *findings, r *routes.Routes, groups []vlGroup, w *Walk, lid mad.LID) bool {
	t, ports := int32(v.g.TerminalByLID(lid)), w.Column(lid)
	for _, s := range v.Sources {
		w.From(s, ports, t)
	}
	if slices.ContainsFunc(w.Order, func(s int32) bool { return w.State[s] == Looping }) {
		w.Begin()
		return false
	}
	if f.levels == nil {
		f.levels, f.edges = make([]uint16, len(v.g.Switches())), newLaneEdges(v.g)
	}
	clear(f.levels)
	for i := range groups {
		x := &groups[i]
		if !x.sendsTo(t) {
			continue
		}
		level := uint16(1)
		if r.SL2VL != nil {
			level = 1 << (r.SL.Of(int(x.first), lid) & 15)
		}
		f.levels[x.on] |= level
	}
	for _, s := range slices.Backward(w.Order) {
		c := w.Via[s]
		if c < 0 {
			if w.State[s] == 0 && v.g.Terminals()[t].Out > 0 {
				f.graph.lanes |= f.levels[s]
			}
			continue
		}
		f.graph.lanes |= f.levels[s]
		to := v.g.ChannelTo(c)
		f.levels[to] |= f.levels[s]
		f.edges.used[c] |= f.levels[s]
		if next := w.Via[to]; next >= 0 {
			f.edges.lanes[f.edges.start[c]+next-v.g.FirstChannel(int(to))] |= f.levels[s]
		}
	}
	return true
}

// laneEdges are dependencies of packets that stay on their lane: a CDG takes an edge for
// each lane, this a bit.
type laneEdges struct {
	g     *graph.Graph
	start []int32  // by channel: its place in lanes
	lanes []uint16 // by channel, and by each that leads out of the switch it ends at
	used  []uint16 // by channel: the lanes that some path takes
}

func newLaneEdges(g *graph.Graph) *laneEdges {
	e := &laneEdges{g: g, start: make([]int32, len(g.Channels())), used: make([]uint16, len(g.Channels()))}
	size := int32(0)
	for c, ch := range g.Channels() {
		to := ch.To
		e.start[c] = size
		size += g.FirstChannel(int(to+1)) - g.FirstChannel(int(to))
	}
	e.lanes = make([]uint16, size)
	return e
}

// addTo adds the dependencies to d.
func (e *laneEdges) addTo(d *DependencyGraph) {
	for c, ch := range e.g.Channels() {
		to := ch.To
		for m := e.used[c]; m != 0; m &= m - 1 {
			d.Use(d.Vertex(int32(c), uint8(bits.TrailingZeros16(m))))
		}
		for next := e.g.FirstChannel(int(to)); next < e.g.FirstChannel(int(to+1)); next++ {
			for m := e.lanes[e.start[c]+next-e.g.FirstChannel(int(to))]; m != 0; m &= m - 1 {
				vl := uint8(bits.TrailingZeros16(m))
				d.Add(d.Vertex(int32(c), vl), d.Vertex(next, vl))
			}
		}
	}
}

// followVLs is follow and countPairs where lanes matter. All paths to a LID use the links of one
// tree, but lanes may differ by service level.
func (v *verification) followVLs(f *findings, r *routes.Routes, groups []vlGroup, w *Walk, lid mad.LID, whole bool) {
	if f.walk == nil {
		f.walk = newVLWalk(v.g, v.vls)
	}
	l := f.walk
	l.sortBySL(groups, r, lid)
	flow := vlFlow{dst: int32(v.g.TerminalByLID(lid)), ports: w.Column(lid)}
	for sl, list := range l.bySL {
		flow.sl = uint8(sl)
		for _, i := range list {
			x := &groups[i]
			if !x.sendsTo(flow.dst) {
				continue
			}
			state := pathState(noPacket)
			if v.sets == nil || v.sets.rows>>sl&1 != 0 {
				state = l.from(f.graph, r, &flow, x.on, v.g.Terminals()[x.first].Out)
			}
			if v.sets != nil && whole {
				state = pathState(worseHops(int32(state), v.sets.worst(r, int(i), lid)))
			}
			switch {
			case !whole, state == noPacket: // only the dependencies matter
			case state.arrives():
				v.countArrived(f, x, flow.dst, int(state))
			default:
				v.failGroup(f, r, x, lid, state == Looping)
			}
		}
		// From one channel and lane, another SL may go on by another lane.
		l.forget()
	}
	if whole && v.Detached > 0 {
		v.failDetached(f, lid)
	}
}

// sortBySL sorts the groups by the service level of their packets to lid.
func (l *vlWalk) sortBySL(groups []vlGroup, r *routes.Routes, lid mad.LID) {
	for sl := range l.bySL {
		l.bySL[sl] = l.bySL[sl][:0]
	}
	for i := range groups {
		sl := r.SL.Of(int(groups[i].first), lid) & 15
		l.bySL[sl] = append(l.bySL[sl], int32(i))
	}
}

// sendsTo reports whether x has an endpoint other than dst: none sends to itself.
func (x *vlGroup) sendsTo(dst int32) bool { return len(x.terminals) > 1 || x.first != dst }

// countArrived counts the pairs of the endpoints of x and dst, whose packets arrive
// after so many links between switches.
func (v *verification) countArrived(f *findings, x *vlGroup, dst int32, links int) {
	to := &v.g.Terminals()[dst]
	var fromCA, fromSwitch int64
	for _, i := range x.terminals {
		switch {
		case i == dst:
		case v.g.Terminals()[i].Out == 0:
			fromSwitch++
		default:
			fromCA++
		}
	}
	// A CA or router is one more link away than its switch, whose port 0 is inside.
	hops := links + min(1, int(to.Out))
	detour := v.detour(int(x.on), to.Switch, links)
	if fromSwitch > 0 {
		f.addPairs(fromSwitch, hops, detour)
	}
	if fromCA > 0 {
		f.addPairs(fromCA, 1+hops, detour)
	}
}

// failGroup counts the pairs of the endpoints of x and lid, which are unreachable.
func (v *verification) failGroup(f *findings, r *routes.Routes, x *vlGroup, lid mad.LID, loop bool) {
	dst := int32(v.g.TerminalByLID(lid))
	for _, i := range x.terminals {
		if i == dst {
			continue
		}
		if r.EndsUnread(x.on, lid) {
			f.unjudged++
			continue
		}
		if loop {
			f.loops++
		}
		v.failPair(f, r, i, lid, loop)
	}
}

// from follows the packets of a flow that come into switch at by port in, and adds
// their dependencies to d.
func (l *vlWalk) from(d *DependencyGraph, r *routes.Routes, flow *vlFlow, at int32, in uint8) pathState {
	g := r.Graph()
	for {
		out := flow.ports[at]
		target := g.Target(at, out)
		if !target.IsChannel() {
			if target == graph.ToTerminal(flow.dst) {
				if vl := r.SL2VL.VL(int(at), in, out, flow.sl); out > 0 && vl < mad.DropVL {
					d.UseLane(vl)
				}
				return l.finish(0)
			}
			return l.finish(misrouted)
		}
		vl := r.SL2VL.VL(int(at), in, out, flow.sl)
		if vl >= mad.DropVL {
			return l.finish(misrouted)
		}
		vertex := d.Vertex(target.Channel(), vl)
		d.Use(vertex)
		d.UseLane(vl)
		if n := len(l.stack); n > 0 {
			d.Add(l.stack[n-1], vertex)
		}
		switch state := l.state[vertex]; state {
		case Unknown:
			l.state[vertex] = onStack
			l.seen = append(l.seen, vertex)
			l.stack = append(l.stack, vertex)
			at, in = g.Channels()[target].To, g.Channels()[target].PeerPort
		case onStack: // the path meets itself
			return l.finish(Looping)
		default: // it joins one that was followed before
			return l.finish(state)
		}
	}
}

// finish ends the path on the stack, beyond which packets are in state end, and
// returns the state at its start.
func (l *vlWalk) finish(end pathState) pathState {
	// The state of a vertex counts the links from its own on.
	for _, vertex := range slices.Backward(l.stack) {
		if end.arrives() {
			end++
		}
		l.state[vertex] = end
	}
	l.stack = l.stack[:0]
	return end
}
