package adaptive

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
)

// Table is the forwarding table of a private LFT, by LID. An entry takes 3.25 bytes.
type Table struct {
	Groups *Groups // which the entries number; tables of a switch may share them

	ports  []uint8
	groups []uint16
	states []uint8 // four a byte
}

// State is what a switch does with packets to a LID.
type State uint8

// States of AdaptiveRoutingLFT.
const (
	Bounded State = iota // adaptive; a flow keeps its port while its packets follow each other
	Free                 // adaptive; a choice for each packet
	Static               // the static port
	HBF                  // a port of the group by a hash of header fields
)

var stateNames = [...]string{"bounded", "free", "static", "hbf"}

func (s State) String() string { return stateNames[s&3] }

// Adaptive reports whether packets take the port with the least load.
func (s State) Adaptive() bool { return s == Bounded || s == Free }

// Entry is what a switch has for a LID.
type Entry struct {
	State State
	Port  uint8  // the static port
	Group uint16 // the number of the port group
}

// dropped is the entry of LIDs that were not set.
var dropped = Entry{State: Static, Port: mad.NoPort}

// allStatic are four entries that are Static.
const allStatic = uint8(Static | Static<<2 | Static<<4 | Static<<6)

// NewTable makes a table for the LIDs up to top, that drops all packets.
func NewTable(top mad.LID, groups *Groups) *Table {
	n := int(top) + 1
	return &Table{
		Groups: groups,
		ports:  slices.Repeat([]uint8{mad.NoPort}, n),
		groups: make([]uint16, n),
		states: slices.Repeat([]uint8{allStatic}, (n+3)/4),
	}
}

// Top is the last LID.
func (t *Table) Top() mad.LID { return mad.LID(len(t.groups) - 1) }

// Entry is the entry of lid; beyond the last LID, packets are dropped.
func (t *Table) Entry(lid mad.LID) Entry {
	if int(lid) >= len(t.groups) {
		return dropped
	}
	return Entry{t.state(lid), t.port(lid), t.groups[lid]}
}

func (t *Table) port(lid mad.LID) uint8 {
	if t.ports == nil {
		return mad.NoPort
	}
	return t.ports[lid]
}

func (t *Table) state(lid mad.LID) State { return State(t.states[lid/4] >> (lid % 4 * 2) & 3) }

// Set sets the entry of lid; LIDs beyond the last are ignored.
func (t *Table) Set(lid mad.LID, e Entry) {
	if int(lid) >= len(t.groups) {
		return
	}
	if t.ports != nil {
		t.ports[lid] = e.Port
	}
	t.SetChoice(lid, e.State, e.Group)
}

// SetChoice sets state and group of lid, whose static port stays.
func (t *Table) SetChoice(lid mad.LID, s State, group uint16) {
	t.groups[lid] = group
	shift := lid % 4 * 2
	t.states[lid/4] = t.states[lid/4]&^(3<<shift) | uint8(s&3)<<shift
}

// Ports are the static ports by LID, memory of t.
func (t *Table) Ports() []uint8 { return t.ports }

// WithPorts is t with other static ports, by LID, which it shares. Without any, it is for
// storing beside them, and all are mad.NoPort. LIDs beyond the end of ports are left out.
func (t *Table) WithPorts(ports []uint8) *Table {
	c := *t
	c.ports = nil
	if ports != nil {
		n := min(len(ports), len(t.groups))
		c.ports, c.groups = ports[:n:n], t.groups[:n:n]
	}
	return &c
}

// UpTo is t with LIDs up to top: memory of t where it has as many.
func (t *Table) UpTo(top mad.LID) *Table {
	n := int(top) + 1
	if n == len(t.groups) {
		return t
	}
	c := NewTable(top, t.Groups)
	copy(c.ports, t.ports)
	for lid := range min(n, len(t.groups)) {
		c.SetChoice(mad.LID(lid), t.state(mad.LID(lid)), t.groups[lid])
	}
	return c
}

// Clone is a copy with the groups, which it does not share with t.
func (t *Table) Clone() *Table {
	return &Table{Groups: t.Groups.Clone(), ports: slices.Clone(t.ports), groups: slices.Clone(t.groups), states: slices.Clone(t.states)}
}

// Groups are the port groups of a switch, by number: each has primary and secondary
// sub-groups. Equal sets take their memory once.
type Groups struct {
	subGroups int
	index     []uint16 // by group and sub-group: the place in sets
	sets      []Ports  // different ones, in the order of their first use; the first is empty
	at        map[Ports]uint16
}

// MaxGroups is the number of groups that a switch can have: GroupCap has 12 bits.
const MaxGroups = 1 << 12

// MaxSubGroups is the most sub-groups of a group: SubGrpsActive has 4 bits.
const MaxSubGroups = 1<<4 - 1

// NewGroups makes groups without ports, of so many sub-groups each.
func NewGroups(subGroups int) *Groups {
	return &Groups{subGroups: min(max(subGroups, 1), MaxSubGroups), sets: make([]Ports, 1)}
}

// SubGroups is the number of sub-groups of each group.
func (g *Groups) SubGroups() int { return g.subGroups }

// Len is one more than the highest group that was set.
func (g *Groups) Len() int {
	if g == nil {
		return 0
	}
	return len(g.index) / g.subGroups
}

