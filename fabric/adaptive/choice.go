package adaptive

import (
	"math/bits"
	"slices"

	"fabsh/mad"
)

// Packet is what the choice of a port depends on.
type Packet struct {
	In        uint8 // the port that it comes in by; 0: it begins at the switch
	SL        uint8
	LID       mad.LID
	Transport Transport
	// Unhashed counts SL as one without HBF, at switches whose settings are Assumed.
	Unhashed bool
}

// Choice is what a switch does with a packet.
type Choice struct {
	PLFT  uint8 // the private LFT that it follows
	Entry       // of the LID

	// SubGroups are the ports of the group, primary sub-group first; nil where packets
	// never take these.
	SubGroups []Ports
	// Adaptive, Hashed and Direct report which ways of choosing apply: by load among the
	// group, by a hash among it, or the static port. For a packet of any transport several
	// may apply.
	Adaptive, Hashed, Direct bool
	// Recovers reports whether a packet takes a port of the group if the link of its own
	// port is down.
	Recovers bool
	// Ports are all ports that the packet may take; empty: it is dropped.
	Ports Ports
}

// Choose is what s does with a packet. down reports ports whose links are down; nil: none
// is. What of the group may be taken:
//
//   - adaptive packets take any port of any sub-group whose link is not down: which one is a
//     matter of load;
//   - hashed packets take any port of it; ports whose links are down lose packets, unless
//     the switch recovers;
//   - direct packets take the static port. Where the switch recovers, and the entry is for a
//     group, they may take any port of it, for links fail while packets are under way; where
//     the entry is Static, only if the link of the static port is down now: its group number
//     may be a rest.
//
// The states count as follows. Bounded and Free: packets whose SL and transport route
// adaptively are adaptive; the others are hashed if their SL has HBF, and else direct. HBF:
// packets are hashed if their SL has HBF, and else direct. Static: packets are direct. Where
// the settings are Assumed, packets of any transport may be both.
//
// s must be Active.
func (s *Switch) Choose(p Packet, down func(port uint8) bool) Choice {
	c := s.choose(s.PLFT(p.In, p.SL), p, down)
	if t := s.Table(c.PLFT); t != nil && (c.Adaptive || c.Hashed || c.Recovers) {
		c.SubGroups = t.Groups.SubGroupsOf(int(c.Group))
	}
	return c
}

// PortsOf are the Ports of Choose for packets to lid that follow a private LFT.
func (s *Switch) PortsOf(plft uint8, p Packet, lid mad.LID, down func(port uint8) bool) Ports {
	p.LID = lid
	return s.choose(plft, p, down).Ports
}

// choose is Choose without the sub-groups.
func (s *Switch) choose(plft uint8, p Packet, down func(port uint8) bool) Choice {
	t := s.Table(plft)
	if t == nil {
		return Choice{PLFT: plft, Entry: dropped, Direct: true}
	}
	c := Choice{PLFT: plft, Entry: t.Entry(p.LID)}
	s.modes(&c, p)
	isDown := func(port uint8) bool { return down != nil && down(port) }
	var all, up Ports
	if c.Adaptive || c.Hashed || s.FastRecovery {
		all = t.Groups.All(int(c.Group))
		up = all
		for port := range all.All() {
			if isDown(port) {
				up.Remove(port)
			}
		}
	}
	c.Recovers = s.FastRecovery && !up.Empty() && (c.Hashed || c.Direct && (c.State != Static || c.Port != mad.NoPort && isDown(c.Port)))
	if c.Adaptive || c.Hashed && s.FastRecovery || c.Recovers {
		c.Ports = up
	}
	if c.Hashed && !s.FastRecovery {
		c.Ports = all
	}
	if c.Direct && c.Port != mad.NoPort && !(c.Recovers && isDown(c.Port)) {
		c.Ports.Add(c.Port)
	}
	return c
}

// modes sets which ways of choosing apply.
func (s *Switch) modes(c *Choice, p Packet) {
	if c.State == Static {
		c.Direct = true
		return
	}
	some := true // transports that do not route adaptively
	if c.State.Adaptive() && p.Transport == Any && s.Enabled && s.SLs.Has(p.SL) {
		some = s.Static&allTransports != 0
		c.Adaptive = s.Static&allTransports != allTransports
	} else if c.State.Adaptive() {
		c.Adaptive = s.Adapts(p)
		some = !c.Adaptive
	}
	if some {
		c.Hashed = s.Hashes(p)
		c.Direct = !c.Hashed || s.Assumed && p.Transport == Any
	}
}

// Adapts reports whether p, of one transport, routes adaptively where the state of its LID does.
func (s *Switch) Adapts(p Packet) bool {
	return s.Enabled && s.SLs.Has(p.SL) && !s.Static.Has(p.Transport)
}

