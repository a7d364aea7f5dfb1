// Package adaptive has adaptive routing of a switch as a value: its forwarding tables, its
// port groups, and from these the ports that a packet may take.
//
//	switch.go Switch: what a switch is set to
//	table.go  Table: states, static ports and groups by LID
//	group.go  Groups: port groups and their sub-groups
//	ports.go  Ports: a set of ports
//	choice.go Choice: the ports that a packet may take
//	differ.go what two of them do differently
//	encode.go a Switch as bytes
//	describe.go the switches of a fabric in one line
//
// Names are those of the attributes: AdaptiveRoutingInfo, AdaptiveRoutingLFT and others in
// iba/ib_types.h of NVIDIA's OpenSM 5.24. A Switch may be read by several goroutines at once;
// writing is for one, while none reads.
package adaptive

import (
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

	// Assumed reports that only Tables were read, as of a file that has no settings. It is not
	// encoded.
	Assumed bool
}

// SLs is a set of service levels: bit n for SL n.
type SLs uint16

// AllSLs are all service levels.
const AllSLs SLs = 0xFFFF

// Has reports whether sl is in s.
func (s SLs) Has(sl uint8) bool { return s>>(sl&15)&1 != 0 }

// Transport is a transport service, or Any.
type Transport uint8

const (
	Any Transport = iota
	RC            // and XRC
	UC
	UD
	DC
)

// TransportNames are the names of transports, from RC on.
var transportNames = [...]string{"any", "rc", "uc", "ud", "dc"}

func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return "unknown"
}

// Transports is a set of transports.
type Transports uint8

// TransportSet is the set of the given transports.
func TransportSet(list ...Transport) (s Transports) {
	for _, t := range list {
		s |= 1 << t
	}
	return s
}

// Has reports whether t is in s.
func (s Transports) Has(t Transport) bool { return s>>t&1 != 0 }

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

// Table is that of a private LFT; nil: none.
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
