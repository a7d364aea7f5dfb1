package routes

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// SL are the service levels of paths.
type SL struct {
	// Dest are the service levels of all paths to a LID, by LID; beyond its end: 0.
	Dest []uint8
	// Pair, if not nil, has for each terminal at which paths begin their levels
	// by LID, or nil where Dest has them.
	Pair [][]uint8

	Shared bool // several terminals may share a row of Pair
}

// Of is the service level of paths from terminal t to lid; -1: from the terminals without a
// row of Pair.
func (l *SL) Of(t int, lid mad.LID) uint8 {
	switch {
	case l == nil:
	case t >= 0 && t < len(l.Pair) && int(lid) < len(l.Pair[t]):
		return l.Pair[t][lid]
	case int(lid) < len(l.Dest):
		return l.Dest[lid]
	}
	return 0
}

// Any reports whether some path has another service level than 0. OpenSM's engine file
// does not learn of these: its PathRecords follow its own rules.
func (l *SL) Any() bool {
	if l == nil {
		return false
	}
	other := func(sl uint8) bool { return sl != 0 }
	return slices.ContainsFunc(l.Dest, other) || slices.ContainsFunc(l.Pair, func(row []uint8) bool { return slices.ContainsFunc(row, other) })
}

func (l *SL) clone() *SL {
	if l == nil {
		return nil
	}
	c := &SL{Dest: slices.Clone(l.Dest), Pair: slices.Clone(l.Pair)}
	for i := range c.Pair {
		c.Pair[i] = slices.Clone(c.Pair[i])
	}
	return c
}

// SL2VL are the SLtoVLMappingTables of switches. The zero value maps SL n to VL n.
type SL2VL struct {
	graph  *graph.Graph
	tables [][]uint8 // by switch: by port in, port out, SL
}

// NewSL2VL makes tables that map SL n to VL n.
func NewSL2VL(g *graph.Graph) *SL2VL { return &SL2VL{g, make([][]uint8, len(g.Switches()))} }

// VL is the lane of a packet of service level sl that comes in by port in (0: from
// the switch itself) and leaves by port out of switch s.
func (v *SL2VL) VL(s int, in, out, sl uint8) uint8 {
	if v == nil {
		return 0
	}
	if v.tables == nil || v.tables[s] == nil {
		return sl
	}
	return v.tables[s][v.at(s, in, out)+int(sl&15)]
}

// Set sets the lanes of the 16 service levels from port in to port out.
func (v *SL2VL) Set(s int, in, out uint8, vls [16]uint8) error {
	n := v.graph.Switches()[s]
	if int(max(in, out)) > n.NumPorts() {
		return fmt.Errorf("%s has ports 0..%d, not %d", n.Label(), n.NumPorts(), max(in, out))
	}
	if v.tables[s] == nil {
		ports := n.NumPorts() + 1
		v.tables[s] = make([]uint8, ports*ports*16)
		for i := range v.tables[s] {
			v.tables[s][i] = uint8(i % 16)
		}
	}
	copy(v.tables[s][v.at(s, in, out):], vls[:])
	return nil
}

// Equal reports whether v and o, two of one graph, have equal lanes.
func (v *SL2VL) Equal(o *SL2VL) bool {
	switch {
	case v == o:
		return true
	case v == nil || o == nil:
		return false
	case v.tables == nil || o.tables == nil:
		return v.tables == nil && o.tables == nil
	}
	return slices.EqualFunc(v.tables, o.tables, slices.Equal[[]uint8])
}

// HashSL adds to h all that decides on the lanes of a service level. Levels with equal hashes
// have equal lanes.
func (v *SL2VL) HashSL(h *maphash.Hash, sl uint8) {
	if v == nil {
		return
	}
	if v.tables == nil {
		h.WriteByte(sl)
		return
	}
	for _, t := range v.tables {
		h.WriteByte(byte(min(len(t), 1)))
		if t == nil {
			h.WriteByte(sl)
		}
		for i := int(sl); i < len(t); i += 16 {
			h.WriteByte(t[i])
		}
	}
}

// Uniform reports whether no lane depends on the switch or on its ports: then the dependencies
// of each lane are the dependencies that its packets would have on a single lane.
func (v *SL2VL) Uniform() bool {
	if v == nil || v.tables == nil {
		return true
	}
	var first []uint8
	for _, t := range v.tables {
		for row := range slices.Chunk(t, 16) {
			if first == nil {
				first = row
			}
			if !slices.Equal(row, first) {
				return false
			}
		}
	}
	return true
}

func (v *SL2VL) at(s int, in, out uint8) int {
	return (int(in)*(v.graph.Switches()[s].NumPorts()+1) + int(out)) * 16
}

func (v *SL2VL) clone() *SL2VL {
	if v == nil {
		return nil
	}
	c := &SL2VL{v.graph, slices.Clone(v.tables)}
	for i := range c.tables {
		c.tables[i] = slices.Clone(c.tables[i])
	}
	return c
}

