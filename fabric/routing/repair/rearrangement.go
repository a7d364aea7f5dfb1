package repair

import (
	"context"
	"fmt"
	"math"
	"slices"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/lanes"
)

// rearrangement finds lanes, among the lanes in use, for paths that fit on none beside the others. Each
// is put where it costs the least: on a lane, from which it displaces the paths in its way, and these
// are put on lanes again; or it gets another entry. A path costs more each time it displaces others, so
// that two paths do not displace each other forever (Blöchliger, Zufferey, "A graph coloring
// heuristic using partial solutions and a reactive tabu scheme", 2008; rising costs: McMurchie,
// Ebeling, "PathFinder: a negotiation-based performance-driven router for FPGAs", 1995).
type rearrangement struct {
	x       *layered
	price   int              // to displace a path that used nothing that was lost; 0: it may not move
	over    map[int32][]pair // by edge: the paths on lanes which are known by now
	open    []pair           // on no lane
	changes map[pair]int     // of the entry of a switch for a unit, so far
	units   map[int]*unit    // by place
	walked  int              // switches and paths, beside the work of lanes
	moved   int              // paths on another lane that used nothing that was lost
	most    int              // how many paths may be moved
}

// phases are those of a rearrangement: at first only paths that must change move, then a few others
// too. The last is for tables on as many lanes as are allowed: then any number of others may move.
// Work is for each edge of a path, but all of it at most lanes.DefaultWork: some seconds.
var phases = []struct{ price, work int }{{0, 5}, {8, 2000}, {1, 500}}

// maxMoved is how many paths that used nothing that was lost may move for each that must change. As
// for blocks, that is three times as many in all. If more would have to, a lane is added where that is
// allowed.
const maxMoved = 2

