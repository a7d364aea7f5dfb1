package graph

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
	lows  = 0x7f7f7f7f7f7f7f7f
)

// NextHops are the next hops of one switch to all destinations: the neighbours
// that are one link nearer. Bit i%8 of sets[i/8*stride+d] is neighbour i.
//
// They are computed for eight destinations at a time, in the bytes of a word
// (SIMD within a register), in a third of the instructions of a plain loop.
//
// Time: O(S) for each neighbour, so O(S*N) for all switches.
type NextHops struct {
	hops *Hops
	s    int // the switch
	sets []uint8
	list *PortList // of the last destination; nil: none yet

	// known has lists that came before, by a hash of their sets: where parts are missing,
	// a switch has few different sets, but they alternate. Nil until it is needed;
	// several NextHops may share one, by turns.
	known *PortLists
	key   []uint8 // memory of Ports
}

// PortLists are lists of ports that NextHops have made, for reuse.
type PortLists [64]PortList // a power of two

// Load computes them for switch s.
func (x *NextHops) Load(h *Hops, s int) {
	g := h.graph
	first, last := int(g.nbrBase[s]), int(g.nbrBase[s+1])
	x.hops, x.s = h, s
	x.forget()
	size := (last - first + 7) / 8 * h.stride
	if cap(x.sets) < size {
		x.sets = make([]uint8, size)
	}
	x.sets = x.sets[:size]
	own := h.row(s)
	var rows [8][]uint8
	var weights, ups, downs [8]uint64
	for i := first; i < last; i += 8 {
		n := min(8, last-i)
		for j := range n {
			rows[j] = h.row(int(g.nbrTo[i+j]))[:len(own)]
			weights[j] = uint64(g.neighbours[i+j].Weight) * ones
			// Which viaUp bits are wrong: up needs the switch's own set, down needs both clear.
			ups[j], downs[j] = 0, 0
			if h.up != nil && h.up[i+j] {
				ups[j] = highs
			} else if h.up != nil {
				downs[j] = highs
			}
		}
		set := x.sets[(i-first)/8*h.stride:][:len(own)]
		for d := 0; d < len(own); d += 8 {
			a := binary.LittleEndian.Uint64(own[d:])
			acc := uint64(0)
			for j := range n {
				b := binary.LittleEndian.Uint64(rows[j][d:])
				differ := (a & lows) ^ (b&lows + weights[j]) // the high bit is set if the sum is above 127
				differ |= differ&lows + lows
				differ |= ups[j]&^a | downs[j]&(a|b)
				acc |= ^differ & highs >> 7 << j
			}
			binary.LittleEndian.PutUint64(set[d:], acc)
		}
	}
	if h.turned != nil {
		for _, t := range h.turned[s] {
			x.sets[int(t.neighbour)/8*h.stride+int(t.d)] |= 1 << (t.neighbour % 8)
		}
	}
}

// Neighbours are the indices of the next hops to d among the neighbours of the switch.
func (x *NextHops) Neighbours(d int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if x.s == d || x.hops.d[x.s*x.hops.stride+d] == noPath {
			return
		}
		for i, at := 0, d; at < len(x.sets); i, at = i+8, at+x.hops.stride {
			for set := x.sets[at]; set != 0; set &= set - 1 {
				if !yield(i + bits.TrailingZeros8(set)) {
					return
				}
			}
		}
	}
}

// Ports are the ports of the next hops to d, in order of preference: the first
// port to each neighbour, then the second ones. same: the last call had the same.
func (x *NextHops) Ports(d int) (ports []uint8, same bool) {
	if x.same(d) {
		return x.list.Ports, true
	}
	if x.known == nil {
		x.known = new(PortLists)
	}
	x.key = x.key[:0]
	hash := uint64(0)
	if x.hops.d[x.s*x.hops.stride+d] != noPath {
		for at := d; at < len(x.sets); at += x.hops.stride {
			x.key = append(x.key, x.sets[at])
			hash = (hash ^ uint64(x.sets[at])) * 0x9e3779b97f4a7c15
		}
	}
	x.list = &x.known[hash>>32%uint64(len(x.known))]
	if !x.list.valid || !slices.Equal(x.list.last, x.key) {
		x.list.last = append(x.list.last[:0], x.key...)
		x.expand()
	}
	return x.list.Ports, false
}

// List is the list of the last destination.
func (x *NextHops) List() *PortList { return x.list }

// Share makes lists those that x reuses, and forgets what they have.
func (x *NextHops) Share(lists *PortLists) {
	x.known = lists
	x.forget()
}

