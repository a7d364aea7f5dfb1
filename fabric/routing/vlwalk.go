package routing

import "fabsh/mad"

// vlWalk follows packets where service levels and virtual lanes matter. The lane of
// a packet depends on the port it comes in by (IBA 7.6.6), so pairs of a channel
// and a lane are visited once, not switches.
//
// Time: O(T + C*V) for each LID, T terminals and V virtual lanes.
type vlWalk struct {
	state []int32 // by vertex of the CDG: as of a walk
	seen  []int32 // vertices to forget
	stack []int32
	sls   [16][]int32 // terminals by the SL of their paths
}

func newVLWalk(g *Graph, vls int) *vlWalk {
	w := &vlWalk{state: make([]int32, len(g.channels)*vls)}
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

// followVLs is follow and countPairs where lanes matter. Paths to a LID use the same
// links whatever their service level, but perhaps other lanes.
func (v *verification) followVLs(f *findings, r *Routes, w *walk, lid mad.LID, whole bool) {
	if f.walk == nil {
		f.walk = newVLWalk(v.g, v.vls)
	}
	l := f.walk
	dst := v.g.byLID[lid]
	home := v.g.terminals[dst].Switch
	for sl := range l.sls {
		l.sls[sl] = l.sls[sl][:0]
	}
	for i, is := range v.ends {
		if is && v.g.terminals[i].Switch >= 0 && int32(i) != dst {
			sl := r.SL.Of(i, lid) & 15
			l.sls[sl] = append(l.sls[sl], int32(i))
		}
	}
	ports := w.column(lid)
	for sl, terminals := range l.sls {
		for _, i := range terminals {
			t := &v.g.terminals[i]
			state := l.from(f.graph, r, int32(t.Switch), t.Out, uint8(sl), ports, dst)
			switch {
			case !whole:
			case state < 0:
				if state == looping {
					f.loops++
				}
				v.failPair(f, r, i, lid)
			default:
				f.addPairs(1, int(state)+min(1, int(t.Out))+min(1, int(v.g.terminals[dst].Out)), v.detour(t.Switch, home, int(state)))
			}
		}
		l.forget()
	}
	if whole && v.detached > 0 {
		v.failDetached(f, lid)
	}
}

// from follows packets of service level sl that come into switch at by port in.
func (l *vlWalk) from(d *CDG, r *Routes, at int32, in, sl uint8, ports []uint8, dst int32) int32 {
	g := r.graph
	before := int32(-1)
	state := int32(0)
	for {
		target := g.target(at, ports[at])
		if target < 0 {
			if target != -2-dst {
				state = misrouted
			}
			break
		}
		vl := r.SL2VL.VL(int(at), in, ports[at], sl)
		if vl >= mad.DropVL && r.SL2VL != nil {
			state = misrouted
			break
		}
		vertex := d.Vertex(target, vl)
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
		at, in = g.channels[target].To, g.channels[target].PeerPort
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
