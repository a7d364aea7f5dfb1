package opensm

import (
	"cmp"
	"slices"

	"fabsh/mad"
)

// direction is the direction of a link with regard to ranks.
type direction uint8

const (
	up direction = iota
	down
	level
)

// matrix computes OpenSM's hop matrix, one destination switch at a time: minimal hops
// without ranks; else the hops of paths that do not turn back.
type matrix struct {
	*network
	rank      []int32
	direction func(w *network, rank []int32, from, to int32) direction
	downFirst bool // paths must not turn from up to down; else not from down to up
	// connectRoots: paths to switches of rank 0 are minimal (opensm osm_ucast_updn.c,
	// updn_clear_non_root_hops).
	connectRoots bool

	column  int32   // the destination that the hops below are of, from 1; 0: none
	hops    []uint8 // by port, over all switches
	least   []uint8 // by switch
	dirs    []direction
	visited []bool
	queue   []int32
}

// load computes the hops to switch d.
func (m *matrix) load(d int32) {
	if m.column == d+1 {
		return
	}
	if m.hops == nil {
		m.hops, m.least = make([]uint8, m.base[len(m.Switches)]), make([]uint8, len(m.Switches))
		m.dirs, m.visited = make([]direction, len(m.Switches)), make([]bool, len(m.Switches))
	}
	m.column = d + 1
	fill(m.hops, noPort)
	fill(m.least, noPort)
	m.least[d] = 0
	m.queue = append(m.queue[:0], d)
	if m.rank == nil || m.connectRoots && m.rank[d] == 0 {
		m.minimal(d)
	} else {
		m.ranked(d)
	}
}

func fill(list []uint8, value uint8) {
	for i := range list {
		list[i] = value
	}
}

// minimal fills the hops of shortest paths.
func (m *matrix) minimal(d int32) {
	for i := 0; i < len(m.queue); i++ {
		s := m.queue[i]
		for _, l := range m.Switches[s].Links {
			if l.Kind == ToSwitch && m.least[l.To] == noPort && m.least[s] < noPort-1 {
				m.least[l.To] = m.least[s] + 1
				m.queue = append(m.queue, l.To)
			}
		}
	}
	for _, s := range m.queue {
		for p, l := range m.Switches[s].Links {
			if l.Kind == ToSwitch && s != d && m.least[l.To] < noPort-1 {
				m.hops[m.base[s]+int32(p)] = m.least[l.To] + 1
			}
		}
	}
}

// ranked fills the hops by the search of updn and dnup, in which a switch may be queued again;
// its direction is that of the arrival that queued it (opensm osm_ucast_updn.c,
// updn_bfs_by_node; osm_ucast_dnup.c, dnup_bfs_by_node).
func (m *matrix) ranked(d int32) {
	clear(m.visited)
	first, then := down, up // the turn that is illegal, seen from the destination
	m.dirs[d] = up
	if m.downFirst {
		first, then = up, down
		m.dirs[d] = down
	}
	for i := 0; i < len(m.queue); i++ {
		s := m.queue[i]
		m.visited[s] = false
		at := m.dirs[s]
		for _, l := range m.Switches[s].Links {
			if l.Kind != ToSwitch {
				continue
			}
			next := m.direction(m.network, m.rank, s, l.To)
			if at == first && next == then {
				continue
			}
			hops := &m.hops[m.base[l.To]+int32(l.Port)]
			if m.least[s]+1 >= *hops || m.least[s] == noPort {
				continue
			}
			*hops = m.least[s] + 1
			m.least[l.To] = min(m.least[l.To], *hops)
			if !m.visited[l.To] {
				m.dirs[l.To], m.visited[l.To] = next, true
				m.queue = append(m.queue, l.To)
			}
		}
	}
}

// upDown is the direction of a link in updn: to a smaller rank, of equal ranks to a smaller
// GUID, and between roots it is up.
func (r *routing) upDown(w *network, rank []int32, from, to int32) direction {
	switch {
	case rank[from] == 0 && rank[to] == 0 || rank[to] < rank[from]:
		return up
	case rank[to] > rank[from]:
		return down
	case w.Switches[from].GUID > w.Switches[to].GUID:
		return up
	}
	return down
}

// downUp is the direction of a link in dnup, whose ranks begin at the leaves.
func downUp(_ *network, rank []int32, from, to int32) direction {
	switch cmp.Compare(rank[to], rank[from]) {
	case 1:
		return down
	case -1:
		return up
	}
	return level
}

// ranks returns the distance of each switch from the nearest of some.
func (r *routing) ranks(from []int32) []int32 {
	rank := slices.Repeat([]int32{int32(len(r.Switches))}, len(r.Switches))
	for _, s := range from {
		rank[s] = 0
	}
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for _, l := range r.Switches[queue[0]].Links {
			if l.Kind == ToSwitch && rank[l.To] > rank[queue[0]]+1 {
				rank[l.To] = rank[queue[0]] + 1
				queue = append(queue, l.To)
			}
		}
	}
	return rank
}

// leaves returns the switches with links to ends.
func (r *routing) leaves() (list []int32, err error) {
	for s := range r.Switches {
		if r.linksToEnds(int32(s)) > 0 {
			list = append(list, int32(s))
		}
	}
	if len(list) == 0 {
		return nil, fails("no switch has a link to a CA")
	}
	return list, nil
}

// roots returns the roots of updn: those of the file, or those that are found: from a root,
// over 90 % of the ports of CAs are equally far, and at no other distance are over 5 % (opensm
// osm_ucast_updn.c, updn_find_root_nodes_by_min_hop).
func (r *routing) roots() (list []int32, err error) {
	if r.Roots != nil {
		list = r.switchesOf(r.Roots)
	} else {
		list = r.foundRoots()
	}
	if len(list) == 0 {
		return nil, fails("no root nodes were found")
	}
	return list, nil
}

// switchesOf returns the switches with these GUIDs; others are skipped.
func (r *routing) switchesOf(guids []mad.GUID) (list []int32) {
	for _, guid := range guids {
		if s := slices.IndexFunc(r.Switches, func(sw Switch) bool { return sw.GUID == guid }); s >= 0 && !slices.Contains(list, int32(s)) {
			list = append(list, int32(s))
		}
	}
	return list
}

func (r *routing) foundRoots() (list []int32) {
	ends := make([]int, len(r.Switches))
	total := 0
	for i := range r.Ends {
		if at := r.Ends[i].Switch; at >= 0 && r.Ends[i].Count > 0 {
			ends[at]++
			total++
		}
	}
	m := &matrix{network: r.network}
	for s := range r.Switches {
		m.load(int32(s)) // hops are the same in both directions
		var bars [256]int
		for t, n := range ends {
			bars[m.least[t]] += n
		}
		most, some := 0, 0
		for _, n := range bars[:noPort] {
			if 10*n > 9*total {
				most++
			}
			if 20*n > total {
				some++
			}
		}
		if most == 1 && some == 1 {
			list = append(list, int32(s))
		}
	}
	return list
}
