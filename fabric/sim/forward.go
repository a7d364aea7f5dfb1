package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// Bytes of a MAD's header (IBA 13.4.3), and of a directed-route SMP's (IBA 14.2.1.2).
const (
	attributeByte  = 16
	statusByte     = 4 // its top bit is D: on the way back
	hopPointerByte = 6
	hopCountByte   = 7
	directionBit   = 0x80
)

// maxLIDHops ends the trip of a packet that goes round in circles. Hardware
// does it by time (IBA 18.2.5.4, the switch's life time), which is as silent.
const maxLIDHops = 64

// forwardDirected follows the directed route of SMP m that leaves from, and returns the
// port it arrives at; nil when it is discarded on the way. On success m is as
// the requester gets it back: return path filled, hop pointer 0, D set.
//
// The rules are those of IBA 14.2.2 (C14-9 going out, C14-13 coming back).
// Routes with a LID-routed part, whose DrSLID or DrDLID is not permissive, are
// discarded, as by ibsim.
func forwardDirected(from *port, m []byte) *port {
	hops := int(m[hopCountByte])
	if m[hopPointerByte] != 0 || m[statusByte]&directionBit != 0 || hops > mad.MaxHops {
		return nil
	}
	if dlid := binary.BigEndian.Uint32(m[mad.SMPDrSLIDOffset:]); dlid != 0xffff_ffff { // both of them
		return nil
	}
	initial, back := m[mad.SMPInitialPathOffset:], m[mad.SMPReturnPathOffset:]
	at := from
	for hop := 1; hop <= hops; hop++ {
		exit := at.exitPort(initial[hop], hop == 1)
		if exit == nil {
			return nil
		}
		if at = exit.neighbour(); at == nil {
			return nil
		}
		back[hop] = at.num
	}
	m[statusByte] |= directionBit
	return at
}

// canReturn tells whether the answer to SMP m, which direct took to at, finds
// its way back: a Set may have taken down the links that it came by.
func canReturn(at *port, m []byte) bool {
	back := m[mad.SMPReturnPathOffset:]
	for hop := int(m[hopCountByte]); hop >= 1; hop-- {
		if at = at.node.ports[back[hop]].neighbour(); at == nil {
			return false
		}
	}
	return true
}

// exitPort is the port through which a directed route goes on from the node that
// it reached at p; nil when it cannot.
func (p *port) exitPort(num uint8, first bool) *port {
	switch {
	case num == 0 || int(num) >= len(p.node.ports):
		return nil
	case !p.node.isSwitch && (!first || num != p.num): // others than switches forward nothing
		return nil
	}
	return &p.node.ports[num]
}

// neighbour follows the cable at p and returns the port at its other end; nil when
// the link is down or loses everything.
func (p *port) neighbour() *port {
	if !p.up || p.dead || p.peer.dead {
		return nil
	}
	return p.peer
}

// forwardLID follows the linear forwarding tables from port from to dlid and
// returns the port it arrives at (of a switch: by which it came in); nil when
// it is dropped. All but SMPs need links that are active at both ends (IBA 7.2.7).
func forwardLID(from *port, dlid mad.LID, smp bool) *port {
	if dlid == 0 || dlid > mad.MaxUnicastLID {
		return nil
	}
	at := from
	for range maxLIDHops {
		out, there := at.nextHop(dlid, at == from)
		if there {
			return at
		}
		if out == nil || !smp && !out.active() {
			return nil
		}
		if at = out.neighbour(); at == nil {
			return nil
		}
	}
	return nil
}

// nextHop is what a packet to dlid does that has come to p, or is sent from
// there: it is there, or it leaves through out; nil: it is dropped.
func (p *port) nextHop(dlid mad.LID, sent bool) (out *port, there bool) {
	n := p.node
	if !n.isSwitch {
		switch {
		case p.hasLID(dlid):
			return nil, true
		case sent:
			return p, false
		}
		return nil, false
	}
	num := n.lftEntry(dlid)
	switch {
	case num == 0:
		return nil, n.ports[0].hasLID(dlid)
	case int(num) >= len(n.ports):
		return nil, false
	}
	return &n.ports[num], false
}

// active: the link at p carries more than SMPs.
func (p *port) active() bool {
	return p.up && p.state == mad.PortStateActive && p.peer.state == mad.PortStateActive
}

// hasLID: packets to lid end at p.
func (p *port) hasLID(lid mad.LID) bool {
	return p.lid != 0 && lid&^(1<<p.lmc-1) == p.lid
}

// lftEntry is the port through which switch n sends dlid on: 0 for itself,
// mad.NoPort for nowhere (IBA 18.2.4.3.1).
func (n *node) lftEntry(dlid mad.LID) uint8 {
	if dlid > n.fdbTop || int(dlid) >= len(n.lft) {
		return mad.NoPort
	}
	return n.lft[dlid]
}
