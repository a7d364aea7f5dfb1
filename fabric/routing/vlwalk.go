package routing

import (
	"math/bits"
	"slices"

	"fabsh/fabric/routing/cdg"
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
	state []int32 // by vertex of the CDG: as of a walk
	seen  []int32 // vertices to forget
	stack []int32
	sls   [16][]int32 // groups by the SL of their paths
}

// vlGroup are endpoints on one switch whose packets to each LID have the same service
// level, and then the same virtual lanes, for so are the lanes of the ports they come
// in by.
type vlGroup struct {
	first     int32 // terminal
	on        int32 // its switch
	terminals []int32
}

func newVLWalk(g *graph.Graph, vls int) *vlWalk {
	w := &vlWalk{state: make([]int32, len(g.Channels())*vls)}
	for i := range w.state {
		w.state[i] = unknown
	}
	return w
}

// forget forgets the paths of one SL.
func (w *vlWalk) forget() {
	for _, v := range w.seen {
		w.state[v] = unknown
	}
	w.seen = w.seen[:0]
}

// vlGroups groups the endpoints.
func (v *verification) vlGroups(r *routes.Routes) []vlGroup {
	var groups []vlGroup
	of := make([][]int, len(v.g.Switches())) // groups, by switch
	for i, is := range v.ends {
		t := &v.g.Terminals()[i]
		if !is || t.Switch < 0 {
			continue
		}
		at := slices.IndexFunc(of[t.Switch], func(x int) bool {
			o := groups[x].first
			return r.SL.SameFrom(int(o), i) && r.SL2VL.SameInto(t.Switch, v.g.Terminals()[o].Out, t.Out)
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

// followDirect is follow where the lanes of a path are all that of its service level: the
// paths to a LID are one tree, and a link has the lanes of all service levels behind it.
// False: some packets loop, and the tree is none.
func (v *verification) followDirect(f *findings, r *routes.Routes, groups []vlGroup, w *walk, lid mad.LID) bool {
	t, ports := int32(v.g.TerminalByLID(lid)), w.column(lid)
	for _, s := range v.sources {
		w.from(s, ports, t)
	}
	if slices.ContainsFunc(w.order, func(s int32) bool { return w.state[s] == looping }) {
		w.begin()
		return false
	}
	if f.levels == nil {
		f.levels, f.edges = make([]uint16, len(v.g.Switches())), newLaneEdges(v.g)
	}
	clear(f.levels)
	for i := range groups {
		x := &groups[i]
		level := uint16(1)
		if r.SL2VL != nil {
			level = 1 << (r.SL.Of(int(x.first), lid) & 15)
		}
		f.levels[x.on] |= level
	}
	for _, s := range slices.Backward(w.order) {
		c := w.via[s]
		if c < 0 {
			continue
		}
		to := v.g.ChannelTo(c)
		f.levels[to] |= f.levels[s]
		f.edges.used[c] |= f.levels[s]
		if next := w.via[to]; next >= 0 {
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
func (e *laneEdges) addTo(d *cdg.Graph) {
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

// followVLs is follow and countPairs where lanes matter. Paths to a LID use the same
// links whatever their service level, but perhaps other lanes.
func (v *verification) followVLs(f *findings, r *routes.Routes, groups []vlGroup, w *walk, lid mad.LID, whole bool) {
	if f.walk == nil {
		f.walk = newVLWalk(v.g, v.vls)
	}
	l := f.walk
	dst := int32(v.g.TerminalByLID(lid))
	home := v.g.Terminals()[dst].Switch
	for sl := range l.sls {
		l.sls[sl] = l.sls[sl][:0]
	}
	for i := range groups {
		sl := r.SL.Of(int(groups[i].first), lid) & 15
		l.sls[sl] = append(l.sls[sl], int32(i))
	}
	ports := w.column(lid)
	for sl, list := range l.sls {
		for _, i := range list {
			x := &groups[i]
			t := &v.g.Terminals()[x.first]
			n := int64(len(x.terminals))
			if t.Switch == home && slices.Contains(x.terminals, dst) {
				if n--; n == 0 {
					continue
				}
			}
			state := l.from(f.graph, r, int32(t.Switch), t.Out, uint8(sl), ports, dst)
			switch {
			case !whole:
			case state < 0:
				for _, i := range x.terminals {
					if i == dst {
						continue
					}
					if state == looping {
						f.loops++
					}
					v.failPair(f, r, i, lid)
				}
			default:
				for _, i := range x.terminals {
					if v.g.Terminals()[i].Out == 0 && i != dst { // one at most: the switch itself
						f.addPairs(1, int(state)+min(1, int(v.g.Terminals()[dst].Out)), v.detour(t.Switch, home, int(state)))
						n--
					}
				}
				if n > 0 {
					f.addPairs(n, int(state)+1+min(1, int(v.g.Terminals()[dst].Out)), v.detour(t.Switch, home, int(state)))
				}
			}
		}
		l.forget()
	}
	if whole && v.detached > 0 {
		v.failDetached(f, lid)
	}
}

// from follows packets of service level sl that come into switch at by port in.
func (l *vlWalk) from(d *cdg.Graph, r *routes.Routes, at int32, in, sl uint8, ports []uint8, dst int32) int32 {
	g := r.Graph()
	before := int32(-1)
	state := int32(0)
	for {
		target := g.Target(at, ports[at])
		if target < 0 {
			if target != graph.ToTerminal(dst) {
				state = misrouted
			}
			break
		}
		vl := r.SL2VL.VL(int(at), in, ports[at], sl)
		if vl >= mad.DropVL && r.SL2VL != nil {
			state = misrouted
			break
		}
		vertex := d.Vertex(target.Channel(), vl)
		d.Use(vertex)
		if before >= 0 {
			d.Add(before, vertex)
		}
		if state = l.state[vertex]; state != unknown {
			if state == onStack {
				state = looping
			}
			break
		}
		l.state[vertex] = onStack
		l.seen = append(l.seen, vertex)
		l.stack = append(l.stack, vertex)
		before, state = vertex, 0
		at, in = g.Channels()[target].To, g.Channels()[target].PeerPort
	}
	// The state of a vertex counts the links from its own on.
	for i := len(l.stack) - 1; i >= 0; i-- {
		if state >= 0 {
			state++
		}
		l.state[l.stack[i]] = state
	}
	l.stack = l.stack[:0]
	return state
}