// forget forgets the lists of the last switch.
func (x *NextHops) forget() {
	x.list = nil
	if x.known != nil {
		for i := range x.known {
			x.known[i].valid = false
		}
	}
}

// same reports whether the next hops to d are those of the last destination.
func (x *NextHops) same(d int) bool {
	if x.list == nil {
		return false
	}
	if x.hops.d[x.s*x.hops.stride+d] == noPath {
		return len(x.list.last) == 0
	}
	at := d
	for _, set := range x.list.last {
		if x.sets[at] != set {
			return false
		}
		at += x.hops.stride
	}
	return at >= len(x.sets)
}

// PortList has the ports of a set of neighbours.
type PortList struct {
	valid  bool
	last   []uint8 // the set
	Ports  []uint8
	Groups []Neighbour // the neighbours that they lead to
	Slots  []int16     // of DModK: the group of each digit, or -1; none: not yet found
}

// Regroup makes each of ports a group of its own, where their order is not that of their
// neighbours.
func (l *PortList) Regroup(ports []uint8) {
	l.valid = false
	l.Groups = l.Groups[:0]
	for i := range ports {
		l.Groups = append(l.Groups, Neighbour{Ports: ports[i : i+1]})
	}
}

// expand lists the ports of the neighbours in list.last.
func (x *NextHops) expand() {
	g, l := x.hops.graph, x.list
	l.valid, l.Ports, l.Groups, l.Slots = true, l.Ports[:0], l.Groups[:0], l.Slots[:0]
	nbrs := g.Neighbours(x.s)
	most := 0
	for i, set := range l.last {
		for ; set != 0; set &= set - 1 {
			n := nbrs[i*8+bits.TrailingZeros8(set)]
			l.Groups = append(l.Groups, n)
			most = max(most, len(n.Ports))
		}
	}
	if place := x.hops.Place; place != nil {
		slices.SortFunc(l.Groups, func(m, n Neighbour) int { return cmp.Compare(place[m.To], place[n.To]) })
	}
	for k := range most {
		for _, n := range l.Groups {
			if k < len(n.Ports) {
				l.Ports = append(l.Ports, n.Ports[k])
			}
		}
	}
	if g.order != nil && g.order[x.s] != nil {
		slices.SortStableFunc(l.Ports, func(p, q uint8) int { return int(g.order[x.s][p]) - int(g.order[x.s][q]) })
		slices.SortStableFunc(l.Groups, func(m, n Neighbour) int {
			return int(g.order[x.s][m.Ports[0]]) - int(g.order[x.s][n.Ports[0]])
		})
	}
}

// IsNextHop reports whether port out of switch s is on a shortest path to switch d,
// where all links are allowed.
func (h *Hops) IsNextHop(s, d int, out uint8) bool {
	c := h.graph.Target(int32(s), out)
	if c < 0 {
		return false
	}
	to := h.graph.channels[c]
	return h.d[int(to.To)*h.stride+d]+to.Weight == h.d[s*h.stride+d]
}

// Next are the ports of switch s that lead one link nearer to switch d, in order
// of preference; none if s is d, or there is no path.
func (h *Hops) Next(s, d int) []uint8 {
	return new(NextHops).Find(h, s, d)
}

// Find is ports for one destination of switch s, without load.
func (x *NextHops) Find(h *Hops, s, d int) []uint8 {
	g := h.graph
	own := h.d[s*h.stride+d]
	if x.list == nil {
		x.list = new(PortList)
	}
	x.hops, x.s, x.list.last = h, s, x.list.last[:0]
	if s == d || own == noPath {
		x.expand()
		return x.list.Ports
	}
	var set uint8
	for i, n := range g.Neighbours(s) {
		far := h.d[int(n.To)*h.stride+d]
		up := h.up != nil && h.up[int(g.nbrBase[s])+i]
		switch {
		case far == noPath || far&^viaUp+n.Weight != own&^viaUp:
		case h.turned != nil && slices.Contains(h.turned[s], turnedHop{int32(d), int32(i)}):
			set |= 1 << (i % 8)
		case up && own&viaUp == 0, h.up != nil && !up && (own|far)&viaUp != 0:
		default:
			set |= 1 << (i % 8)
		}
		if i%8 == 7 || i == len(g.Neighbours(s))-1 {
			x.list.last = append(x.list.last, set)
			set = 0
		}
	}
	x.expand()
	return x.list.Ports
}
