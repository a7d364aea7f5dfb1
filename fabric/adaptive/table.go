package adaptive

import (
	"slices"

	"fabsh/mad"
)

// State is what a switch does with packets to a LID.
type State uint8

// The states are those of AdaptiveRoutingLFT.
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

// Table is the forwarding table of a private LFT, by LID. An entry takes 3.25 bytes.
type Table struct {
	Groups *Groups // which the entries number; tables of a switch may share them

	ports  []uint8
	groups []uint16
	states []uint8 // four a byte
}

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

// Entry is that of lid; beyond the last LID, packets are dropped.
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
