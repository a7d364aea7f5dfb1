package routing

import "fabsh/mad"

// laneWalk follows packets where service levels and virtual lanes matter: what
// lane a packet gets depends on the port it comes in by, so it is channels and
// lanes that are visited once, not switches.
type laneWalk struct {
	state []int32 // by vertex: as of a walk
	seen  []int32 // vertices to forget
	stack []int32
	sls   [16][]int32 // terminals by the SL of their paths
}

func newLaneWalk(g *Graph, lanes int) *laneWalk {
	w := &laneWalk{state: make([]int32, len(g.channels)*lanes)}
	for i := range w.state {
		w.state[i] = unknown
	}
	return w
}

func (w *laneWalk) forget() {
	for _, v := range w.seen {
		w.state[v] = unknown
	}
	w.seen = w.seen[:0]
}

// followLanes does what follow and tally do. Paths of different service levels
// to a LID use the same links, but maybe other lanes.
func (v *verification) followLanes(f *verifier, r *Routes, w *walk, lid mad.LID, whole bool) {
	if f.lanes == nil {
		f.lanes = newLaneWalk(v.g, v.lanes)
	}
	l := f.lanes
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
				f.arrive(1, int(state)+min(1, int(t.Out))+min(1, int(v.g.terminals[dst].Out)), v.detour(t.Switch, home, int(state)))
			}
		}
		l.forget()
	}
	if whole && v.aside > 0 {
		v.failAside(f, lid)
	}
}

// from follows packets that come into switch at by port in.
func (l *laneWalk) from(d *cdg, r *Routes, at int32, in, sl uint8, ports []uint8, dst int32) int32 {
	g := r.graph
	before := int32(-1)
	state := int32(0)
	for {
		target := g.target(at, ports[at])
		if target < 0 {
			if target != -2-dst {
				state = astray
			}
			break
		}
		vl := r.SL2VL.VL(int(at), in, ports[at], sl)
		if vl >= DropVL && r.SL2VL != nil {
			state = astray
			break
		}
		vertex := d.vertex(target, vl)
		d.use(vertex)
		if before >= 0 {
			d.add(before, vertex)
		}
		if state = l.state[vertex]; state != unknown {
			if state == underWay {
				state = looping
			}
			break
		}
		l.state[vertex] = underWay
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