// Set sets the ports of a sub-group, 0 being the primary one.
func (g *Groups) Set(group, sub int, ports Ports) error {
	switch {
	case group < 0 || group >= MaxGroups:
		return fmt.Errorf("group %d: must be from 0 to %d", group, MaxGroups-1)
	case sub < 0 || sub >= g.subGroups:
		return fmt.Errorf("sub-group %d of group %d: must be from 0 to %d", sub, group, g.subGroups-1)
	}
	if n := (group + 1) * g.subGroups; n > len(g.index) {
		g.index = append(g.index, make([]uint16, n-len(g.index))...)
	}
	g.index[group*g.subGroups+sub] = g.place(ports)
	return nil
}

// place is the place of a set in g.sets, to which it is added if it is new.
func (g *Groups) place(ports Ports) uint16 {
	if ports.Empty() {
		return 0
	}
	if g.at == nil {
		g.at = make(map[Ports]uint16, len(g.sets))
		for i, set := range g.sets {
			g.at[set] = uint16(i)
		}
	}
	i, ok := g.at[ports]
	if !ok {
		i = uint16(len(g.sets)) // MaxGroups*MaxSubGroups fits
		g.sets = append(g.sets, ports)
		g.at[ports] = i
	}
	return i
}

// Ports are the ports of a sub-group: none if it was not set.
func (g *Groups) Ports(group, sub int) Ports {
	if group < 0 || sub < 0 || group >= g.Len() || sub >= g.subGroups {
		return Ports{}
	}
	return g.sets[g.index[group*g.subGroups+sub]]
}

// All are the ports of all sub-groups of a group.
func (g *Groups) All(group int) (all Ports) {
	for sub := range g.subGroupsOf(group) {
		all = all.Union(g.Ports(group, sub))
	}
	return all
}

// Sets are the different sets of All, and for each group the place of its set. Both may be
// memory of g.
func (g *Groups) Sets() (of []uint16, sets []Ports) {
	switch {
	case g == nil:
		return nil, nil
	case g.subGroups == 1:
		return g.index, g.sets
	}
	at := map[Ports]uint16{}
	for group := range g.Len() {
		all := g.All(group)
		i, ok := at[all]
		if !ok {
			i = uint16(len(sets))
			at[all] = i
			sets = append(sets, all)
		}
		of = append(of, i)
	}
	return of, sets
}

// SubGroupsOf are the sub-groups of a group, the primary one first; nil if it was not set.
func (g *Groups) SubGroupsOf(group int) []Ports {
	var list []Ports
	for sub := range g.subGroupsOf(group) {
		list = append(list, g.Ports(group, sub))
	}
	return list
}

// subGroupsOf is the number of sub-groups of a group; 0 if it was not set.
func (g *Groups) subGroupsOf(group int) int {
	if group < 0 || group >= g.Len() {
		return 0
	}
	return g.subGroups
}

// Place is the lowest group that has these ports in its primary sub-group and no others, which
// is added behind the last if it is missing.
func (g *Groups) Place(ports Ports) (int, error) {
	for group := range g.Len() {
		if g.Ports(group, 0) == ports && g.All(group) == ports {
			return group, nil
		}
	}
	return g.Len(), g.Set(g.Len(), 0, ports)
}

// Clone is a copy that shares nothing with g.
func (g *Groups) Clone() *Groups {
	if g == nil {
		return nil
	}
	c := NewGroups(g.subGroups)
	c.index = append(c.index, g.index...)
	c.sets = append(c.sets[:0], g.sets...)
	return c
}

// Ports is a set of ports of a switch. It is comparable: equal sets are ==.
type Ports [4]uint64

// PortSet is the set of the given ports.
func PortSet(ports ...uint8) Ports {
	var s Ports
	for _, p := range ports {
		s.Add(p)
	}
	return s
}

// PortsOfMask is the set of a mask in attributes: port p is bit 1<<(p%8) of byte 31-p/8.
func PortsOfMask(mask [32]byte) (s Ports) {
	for i := range s {
		s[i] = binary.BigEndian.Uint64(mask[32-8*(i+1):])
	}
	return s
}

// Mask is the inverse of PortsOfMask.
func (s Ports) Mask() (mask [32]byte) {
	for i, w := range s {
		binary.BigEndian.PutUint64(mask[32-8*(i+1):], w)
	}
	return mask
}

// Add adds port p.
func (s *Ports) Add(p uint8) { s[p/64] |= 1 << (p % 64) }

// Remove removes port p.
func (s *Ports) Remove(p uint8) { s[p/64] &^= 1 << (p % 64) }

// Has reports whether p is in s.
func (s Ports) Has(p uint8) bool { return s[p/64]>>(p%64)&1 != 0 }

// Empty reports whether s has no port.
func (s Ports) Empty() bool { return s == Ports{} }

// First is the lowest port; 0 without ports.
func (s Ports) First() uint8 {
	for p := range s.All() {
		return p
	}
	return 0
}

// Len is the number of ports.
func (s Ports) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Union has the ports of both.
func (s Ports) Union(t Ports) Ports {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// All are the ports, in order.
func (s Ports) All() iter.Seq[uint8] {
	return func(yield func(uint8) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(uint8(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// String lists the ports, with ranges: "1-4,7"; "" without ports.
func (s Ports) String() string {
	var b strings.Builder
	first, last := -1, -1
	flush := func() {
		if first < 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
	}
	for p := range s.All() {
		if int(p) == last+1 && first >= 0 {
			last++
			continue
		}
		flush()
		first, last = int(p), int(p)
	}
	flush()
	return b.String()
}
