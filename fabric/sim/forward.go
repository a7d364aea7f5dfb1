package sim

import (
	"encoding/binary"

	"fabsh/mad"
)

// directionBit is D, the top bit of a directed-route SMP's status: it returns
// (IBA 14.2.1.2).
const directionBit = 0x80

// maxLIDHops is when a packet in a forwarding loop is dropped. Switches drop it
// by its time in the fabric (IBA 18.2.5.4), also without a message.
const maxLIDHops = 64

// drLIDs are DrSLID and DrDLID of a directed-route SMP: the LIDs of the ports at
// which the LID-routed parts before and behind the directed one begin and end;
// permissive: there is no such part.
func drLIDs(m []byte) (slid, dlid mad.LID) {
	return mad.LID(binary.BigEndian.Uint16(m[mad.SMPDrSLIDOffset:])), mad.LID(binary.BigEndian.Uint16(m[mad.SMPDrSLIDOffset+2:]))
}

// forwardDirected follows the route of directed-route SMP m from port from, and
// returns the port at which it arrives, and the one at which the directed part
// ended; nil if it is dropped. Then m is as the requester gets it back: with the
// return path, hop pointer 0, and D set.
//
// The rules are those of IBA 14.2.2 (C14-9 for requests, C14-13 for responses).
// An SMP whose lid is not permissive is routed there by LID first, and if DrDLID
// is not permissive, by LID again from the end of the directed part.
func forwardDirected(from *port, lid mad.LID, m []byte) (in, end *port) {
	hops := int(m[mad.HopCountOffset])
	if m[mad.HopPointerOffset] != 0 || m[mad.StatusOffset]&directionBit != 0 || hops > mad.MaxHops {
		return nil, nil
	}
	drSLID, drDLID := drLIDs(m)
	at := from
	if lid != mad.PermissiveLID {
		if drSLID == mad.PermissiveLID { // no answer could come back
			return nil, nil
		}
		if at = forwardLID(from, lid, true); at == nil {
			return nil, nil
		}
	}
	initial, back := m[mad.SMPInitialPathOffset:], m[mad.SMPReturnPathOffset:]
	for hop := 1; hop <= hops; hop++ {
		exit := at.exitPort(initial[hop], at == from && hop == 1)
		if exit == nil {
			return nil, nil
		}
		if at = exit.neighbour(); at == nil {
			return nil, nil
		}
		back[hop] = at.num
	}
	end = at
	if drDLID != mad.PermissiveLID {
		if !at.node.isSwitch && at != from && !at.hasLID(drDLID) { // only switches forward
			return nil, nil
		}
		if at = forwardLID(at, drDLID, true); at == nil {
			return nil, nil
		}
	}
	m[mad.StatusOffset] |= directionBit
	return at, end
}

// canReturn: the answer to SMP m, which forwardDirected took from from to in, past
// end, can go back. It cannot where the Set itself took down a link of the route.
func canReturn(from, in, end *port, m []byte) bool {
	drSLID, drDLID := drLIDs(m)
	if drDLID != mad.PermissiveLID && !arrives(in, end) {
		return false
	}
	at, back := end, m[mad.SMPReturnPathOffset:]
	for hop := int(m[mad.HopCountOffset]); hop >= 1; hop-- {
		if at = at.node.ports[back[hop]].neighbour(); at == nil {
			return false
		}
	}
	if drSLID == mad.PermissiveLID {
		return true
	}
	to := forwardLID(at, drSLID, true)
	return to != nil && to.endPort() == from.endPort()
}

// arrives: an SMP from a port arrives at the LID of another.
func arrives(from, to *port) bool {
	at := forwardLID(from, to.endPort().lid, true)
	return at != nil && at.endPort() == to.endPort()
}

// exitPort is port num of the node that a directed route reached at p, to leave
// through it; nil if it cannot.
func (p *port) exitPort(num uint8, first bool) *port {
	switch {
	case num == 0 || int(num) >= len(p.node.ports):
		return nil
	case !p.node.isSwitch && (!first || num != p.num): // only switches forward
		return nil
	}
	return &p.node.ports[num]
}

// neighbour is the port at the other end of p's cable; nil if the link is down, or
// one of its ends loses all MADs.
func (p *port) neighbour() *port {
	if !p.up || p.dead || p.peer.dead {
		return nil
	}
	return p.peer
}

// forwardLID follows the linear forwarding tables from port from to dlid, and
// returns the port at which the packet arrives (of a switch: comes in); nil if it
// is dropped. All but SMPs need links that are active at both ends (IBA 7.2.7).
func forwardLID(from *port, dlid mad.LID, smp bool) *port {
	if dlid == 0 || dlid > mad.MaxUnicastLID {
		return nil
	}
	at := from
	for range maxLIDHops {
		out, arrived := at.nextHop(dlid, at == from)
		if arrived {
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

// nextHop is where a packet to dlid goes that came in through p, or is sent from
// there: it has arrived, or it leaves through out; nil: it is dropped.
func (p *port) nextHop(dlid mad.LID, sent bool) (out *port, arrived bool) {
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

// active: the link at p is active, and carries data.
func (p *port) active() bool {
	return p.up && p.state == mad.PortStateActive && p.peer.state == mad.PortStateActive
}

// hasLID: lid is one of p's 2^LMC LIDs.
func (p *port) hasLID(lid mad.LID) bool {
	return p.lid != 0 && lid&^(1<<p.lmc-1) == p.lid
}

// lftEntry is the port through which switch n forwards packets to dlid: 0 for its
// own LID, mad.NoPort where it drops them (IBA 18.2.4.3.1).
func (n *node) lftEntry(dlid mad.LID) uint8 {
	n.subnet.tables()
	if dlid > n.fdbTop || int(dlid) >= len(n.lft) {
		return mad.NoPort
	}
	return n.lft[dlid]
}
