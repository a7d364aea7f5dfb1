package sim

import (
	"encoding/binary"
	"time"

	"fabsh/mad"
)

// forwarded is what became of a MAD that may be for another client.
type forwarded uint8

const (
	forAgent      forwarded = iota // an agent is to answer
	delivered                      // to a client
	undeliverable                  // it is for a program, and there is none, or no way to it
)

// forwardToClient delivers a MAD of from to the client that it is for: answers,
// and requests that the agents of a node leave to its software.
func (s *Subnet) forwardToClient(from *Client, m *Message) forwarded {
	class, method := mad.Class(m.MAD[mad.ClassOffset]), mad.Method(m.MAD[mad.MethodOffset])
	smp := class.Family() == mad.ClassSubn
	response := answers(method)
	switch {
	case response:
	case smp:
		if method != mad.MethodTrap && binary.BigEndian.Uint16(m.MAD[mad.AttributeOffset:]) != uint16(mad.AttrSMInfo.ID) {
			return forAgent
		}
	case m.DQP <= 1 && agents[class.Family()] != nil:
		return forAgent
	}
	if m.MAD[mad.BaseVersionOffset] != 1 || smp != (m.DQP == 0) {
		return undeliverable
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.tables()
	copied := *m
	at, turn := from.route(&copied, response)
	switch {
	case at == nil:
		return undeliverable
	case !response && at.endPort() == s.sm && (smp || class == mad.ClassSubnAdm):
		return forAgent
	}
	to := s.clientAt(at, &copied, class, method)
	switch {
	case to == nil && method.IsResponse():
		return undeliverable
	case to == nil:
		return forAgent // which says that it is not supported
	}
	if s.lossy {
		r := request{Subnet: s, Header: mad.ParseHeader(m.MAD[:]), from: from.port, in: at, turn: turn, mad: copied.MAD[:]}
		if response {
			r.from, r.in = at, from.port
		}
		if !r.survives(from.faults, &packet{mad: m.MAD}, response) {
			return undeliverable
		}
	}
	copied.SLID = m.SLID
	if class != mad.ClassSubnDirected && copied.SLID == 0 {
		copied.SLID = from.port.endPort().lid
	}
	switch {
	case response:
		from.settle(&copied, to)
	case to.isSM && !to.spoke:
		to.expect(&copied, from).early = true
		return delivered
	default:
		to.expect(&copied, from)
	}
	to.receive(&copied)
	return delivered
}

// answers: a MAD with that method answers another one; TrapRepress does, too, for
// OpenSM waits for it when it has sent a trap.
func answers(m mad.Method) bool { return m.IsResponse() || m == mad.MethodTrapRepress }

// route is the port where m, sent from c's port, arrives; nil if it does not. Of a
// directed route, turn is where its directed part ended, or that of the request did.
func (c *Client) route(m *Message, response bool) (at, turn *port) {
	b := m.MAD[:]
	switch {
	case mad.Class(b[mad.ClassOffset]) != mad.ClassSubnDirected:
		return forwardLID(c.port, m.DLID, m.DQP == 0), nil
	case !response:
		at, turn = forwardDirected(c.port, m.DLID, b)
		if at != nil {
			b[mad.StatusOffset] &^= directionBit // the program that answers sets it
		}
		return at, turn
	case b[mad.StatusOffset]&directionBit == 0, b[mad.HopPointerOffset] != 0, int(b[mad.HopCountOffset]) > mad.MaxHops:
		return nil, nil
	}
	drSLID, _ := drLIDs(b)
	at = c.port
	if m.DLID != mad.PermissiveLID {
		at = forwardLID(at, m.DLID, true)
	}
	turn = at
	for hop := int(b[mad.HopCountOffset]); at != nil && hop >= 1; hop-- {
		exit := int(b[mad.SMPReturnPathOffset+hop])
		if exit >= len(at.node.ports) || !at.node.isSwitch && at != c.port {
			return nil, nil
		}
		at = at.node.ports[exit].neighbour()
	}
	if at != nil && drSLID != mad.PermissiveLID {
		at = forwardLID(at, drSLID, true)
	}
	return at, turn
}

// startUp is how long a program takes to register for what it serves.
const startUp = time.Second

// clientAt is the client at a port that a MAD is for; nil: none.
//
// An answer is for the client whose number its transaction ID has. A request is
// for the client of the queue pair. To queue pairs 0 and 1, it is for the subnet
// manager, if that is whom it asks for; else for a client that has used the class,
// or has been there for a while
// and sent nothing, as servers do; or for who asked for all.
// libumad2sim crashes with what its program has not registered for.
func (s *Subnet) clientAt(p *port, m *Message, class mad.Class, method mad.Method) *Client {
	home := p.endPort()
	if answers(method) {
		// An agent's trap may have the number of a client that has sent none.
		slot := int(binary.BigEndian.Uint16(m.MAD[mad.TIDOffset:]))
		if slot < len(s.clients) && s.clients[slot] != nil && s.clients[slot].port.endPort() == home && (method.IsResponse() || s.clients[slot].traps) {
			return s.clients[slot]
		}
		return nil
	}
	toSM := class.Family() == mad.ClassSubn || class == mad.ClassSubnAdm && method != mad.MethodReport
	var best *Client
	score := 0
	for _, c := range s.clients {
		if c == nil || c.port.endPort() != home {
			continue
		}
		n := 0
		switch {
		case m.DQP > 1:
			if c.qp == m.DQP {
				n = 4
			}
		case toSM && c.isSM && !c.asks0:
			n = 3
		case toSM && (c.isSM || c.asks0):
			n = 2
		case toSM:
		case c.classes[class] && !c.isSM:
			n = 4
		case !c.spoke && !c.isSM && time.Since(c.since) > startUp:
			n = 3
		case c.classes[class]:
			n = 2
		case c.asks0:
			n = 1
		}
		if n > score {
			best, score = c, n
		}
	}
	return best
}