// SameFrom reports whether the paths from two terminals have equal service levels.
func (l *SL) SameFrom(t, u int) bool {
	row := func(t int) []uint8 {
		if l == nil || t >= len(l.Pair) {
			return nil
		}
		return l.Pair[t]
	}
	a, b := row(t), row(u)
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// SameInto reports whether packets that come in by two ports of switch s get equal lanes.
func (v *SL2VL) SameInto(s int, in, other uint8) bool {
	if in == other || v == nil || v.tables == nil || v.tables[s] == nil {
		return true
	}
	size := (v.graph.Switches()[s].NumPorts() + 1) * 16
	return slices.Equal(v.tables[s][int(in)*size:][:size], v.tables[s][int(other)*size:][:size])
}

// Used are the service levels that paths have, a bit each. Bit 0 is always set.
func (l *SL) Used() uint16 {
	used := uint16(1)
	if l == nil {
		return used
	}
	note := func(row []uint8) {
		mask := uint16(0)
		for _, sl := range row {
			mask |= 1 << (sl & 15)
		}
		used |= mask
	}
	note(l.Dest)
	var last *uint8
	for _, row := range l.Pair {
		if len(row) > 0 && &row[0] != last { // ports of a switch often share one
			last = &row[0]
			note(row)
		}
	}
	return used
}

// Lanes is how many virtual lanes paths can have: one more than the highest lane of
// any of their service levels.
func (r *Routes) Lanes() int { return r.SL2VL.Lanes(r.SL.Used()) }

// Lanes is one more than the highest lane of service levels, a bit each.
func (v *SL2VL) Lanes(used uint16) int {
	if v == nil {
		return 1
	}
	most := uint8(0)
	if slices.ContainsFunc(v.tables, func(t []uint8) bool { return t == nil }) {
		most = uint8(bits.Len16(used) - 1)
	}
	for s, t := range v.tables {
		ports := v.graph.Switches()[s].NumPorts() + 1
		for i, vl := range t {
			if used>>(i%16)&1 != 0 && vl < mad.DropVL && i/16%ports > 0 { // what goes to port 0 is on no link
				most = max(most, vl)
			}
		}
	}
	return int(most) + 1
}

// Direct reports whether service level n has lane n at all switches, or no lanes are used.
func (v *SL2VL) Direct() bool {
	if v == nil {
		return true
	}
	for _, t := range v.tables {
		for i, vl := range t {
			if int(vl) != i%16 {
				return false
			}
		}
	}
	return true
}

// DirectFor is Direct for service levels, a bit each, on links.
func (v *SL2VL) DirectFor(used uint16) bool {
	if v == nil {
		return used == 1
	}
	for s, t := range v.tables {
		ports := v.graph.Switches()[s].NumPorts() + 1
		for i, vl := range t {
			if sl := i % 16; used>>sl&1 != 0 && int(vl) != sl && i/16%ports > 0 {
				return false
			}
		}
	}
	return true
}

// ByLID are the service levels of paths from sources, terminals at which paths begin, without
// Pair. Nil: to some LID, the levels differ by source. The level from a source to its own LID does
// not matter.
func (l *SL) ByLID(g *graph.Graph, sources []int) *SL {
	if l == nil || l.Pair == nil {
		return l
	}
	by := &SL{}
	for lid := range int(g.Top()) + 1 {
		to, known, level := g.TerminalByLID(mad.LID(lid)), false, uint8(0)
		for _, t := range sources {
			if t == to || to < 0 {
				continue
			}
			sl := l.Of(t, mad.LID(lid))
			if known && sl != level {
				return nil
			}
			known, level = true, sl
		}
		by.Dest = append(by.Dest, level)
	}
	return by
}

// SetSL gives the paths from terminals to LIDs a service level. Without any lanes so
// far, SL n gets VL n.
func (r *Routes) SetSL(from []int, lids []mad.LID, sl uint8) error {
	if sl > 15 {
		return fmt.Errorf("service level %d: must be from 0 to 15", sl)
	}
	switch {
	case r.SL == nil:
		r.SL = &SL{}
	case r.SL.Shared:
		r.SL = r.SL.clone()
	}
	if r.SL2VL == nil {
		r.SL2VL = NewSL2VL(r.graph)
	}
	r.SL.Pair = append(r.SL.Pair, make([][]uint8, len(r.graph.Terminals())-len(r.SL.Pair))...)
	for _, t := range from {
		row := &r.SL.Pair[t]
		if *row == nil {
			*row = make([]uint8, int(r.top)+1)
			copy(*row, r.SL.Dest)
		}
		for _, lid := range lids {
			if lid > r.top {
				return fmt.Errorf("no path goes to LID %d; the highest is %d", lid, r.top)
			}
			*row = grown(*row, int(lid))
			(*row)[lid] = sl
		}
	}
	return nil
}

// grown makes i an index of list.
func grown(list []uint8, i int) []uint8 {
	if i < len(list) {
		return list
	}
	return append(list, slices.Repeat([]uint8{0}, i+1-len(list))...)
}

// ChangesLanes reports whether paths of one service level are on several virtual lanes, by the
// tables of switches.
func (r *Routes) ChangesLanes() bool { return !r.SL.Any() && r.Lanes() > 1 }

// RunInstead is the advice for paths with lanes, which OpenSM's engine file does not set.
func (r *Routes) RunInstead() string {
	return cmp.Or(r.RunInOpenSM, "opensm -Q -R dfsssp finds lanes of its own; without a subnet manager, set_sl2vl sets the lanes, and applications choose the service levels")
}
