package sim

import (
	"errors"
	"fmt"

	"fabsh/mad"
)

// Unlink unplugs the cable of a port of the node with that GUID; Link plugs it
// in again. The agents of the switches at its ends send traps to the subnet
// manager, which reports them to its subscribers and sweeps: it makes the links
// that came up active, and computes the forwarding tables of all switches again.
func (s *Subnet) Unlink(node mad.GUID, num int) error {
	return s.changeCable(node, num, func(p *port) {
		p.unplugged, p.peer.unplugged = true, true
		if p.up {
			p.linkDown(mad.PortPhysicalStatePolling)
			s.linkChanged(p)
		}
	})
}

// Link plugs in the cable that Unlink unplugged.
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

// Silence makes a port lose all MADs, in both directions, while its link stays up
// (Options.Dead); or ends that.
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
	s.beforeChange()
	change(&n.ports[num])
	return nil
}

// RestartSM stops the subnet manager, and starts another on the node with that
// GUID; 0: on the same node. The new one does not know the state of the old one,
// such as its subscriptions.
func (s *Subnet) RestartSM(node mad.GUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sm
	if at == nil {
		return errors.New("the simulated fabric has no subnet manager of its own, which could be restarted")
	}
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
	if at.node.off {
		return fmt.Errorf("%s has no power, so that nothing runs there: reboot it, or name another node", at.node.label)
	}
	s.beforeChange()
	s.subscriptions, s.lastTID, s.sweeps = nil, 0, 0
	s.moveSM(at)
	s.sweep()
	return nil
}

// SMNode is the node of the subnet manager in this process; -1: there is none.
func (s *Subnet) SMNode() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.sm == nil {
		return -1
	}
	return s.index(s.sm.node)
}

// moveSM sets the LID of the subnet manager in all end ports.
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

// NodeGUIDs are the GUIDs of the nodes with that name.
func (s *Subnet) NodeGUIDs(name string) (list []mad.GUID) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range s.nodes {
		if s.nodes[i].name() == name {
			list = append(list, s.nodes[i].guid())
		}
	}
	return list
}

// NodesByName are the GUIDs of all nodes by name, for who has many names to look up.
func (s *Subnet) NodesByName() map[string][]mad.GUID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	byName := make(map[string][]mad.GUID, len(s.nodes))
	for i := range s.nodes {
		n := &s.nodes[i]
		byName[n.name()] = append(byName[n.name()], n.guid())
	}
	return byName
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

// linkChanged sends the traps of a change of the link at p, and sweeps. An agent
// repeats its trap until the subnet manager gets it: so one that had no route to
// it before the sweep is sent again afterwards.
func (s *Subnet) linkChanged(p *port) {
	undelivered := s.linkTraps(p)
	if s.sm == nil || s.sm.node.off {
		return // a program does that, if any; the traps are repeated
	}
	if !s.noSweep {
		s.sweep()
	}
	for _, n := range undelivered {
		s.linkTrap(n)
	}
}

// linkTraps sends traps of the switches at the ends of p's cable. It returns the
// switches whose traps were not delivered.
func (s *Subnet) linkTraps(p *port) (undelivered []*node) {
	ends := []*node{p.node}
	if p.peer != nil && p.peer.node != p.node {
		ends = append(ends, p.peer.node)
	}
	for _, n := range ends {
		if n.isSwitch && !s.linkTrap(n) {
			undelivered = append(undelivered, n)
		}
	}
	return undelivered
}

// linkTrap sends trap 128 of switch n.
func (s *Subnet) linkTrap(n *node) (delivered bool) {
	from := &n.ports[0]
	return s.trap(from, mad.NoticeTypeUrgent, 128, &mad.NoticeSwitch{LIDAddr: from.lid})
}

// gid is the GID of an end port.
func (p *port) gid() mad.GID { return mad.MakeGID(gidPrefix, p.guid) }