// Hashes reports whether p is hashed where the state of its LID is not Static and it does not
// route adaptively.
func (s *Switch) Hashes(p Packet) bool {
	return s.HBF && s.HBFSLs.Has(p.SL) && !(s.Assumed && p.Unhashed)
}

// Every is all ports that some packet to lid may take, whatever port it comes in by, and
// whatever its SL and transport; mad.NoPort is among them where some packets are dropped. s
// must be Active.
func (s *Switch) Every(lid mad.LID, down func(port uint8) bool) (all Ports) {
	plfts := uint64(0) // a bit each; there are at most 36
	for _, row := range s.Private {
		for _, plft := range row {
			plfts |= 1 << (plft & 63)
		}
	}
	if len(s.Private) == 0 {
		plfts = 1
	}
	for ; plfts != 0; plfts &= plfts - 1 {
		plft, seen := uint8(bits.TrailingZeros64(plfts)), uint8(0)
		for i := range uint8(16 * 4 * 2) {
			p := Packet{SL: i & 15, Transport: RC + Transport(i>>4&3), Unhashed: i>>6 != 0}
			kind := uint8(0)
			for i, is := range [...]bool{s.Adapts(p), s.Hashes(p)} {
				if is {
					kind |= 1 << i
				}
			}
			if seen>>kind&1 != 0 {
				continue
			}
			seen |= 1 << kind
			ports := s.PortsOf(plft, p, lid, down)
			if ports.Empty() {
				ports.Add(mad.NoPort)
			}
			all = all.Union(ports)
		}
	}
	return all
}

// Single is the choice of a switch that is not Active: the port of its forwarding table.
func Single(port uint8) Choice {
	c := Choice{Entry: Entry{State: Static, Port: port}, Direct: true}
	if port != mad.NoPort {
		c.Ports.Add(port)
	}
	return c
}

// Equal reports whether c and o let packets take equal ports, in equal ways.
func (c *Choice) Equal(o *Choice) bool {
	return c.Ports == o.Ports && c.Port == o.Port && c.State == o.State && slices.Equal(c.SubGroups, o.SubGroups)
}

// Differ returns a function that reports whether two switches, or one at two times, choose
// differently among ports for packets to a LID: by its state, its sub-groups, private LFT,
// service level or transport. Static ports do not matter. A switch that is not Active, or nil,
// routes statically. A nil function: they never differ.
func Differ(a, b *Switch) func(lid mad.LID) bool {
	if !a.Active() {
		a = &Switch{}
	}
	if !b.Active() {
		b = &Switch{}
	}
	plfts := max(len(a.Tables), len(b.Tables))
	if plfts == 0 {
		return nil
	}
	d := &difference{settings: !a.Assumed && !b.Assumed && !sameSettings(a, b), pairs: make([]tablePair, plfts)}
	for i := range d.pairs {
		d.pairs[i] = tablePair{a.Table(uint8(i)), b.Table(uint8(i)), map[[2]uint16]bool{}}
	}
	return d.differ
}

// difference compares LIDs.
type difference struct {
	settings bool // the settings of the switches differ
	pairs    []tablePair
}

// tablePair are the tables of a private LFT; nil: static.
type tablePair struct {
	a, b *Table
	same map[[2]uint16]bool // groups that were compared
}

func (d *difference) differ(lid mad.LID) bool {
	for i := range d.pairs {
		p := &d.pairs[i]
		x, y := dropped, dropped
		if p.a != nil {
			x = p.a.Entry(lid)
		}
		if p.b != nil {
			y = p.b.Entry(lid)
		}
		switch {
		case x.State != y.State:
			return true
		case x.State == Static:
			if i > 0 && x.Port != y.Port {
				return true
			}
		case d.settings || !p.sameGroups(x.Group, y.Group):
			return true
		}
	}
	return false
}

// sameGroups reports whether two groups have equal ports in each sub-group.
func (p *tablePair) sameGroups(x, y uint16) bool {
	if p.a == p.b && x == y {
		return true
	}
	key := [2]uint16{x, y}
	same, known := p.same[key]
	if !known {
		same = slices.Equal(p.a.Groups.SubGroupsOf(int(x)), p.b.Groups.SubGroupsOf(int(y)))
		p.same[key] = same
	}
	return same
}

// sameSettings reports whether both treat service levels, transports and ports alike.
func sameSettings(a, b *Switch) bool {
	if a.Enabled != b.Enabled || a.SLs != b.SLs || a.Static != b.Static || a.HBF != b.HBF || a.HBF && a.HBFSLs != b.HBFSLs || a.FastRecovery != b.FastRecovery {
		return false
	}
	for in := range max(len(a.Private), len(b.Private)) {
		for sl := range uint8(16) {
			if a.PLFT(uint8(in), sl) != b.PLFT(uint8(in), sl) {
				return false
			}
		}
	}
	return true
}
