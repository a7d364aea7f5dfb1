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
// port to each neighbour, then the second ones. same: the last call returned an equal list.
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

// Share makes x reuse lists, and clears them.
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

// same reports whether d has the next hops of the last destination.
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
	Direct []uint8     // of DModK, with Slots: the port of each digit; none: some digit has several, or no group
}

// Regroup makes each of ports a group of its own, where their order differs from the order
// of their neighbours.
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

// IsNextHop reports whether port out of switch s is on a shortest path to switch d. All
// links must be allowed.
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

// Find is Ports for one destination of switch s, without Load.
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

// Toward are the paths that distances allow to one switch: all switches that have one, nearest
// first, and the channels of their next hops. It belongs to one goroutine.
//
// Time: O(S + C) for each switch.
type Toward struct {
	Steps []Step
	Next  []int32 // channels, by step
	To    []int32 // the switches that these lead to

	hops       *Hops
	key        []uint16 // by channel: its weight, and towardUp
	column     []uint8  // of Hops: from all switches
	byDistance [MaxDistance + 1][]int32
}

// Step is a switch, whose next hops are by the channels Next[First:Last].
type Step struct{ Switch, First, Last int32 }

// towardUp is set in the key of a channel that goes up.
const towardUp = 0x200

// Load finds them for switch d. Where trunk is not nil, only channels that stand for themselves
// in it are next hops (see FirstParallel).
func (x *Toward) Load(h *Hops, d int, trunk []int32) {
	g := h.graph
	if x.hops != h {
		x.prepare(h)
	}
	for i := range x.byDistance {
		x.byDistance[i] = x.byDistance[i][:0]
	}
	x.column = x.column[:0]
	for s := range g.switches {
		own := h.d[s*h.stride+d]
		x.column = append(x.column, own)
		if far := own &^ viaUp; far > 0 && far != noPath {
			x.byDistance[far] = append(x.byDistance[far], int32(s))
		}
	}
	x.Steps = x.Steps[:0]
	n := int32(0)
	for far, list := range x.byDistance {
		for _, s := range list {
			// Of up*/down*: up where the path begins so; else down, to where no path goes up.
			mask, want := uint16(0xff), uint16(far)
			switch {
			case h.rank == nil:
				mask = ^uint16(viaUp)
			case x.column[s]&viaUp != 0:
				mask, want = ^uint16(viaUp), want+towardUp
			}
			first, at := n, g.chanBase[s]
			for i, to := range g.chanTo[at:g.chanBase[s+1]] {
				c := at + int32(i)
				x.Next[n], x.To[n] = c, to
				if uint16(x.column[to])&mask+x.key[c] == want && (trunk == nil || trunk[c] == c) {
					n++
				}
			}
			x.Steps = append(x.Steps, Step{s, first, n})
		}
	}
}

// prepare prepares x for distances h.
func (x *Toward) prepare(h *Hops) {
	g := h.graph
	x.hops = h
	x.key = make([]uint16, len(g.channels))
	x.Next, x.To = make([]int32, len(g.channels)+1), make([]int32, len(g.channels)+1)
	for c := range g.channels {
		ch := &g.channels[c]
		if x.key[c] = uint16(ch.Weight); h.rank != nil && h.rank.Up(int(ch.From), int(ch.To)) {
			x.key[c] += towardUp
		}
	}
}
