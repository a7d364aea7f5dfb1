// Package adaptive has adaptive routing of a switch as a value: its forwarding tables, its
// port groups, and from these the ports that a packet may take.
//
// A Switch has Tables, one for each private LFT: they map LIDs to a state, a static port and a
// port group of Groups. Switch.Choose returns the Choice of ports for a packet; Switch.Append and
// Decode convert a Switch to bytes and back.
//
// Names come from the attributes: AdaptiveRoutingInfo, AdaptiveRoutingLFT and others in
// iba/ib_types.h of NVIDIA's OpenSM 5.24. A Switch is safe for concurrent reading; writing needs
// exclusive access.
package adaptive

import (
	"fmt"
	"strings"

	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Switch is the adaptive routing of a switch, as its attributes have it. Where it is not
// Active, the switch follows its linear forwarding table.
type Switch struct {
	// Unknown is the reason why the tables of the switch could not be determined; "": they
	// are known.
	Unknown string

	Enabled bool       // AdaptiveRoutingInfo.E
	SLs     SLs        // that route adaptively: EnableBySLMask, or AllSLs without BySLEn
	Static  Transports // that do not: DisRC, DisUC, DisUD, DisDC; 0 without ByTranspCap

	HBF      bool // HBFEn: packets that are not routed adaptively are hashed over the group
	HBFSLs   SLs  // of these, EnableBySLMaskHBF
	Weighted bool // WHBFEn: sub-groups have weights

	// FastRecovery is FREnabled: where the link of a port is down, the switch takes
	// another port of the group, also for packets that are routed statically.
	FastRecovery bool

	// Private has the private LFT, a number of Tables, of packets by the port that they
	// come in by and their SL; nil, and beyond its end: 0.
	Private [][16]uint8
	Tables  []*Table // by private LFT; nil: the switch drops its packets

	// Assumed reports that only Tables were read, as of a file that has no settings: which service
	// levels have HBF is unknown.
	Assumed bool
}

// SLs is a set of service levels: bit n for SL n.
type SLs uint16

// AllSLs are all service levels.
const AllSLs SLs = 0xFFFF

// Has reports whether sl is in s.
func (s SLs) Has(sl uint8) bool { return s>>(sl&15)&1 != 0 }

// String has the numbers in ranges: "0-3,7"; "none".
func (s SLs) String() string {
	var p Ports
	for sl := range uint8(16) {
		if s.Has(sl) {
			p.Add(sl)
		}
	}
	if p.Empty() {
		return "none"
	}
	return p.String()
}

// Transport is a transport service, or Any.
type Transport uint8

const (
	Any Transport = iota
	RC            // and XRC
	UC
	UD
	DC
)

// transportNames are the names of transports.
var transportNames = [...]string{"any", "rc", "uc", "ud", "dc"}

func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return "unknown"
}

// Transports is a set of transports.
type Transports uint8

// OpenSMStatic are the transports that OpenSM does not route adaptively by default
// (ar_transport_mask 0xA).
const OpenSMStatic = Transports(1<<UC | 1<<UD)

// TransportSet is the set of the given transports.
func TransportSet(list ...Transport) (s Transports) {
	for _, t := range list {
		s |= 1 << t
	}
	return s
}

// Has reports whether t is in s.
func (s Transports) Has(t Transport) bool { return s>>t&1 != 0 }

// String has the names: "UC, UD".
func (s Transports) String() string {
	var names []string
	for t := RC; t <= DC; t++ {
		if s.Has(t) {
			names = append(names, strings.ToUpper(t.String()))
		}
	}
	return strings.Join(names, ", ")
}

// allTransports are RC to DC.
const allTransports = Transports(1<<RC | 1<<UC | 1<<UD | 1<<DC)

// Active reports whether the switch follows Tables, not its linear forwarding table.
func (s *Switch) Active() bool { return s != nil && (s.Enabled || s.HBF) }

// PLFT is the private LFT of packets that come in by a port with a service level.
func (s *Switch) PLFT(in, sl uint8) uint8 {
	if int(in) >= len(s.Private) {
		return 0
	}
	return s.Private[in][sl&15]
}

// Table is the table of a private LFT; nil: none.
func (s *Switch) Table(plft uint8) *Table {
	if int(plft) >= len(s.Tables) {
		return nil
	}
	return s.Tables[plft]
}

// Top is the highest LID of all tables.
func (s *Switch) Top() (top mad.LID) {
	for _, t := range s.Tables {
		if t != nil {
			top = max(top, t.Top())
		}
	}
	return top
}

// Clone is a copy that shares nothing with s.
func (s *Switch) Clone() *Switch {
	if s == nil {
		return nil
	}
	c := *s
	c.Private = append([][16]uint8(nil), s.Private...)
	c.Tables = make([]*Table, len(s.Tables))
	groups := map[*Groups]*Groups{}
	for i, t := range s.Tables {
		if t == nil {
			continue
		}
		c.Tables[i] = t.Clone()
		if known, ok := groups[t.Groups]; ok {
			c.Tables[i].Groups = known
		}
		groups[t.Groups] = c.Tables[i].Groups
	}
	return &c
}

// Describe is one line on the adaptive routing of the switches of a fabric; nil are switches
// without any. "": it is off everywhere.
func Describe(switches []*Switch) string {
	on, unknown, hashing, recovering := 0, 0, 0, 0
	var masks []SLs
	var static []Transports
	smallest, largest := 0, 0
	for _, s := range switches {
		if s != nil && s.Unknown != "" {
			unknown++
		}
		if !s.Active() {
			continue
		}
		on++
		if s.HBF {
			hashing++
		}
		if s.FastRecovery {
			recovering++
		}
		masks, static = distinct(masks, s.SLs), distinct(static, s.Static)
		for _, t := range s.Tables {
			if t == nil {
				continue
			}
			for group := range t.Groups.Len() {
				if n := t.Groups.All(group).Len(); n > 0 {
					largest = max(largest, n)
					if smallest == 0 || n < smallest {
						smallest = n
					}
				}
			}
		}
	}
	if on == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("on at %d of %s", on, plural.Count(len(switches), "switch", "switches"))}
	if len(masks) == 1 {
		parts = append(parts, "SLs "+masks[0].String())
	} else {
		parts = append(parts, "different SLs")
	}
	if len(static) == 1 && static[0] != 0 {
		parts = append(parts, "not "+static[0].String())
	} else if len(static) > 1 {
		parts = append(parts, "different transports")
	}
	switch {
	case largest == 0:
	case smallest == largest:
		parts = append(parts, "groups of "+plural.Count(largest, "port", "ports"))
	default:
		parts = append(parts, fmt.Sprintf("groups of %d to %d ports", smallest, largest))
	}
	for _, x := range []struct {
		n    int
		what string
	}{{hashing, "hash-based forwarding at %d"}, {recovering, "fast recovery at %d"}, {unknown, "unknown at %d"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf(x.what, x.n))
		}
	}
	return strings.Join(parts, "; ")
}

// distinct is list with x, once.
func distinct[T comparable](list []T, x T) []T {
	for _, y := range list {
		if x == y {
			return list
		}
	}
	return append(list, x)
}
