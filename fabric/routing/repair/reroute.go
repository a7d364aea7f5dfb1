package repair

import "slices"

// changeEntry changes an entry on the way of a path, there or back: the one with which the paths that
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

// both are a pair and, with Both, that of the path back.
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

// costBy returns the cost if a switch sends a unit over other ports: that of the paths behind it that
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

// portOf is the port to which a switch sends a unit.
func (x *layered) portOf(u *unit, s int32) uint8 { return x.t.Row(int(s))[u.dests[0].LID] }
