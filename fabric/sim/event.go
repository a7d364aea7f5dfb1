package sim

import (
	"bytes"
	"fmt"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Unlink pulls the cable off a port of the node with that GUID; Link plugs it
// in again. The agents of the switches at its ends tell the subnet manager, who
// tells its subscribers and sweeps: it sets up what links have come up, and the
// forwarding tables of all switches anew.
func (s *Subnet) Unlink(node mad.GUID, num int) error {
	return s.changeCable(node, num, func(p *port) {
		p.unplugged, p.peer.unplugged = true, true
		if p.up {
			p.linkDown(mad.PortPhysicalStatePolling)
			s.linkChanged(p)
		}
	})
}

// Link plugs in what Unlink has pulled.
func (s *Subnet) Link(node mad.GUID, num int) error {
	return s.changeCable(node, num, func(p *port) {
		p.unplugged, p.peer.unplugged = false, false
		if !p.up {
			if p.train(); p.up {
				s.linkChanged(p)
			}
		}
	})
}

// Silence makes a port lose all MADs, both ways, or no longer, although its
// link looks up (Options.Dead).
func (s *Subnet) Silence(node mad.GUID, num int, silent bool) error {
	return s.changeCable(node, num, func(p *port) { p.dead = silent })
}

func (s *Subnet) changeCable(node mad.GUID, num int, change func(*port)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodeByGUID(node)
	switch {
	case n == nil:
		return fmt.Errorf("the simulated fabric has no node with GUID %v", node)
	case num < 1 || num >= len(n.ports):
		return fmt.Errorf("%s has ports 1 to %d, no port %d", n.label, len(n.ports)-1, num)
	case n.ports[num].peer == nil:
		return fmt.Errorf("port %d of %s has no cable", num, n.label)
	}
	change(&n.ports[num])
	return nil
}

// RestartSM ends the subnet manager, and starts another on the node with that
// GUID; 0: where it was. It knows nothing of what the old one did, subscriptions
// above all.
func (s *Subnet) RestartSM(node mad.GUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sm
	if node != 0 {
		n := s.nodeByGUID(node)
		if n == nil {
			return fmt.Errorf("the simulated fabric has no node with GUID %v", node)
		}
		var err error
		if at, err = n.attachment(0); err != nil {
			return err
		}
	}
	s.subscriptions, s.lastTID, s.sweeps = nil, 0, 0
	s.moveSM(at)
	s.sweep()
	return nil
}

// moveSM tells all end ports where their subnet manager is.
func (s *Subnet) moveSM(to *port) {
	from := s.sm
	s.sm = to
	for i := range s.nodes {
		for _, p := range s.nodes[i].endPorts() {
			var info mad.PortInfo
			info.Decode(p.info[:])
			info.MasterSMLID = to.lid
			switch p {
			case to:
				info.CapabilityMask |= mad.CapabilityMaskIsSM
			case from:
				info.CapabilityMask &^= mad.CapabilityMaskIsSM
			}
			p.setInfo(&info)
		}
	}
}

// NodeGUIDs are those of the nodes with that name.
func (s *Subnet) NodeGUIDs(name string) (list []mad.GUID) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range s.nodes {
		if text, _, _ := bytes.Cut(s.nodes[i].desc[:], []byte{0}); string(text) == name {
			list = append(list, s.nodes[i].guid())
		}
	}
	return list
}

func (s *Subnet) nodeByGUID(guid mad.GUID) *node {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.guid() == guid {
			return n
		}
	}
	return nil
}

func (n *node) guid() mad.GUID { return mad.GUID(nodeInfoGUID.Uint(n.info[:])) }

var nodeInfoGUID = mad.AttrNodeInfo.Field("node_guid")

// linkChanged follows a change of the link at p: traps, and a sweep. An agent
// repeats its trap until it is heard; so one that had no way to the subnet
// manager before the sweep is sent once more after it.
func (s *Subnet) linkChanged(p *port) {
	late := s.linkTraps(p)
	if !s.noSweep {
		s.sweep()
	}
	for _, n := range late {
		s.linkTrap(n)
	}
}

// linkTraps has the switches at the ends of p's cable tell of its state. It
// returns those that nobody heard.
func (s *Subnet) linkTraps(p *port) (unheard []*node) {
	ends := []*node{p.node}
	if p.peer != nil && p.peer.node != p.node {
		ends = append(ends, p.peer.node)
	}
	for _, n := range ends {
		if n.isSwitch && !s.linkTrap(n) {
			unheard = append(unheard, n)
		}
	}
	return unheard
}

// linkTrap sends trap 128 of switch n to the subnet manager that it knows.
func (s *Subnet) linkTrap(n *node) (heard bool) {
	from := &n.ports[0]
	notice := mad.Notice{
		IsGeneric: true, Type: mad.NoticeTypeUrgent, ProducerType: mad.ProducerTypeSwitch,
		TrapNumber: 128, IssuerLID: from.lid,
	}
	details := mad.NoticeSwitch{LIDAddr: from.lid}
	details.Encode(notice.DataDetails[:])

	var info mad.PortInfo
	info.Decode(from.info[:])
	to := forwardLID(from, info.MasterSMLID, true)
	if to == nil {
		return false
	}
	if to = to.endPort(); to == s.sm {
		notice.IssuerGID = from.gid()
		s.report(&notice)
		return true
	}
	c := s.accepting[acceptKey{to, mad.ClassSubn, mad.MethodTrap}]
	if c == nil {
		return false
	}
	var call engine.Call
	var data [noticeSize]byte
	notice.Encode(data[:])
	call.PutSMP(mad.MethodTrap, mad.AttrSubnNotice.ID, 0, data[:])
	c.deliver(&packet{Address: engine.Address{LID: from.lid}, mad: call.MAD})
	return true
}

// gid is p's, an end port's.
func (p *port) gid() mad.GID { return mad.MakeGID(gidPrefix, p.guid) }