// rearrange reports whether it put all paths on lanes that are in use. If not, restart takes back
// what it did.
func (x *layered) rearrange(ctx context.Context) (bool, error) {
	m := &rearrangement{x: x, over: map[int32][]pair{}, changes: map[pair]int{}, units: map[int]*unit{}}
	for i := range x.units {
		if u := &x.units[i]; u.at >= 0 {
			m.units[u.at] = u
		}
	}
	own := len(x.touched)
	for _, k := range x.touched {
		if p := x.paths[k]; slices.Equal(x.trailOf(k), p.trail) {
			m.index(k)
		} else {
			m.remove(k)
		}
	}
	effort := max(1, engines.BasisOf(x.t).On(x.g).Effort)
	for i, phase := range phases {
		if phase.price > 0 && x.p.Layers() == 1 {
			break // no lane to move to
		}
		m.price, m.most = phase.price, maxMoved*own
		work := min(phase.work*x.edges, lanes.DefaultWork) * effort
		if i == len(phases)-1 {
			if x.p.Layers() < x.limit {
				break // a lane more is better
			}
			m.most = math.MaxInt
		}
		if done, err := m.run(ctx, work); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// moved counts the paths on another lane that used nothing that was lost.
func (x *layered) moved() (n int) {
	for _, k := range x.touched {
		if p := x.paths[k]; p.stays && p.layer != p.was {
			n++
		}
	}
	return n
}

// noteMoved notes that paths moved which used nothing that was lost.
func (x *layered) noteMoved() {
	if n := x.moved(); n > 0 {
		x.t.Notes = append(x.t.Notes, fmt.Sprintf("repair: %d of these paths used nothing that was lost; moved to make room on the virtual lanes in use", n))
	}
}

// restore puts paths back on the lanes that they had, as far as they fit there.
func (x *layered) restore() {
	for again := true; again; {
		again = false
		for _, stays := range []bool{true, false} {
			for _, k := range x.touched {
				p := x.paths[k]
				if p.layer == p.was || p.stays != stays {
					continue
				}
				if x.p.Remove(p.layer, p.trail); x.p.Add(p.was, p.trail) {
					p.layer, again = p.was, true
				} else {
					x.p.Add(p.layer, p.trail)
				}
			}
		}
	}
}

// trailOf returns the edges of a path, with Both also the edges of the path back.
func (x *layered) trailOf(k pair) (trail []int32) {
	for _, k := range x.both(k) {
		trail, _ = x.p.Trail(trail, k.from, k.to)
	}
	return trail
}

// run puts the open paths on lanes, and reports whether it could: the work may not be enough, or there
// is no way for any of them. If more paths have moved than may, it restarts. It always ends, because
// each step costs some of the work.
func (m *rearrangement) run(ctx context.Context, work int) (bool, error) {
	x := m.x
	limit := x.p.Work() + m.walked + work
	for stuck := 0; ; {
		if len(m.open) == 0 {
			x.restore()
			if m.moved = x.moved(); m.moved <= m.most {
				return true, nil
			}
		}
		if m.moved > m.most {
			m.restart()
			stuck = 0
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if stuck == len(m.open) || x.p.Work()+m.walked > limit {
			return false, nil
		}
		k := m.open[0]
		m.open = m.open[1:]
		if m.settle(k) {
			stuck = 0
		} else {
			m.open = append(m.open, k)
			stuck++
		}
	}
}

// restart moves all paths back that used nothing that was lost, and makes all other paths open, sorted
// by how often they displaced others. Because costs stay, different paths are moved this time.
func (m *rearrangement) restart() {
	x := m.x
	m.open = nil
	for _, k := range x.touched {
		if p := x.paths[k]; !p.stays || p.layer != p.was || p.trail == nil {
			m.remove(k)
		}
	}
	m.open = slices.DeleteFunc(m.open, func(k pair) bool { return x.paths[k].stays && m.put(k, x.paths[k].was, x.trailOf(k)) })
	slices.SortStableFunc(m.open, func(a, b pair) int { return x.paths[b].displaced - x.paths[a].displaced })
}

// settle puts an open path on a lane, or changes an entry on its way. It reports whether it could.
func (m *rearrangement) settle(k pair) bool {
	trail := m.x.trailOf(k)
	best, lane := math.MaxInt, -1
	for _, layer := range m.lanesOf(m.x.paths[k]) {
		if cost := m.costOn(layer, trail, best); cost < best {
			best, lane = cost, layer
		}
		if best == 0 {
			m.put(k, lane, trail)
			return true
		}
	}
	if m.changeEntry(k, best) {
		return true
	}
	if lane < 0 {
		return false
	}
	m.x.paths[k].displaced++
	for !m.put(k, lane, trail) {
		users, _ := m.cheapest(lane, trail)
		for _, u := range users {
			m.remove(u)
		}
	}
	return true
}

// lanesOf returns all lanes. The first is the lane that a path had last, or, if it used nothing that was
// lost, the lane that it had before the repair.
func (m *rearrangement) lanesOf(p *path) []int {
	first := p.layer
	if p.stays {
		first = p.was
	}
	list := []int{first}
	for layer := range m.x.p.Layers() {
		if layer != first {
			list = append(list, layer)
		}
	}
	return list
}

// costOn returns the cost to put a path on a lane; most: it is not less, or paths that may not move
// are in the way.
func (m *rearrangement) costOn(layer int, trail []int32, most int) (cost int) {
	x := m.x
	var off []pair
	for cost < most && !x.p.Add(layer, trail) {
		users, price := m.cheapest(layer, trail)
		if cost += price; users == nil {
			cost = most
		}
		for _, u := range users {
			p := x.paths[u]
			x.p.Remove(layer, p.trail)
			p.off = true
		}
		off = append(off, users...)
	}
	if cost < most {
		x.p.Remove(layer, trail)
	}
	for _, u := range off {
		p := x.paths[u]
		p.off = false
		x.p.Add(layer, p.trail)
	}
	return min(cost, most)
}

// cheapest returns the paths over one edge of a cycle that a path closes on a lane: the edge whose paths
// cost the least to displace. Nil: each edge has some that may not move.
func (m *rearrangement) cheapest(layer int, trail []int32) (users []pair, price int) {
	best := int32(-1)
	for _, e := range m.x.p.Blocking(layer, trail) {
		if cost, ok := m.costOver(layer, e); ok && (best < 0 || cost < price) {
			best, price = e, cost
		}
	}
	if best < 0 {
		return nil, 0
	}
	return m.usersOf(layer, best), price
}

// costOver returns the cost to displace all paths over an edge of a lane, and whether all may move.
func (m *rearrangement) costOver(layer int, e int32) (cost int, ok bool) {
	others := m.x.p.Paths(layer, e)
	m.walked += len(m.over[e])
	for _, k := range m.over[e] {
		if p := m.x.paths[k]; p.layer == layer && !p.off {
			others--
			cost += m.priceOf(p)
		}
	}
	return cost + others*m.price, others == 0 || m.price > 0
}

// priceOf returns the cost to displace a path.
func (m *rearrangement) priceOf(p *path) int {
	if p.stays && p.layer == p.was {
		return m.price + p.displaced
	}
	return 1 + p.displaced
}

// usersOf returns the paths over an edge of a lane, all of which may move.
func (m *rearrangement) usersOf(layer int, e int32) (users []pair) {
	x := m.x
	for _, k := range m.over[e] {
		if p := x.paths[k]; p.layer == layer && !p.off {
			users = append(users, k)
		}
	}
	if len(users) == x.p.Paths(layer, e) {
		return users
	}
	x.p.Through(e, func(s int32, to int) {
		k := x.pairOf(s, to)
		if p := x.paths[k]; x.layer[s] == nil || p != nil && !p.stays {
			return
		}
		if int(x.layer[s][x.l.Dests[to].Index]) != layer {
			if x.others(k)>>layer&1 == 0 {
				return
			}
			k.other = uint8(layer) + 1
		}
		if x.paths[k] != nil {
			return
		}
		trail := x.trailOf(k)
		x.paths[k] = &path{layer: layer, was: layer, trail: trail, given: trail, stays: true}
		x.touched = append(x.touched, k)
		m.index(k)
		users = append(users, k)
	})
	return users
}

// put puts a path on a lane, if it fits there.
func (m *rearrangement) put(k pair, layer int, trail []int32) bool {
	if !m.x.p.Add(layer, trail) {
		return false
	}
	p := m.x.paths[k]
	if p.layer, p.trail = layer, trail; p.stays && layer != p.was {
		m.moved++
	}
	m.index(k)
	return true
}

// index notes the edges of a path that is on a lane.
func (m *rearrangement) index(k pair) {
	for _, e := range m.x.paths[k].trail {
		m.over[e] = append(m.over[e], k)
	}
}

// remove takes a path off its lane: it is open.
func (m *rearrangement) remove(k pair) {
	p := m.x.paths[k]
	m.x.p.Remove(p.layer, p.trail)
	for _, e := range p.trail {
		m.walked += len(m.over[e])
		m.over[e] = slices.DeleteFunc(m.over[e], func(l pair) bool { return l == k })
	}
	p.trail = nil
	if p.stays && p.layer != p.was {
		p.layer = p.was
		m.moved--
	}
	m.open = append(m.open, k)
}

// changeEntry changes an entry on the way of a path, there or back: the entry with which the paths that
// use it fit on lanes best, if that costs less than most. Paths that do not fit are open afterwards.
func (m *rearrangement) changeEntry(k pair, most int) bool {
	x := m.x
	var best entries
	var of *unit
	for _, way := range x.both(k) {
		u := m.units[way.to]
		if u == nil {
			continue
		}
		for s := way.from; u.affected[s]; s = x.leadsTo(int(s), x.portOf(u, s)) {
			if !x.canChange(u, s) {
				continue
			}
			behind := m.behind(u, s)
			for _, ports := range x.candidates(u, s) {
				if slices.Contains(ports, x.portOf(u, s)) {
					continue
				}
				if cost := m.costBy(u, s, ports, behind) + m.changes[pair{from: s, to: u.at}]; cost < most {
					most, of, best = cost, u, entries{s: s, ports: ports}
				}
			}
		}
	}
	if of == nil {
		return false
	}
	m.open = append(m.open, k)
	m.change(of, best.s, best.ports)
	return true
}

// both returns a pair and, with Both, the pair of the path back.
func (x *layered) both(k pair) []pair {
	if !x.l.Both {
		return []pair{k}
	}
	return []pair{k, {from: x.l.Dests[k.to].Home, to: x.place[k.from]}}
}

// change changes the entry of a switch for a unit.
func (m *rearrangement) change(u *unit, s int32, ports []uint8) {
	x := m.x
	m.changes[pair{from: s, to: u.at}]++
	x.noteChange(u, s)
	behind := m.behind(u, s)
	for _, from := range behind {
		if k := x.pairOf(from, u.at); !slices.Contains(m.open, k) {
			m.remove(k)
		}
		x.count(u, from, -1)
	}
	x.extra = append(x.extra, entries{u.dests, s, x.column(u, s)})
	x.clear(u, s)
	x.set(int(s), u, ports)
	for _, from := range behind {
		x.count(u, from, 1)
		k := x.pairOf(from, u.at)
		trail := x.trailOf(k)
		if slices.ContainsFunc(m.lanesOf(x.paths[k]), func(layer int) bool { return m.put(k, layer, trail) }) {
			m.open = slices.DeleteFunc(m.open, func(o pair) bool { return o == k })
		}
	}
}

// costBy returns the cost if a switch sends a unit over other ports: the cost of the paths behind it that
// then fit on no lane.
func (m *rearrangement) costBy(u *unit, s int32, ports []uint8, behind []int32) (cost int) {
	x := m.x
	for _, from := range behind {
		p := x.paths[x.pairOf(from, u.at)]
		x.p.Remove(p.layer, p.trail)
	}
	before := entries{u.dests, s, x.column(u, s)}
	x.clear(u, s)
	x.set(int(s), u, ports)
	var placed []path
	for _, from := range behind {
		k := x.pairOf(from, u.at)
		p, trail := x.paths[k], x.trailOf(k)
		list := m.lanesOf(p)
		if i := slices.IndexFunc(list, func(layer int) bool { return x.p.Add(layer, trail) }); i >= 0 {
			placed = append(placed, path{layer: list[i], trail: trail})
		} else {
			cost += m.priceOf(p)
		}
	}
	for _, p := range placed {
		x.p.Remove(p.layer, p.trail)
	}
	x.putBack(before)
	for _, from := range behind {
		p := x.paths[x.pairOf(from, u.at)]
		x.p.Add(p.layer, p.trail)
	}
	return cost
}

// behind returns the switches whose paths to a unit pass through s.
func (m *rearrangement) behind(u *unit, s int32) (list []int32) {
	x := m.x
	m.walked += len(x.l.Sources)
	for _, from := range x.l.Sources {
		if u.affected[from] && x.passes(u, from, s) {
			list = append(list, from)
		}
	}
	return list
}

// portOf returns the port to which a switch sends a unit.
func (x *layered) portOf(u *unit, s int32) uint8 { return x.t.Row(int(s))[u.dests[0].LID] }
