package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"fabsh/mad"
)

// AddGroup makes a multicast group, whatever its properties, with members, each a
// port by its cable. One that has the MGID goes. The forwarding tables carry the
// group, along a tree, to all members that receive.
func (s *Subnet) AddGroup(rec mad.MCMemberRecord, state mad.JoinState, members ...Cable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &group{MCMemberRecord: rec}
	for _, c := range members {
		p, err := s.portAt(c.Node, c.Num)
		if err != nil {
			return err
		}
		if p.endPort().lid == 0 {
			return fmt.Errorf("port %d of %s has no LID", p.num, p.node.label)
		}
		g.members = append(g.members, member{port: p.endPort(), state: state})
	}
	slices.SortFunc(g.members, func(a, b member) int { return int(a.port.lid) - int(b.port.lid) })
	s.groups = append(slices.DeleteFunc(s.groups, func(x *group) bool { return x.MGID == rec.MGID }), g)
	slices.SortFunc(s.groups, func(a, b *group) int { return bytes.Compare(a.MGID[:], b.MGID[:]) })
	return s.routeGroup(g)
}

// DropGroup takes a multicast group away; its forwarding tables stay.
func (s *Subnet) DropGroup(mgid mad.GID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = slices.DeleteFunc(s.groups, func(x *group) bool { return x.MGID == mgid })
}

// receives: members of the state get the packets of the group (IBA 15.2.5.17).
func receives(state mad.JoinState) bool {
	return state&(mad.JoinStateFullMember|mad.JoinStateNonMember) != 0
}

// routeGroup enters a group into the multicast forwarding tables: a tree of
// shortest paths from the switch of the first member that receives.
func (s *Subnet) routeGroup(g *group) error {
	ends := map[*node][]uint8{} // ports to members, by switch
	var root *node
	for _, m := range g.members {
		at := m.port
		if !receives(m.state) {
			continue
		}
		if !at.node.isSwitch {
			if at = at.neighbour(); at == nil || !at.node.isSwitch {
				continue
			}
		}
		ends[at.node] = append(ends[at.node], at.num)
		if root == nil {
			root = at.node
		}
	}
	if root == nil {
		return nil
	}
	up := map[*node]*port{root: nil} // the port to the switch before
	order := []*node{root}
	for i := 0; i < len(order); i++ {
		for num := range order[i].ports {
			p := &order[i].ports[num]
			q := p.neighbour()
			if q == nil || !q.node.isSwitch {
				continue
			}
			if _, seen := up[q.node]; !seen {
				up[q.node] = q
				order = append(order, q.node)
			}
		}
	}
	for _, n := range slices.Backward(order) {
		p := up[n]
		if len(ends[n]) > 0 && p != nil {
			ends[n] = append(ends[n], p.num)
			ends[p.peer.node] = append(ends[p.peer.node], p.peer.num)
		}
	}
	for n, nums := range ends {
		for _, num := range nums {
			if err := s.multicastEntry(n, g.MLID, num, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// EditMulticast has a switch forward a multicast LID through a port, or not.
func (s *Subnet) EditMulticast(node mad.GUID, lid mad.LID, num uint8, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portAt(node, 0)
	if err != nil {
		return err
	}
	return s.multicastEntry(p.node, lid, num, on)
}

func (s *Subnet) multicastEntry(n *node, lid mad.LID, num uint8, on bool) error {
	row := int(lid) - int(firstMLID)
	modifier := uint32(num/16)<<28 | uint32(row/mad.MFTBlock)
	if row < 0 || !n.isSwitch {
		return fmt.Errorf("%s has no entry for multicast LID %#x", n.label, lid)
	}
	return s.editTable(mftBlocks, &n.ports[0], modifier, func(data []byte) {
		at := data[2*(row%mad.MFTBlock):]
		mask := binary.BigEndian.Uint16(at) &^ (1 << (num % 16))
		if on {
			mask |= 1 << (num % 16)
		}
		binary.BigEndian.PutUint16(at, mask)
	})
}
