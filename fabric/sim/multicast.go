package sim

import (
	"encoding/binary"
	"slices"

	"fabsh/mad"
)

// setMFTs writes the entries of a group in the multicast forwarding tables: the
// links between its members, of a tree that a breadth-first search from the first
// one's switch finds. Without members there are none.
func (s *Subnet) setMFTs(g *group) {
	s.clearMFTs(g.MLID)
	tree := s.multicastTree(g)
	for n, ports := range tree {
		for _, num := range ports {
			s.addToMFT(n, g.MLID, num)
		}
	}
}

// setAllMFTs writes the entries of all groups.
func (s *Subnet) setAllMFTs() {
	for _, g := range s.groups {
		if len(g.members) > 0 {
			s.setMFTs(g)
		}
	}
}

// multicastTree are the ports of each switch through which a group's packets leave.
func (s *Subnet) multicastTree(g *group) map[*node][]uint8 {
	ports := map[*node][]uint8{}
	var root *node
	var members []*node
	for _, m := range g.members {
		var at *node
		switch p := m.port; {
		case p.node.isSwitch:
			at = p.node
			ports[at] = append(ports[at], 0)
		case p.up && p.peer.node.isSwitch:
			at = p.peer.node
			ports[at] = append(ports[at], p.peer.num)
		default:
			continue
		}
		members = append(members, at)
		if root == nil {
			root = at
		}
	}
	if root == nil {
		return nil
	}
	toward := map[*node]*port{root: nil} // the port of a switch toward the root
	for queue := []*node{root}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.ports {
			far := n.ports[i].neighbour()
			if far == nil || !far.node.isSwitch {
				continue
			}
			if _, known := toward[far.node]; !known {
				toward[far.node] = far
				queue = append(queue, far.node)
			}
		}
	}
	joined := map[*node]bool{root: true}
	for _, n := range members {
		for ; !joined[n] && toward[n] != nil; n = toward[n].peer.node {
			joined[n] = true
			up := toward[n]
			ports[n] = append(ports[n], up.num)
			ports[up.peer.node] = append(ports[up.peer.node], up.peer.num)
		}
	}
	return ports
}

// mftPlace is where an MLID's mask of a port is: the block, and the offset in it.
func mftPlace(mlid mad.LID, num uint8) (block uint32, offset int) {
	entry := uint32(mlid - firstMLID)
	return uint32(num/16)<<28 | entry/mad.MFTBlock, int(entry%mad.MFTBlock) * 2
}

func (s *Subnet) addToMFT(n *node, mlid mad.LID, num uint8) {
	block, offset := mftPlace(mlid, num)
	key := blockKey{&n.ports[0], mftBlocks.attr, block}
	if s.blocks[key] == nil {
		s.blocks[key] = new([smpSize]byte)
	}
	mask := s.blocks[key][offset:]
	binary.BigEndian.PutUint16(mask, binary.BigEndian.Uint16(mask)|1<<(num%16))
}

// clearMFTs deletes the entries of an MLID.
func (s *Subnet) clearMFTs(mlid mad.LID) {
	for key, content := range s.blocks {
		if block, offset := mftPlace(mlid, 0); key.attr == mftBlocks.attr && key.block&0x1ff == block {
			copy(content[offset:], []byte{0, 0})
		}
	}
}

// leaveAll ends the memberships of a port that is out of service (opensm
// osm_drop_mgr.c drop_mgr_remove_port).
func (s *Subnet) leaveAll(p *port) {
	for _, g := range slices.Clone(s.groups) {
		before := len(g.members)
		g.members = slices.DeleteFunc(g.members, func(m member) bool { return m.port == p })
		if len(g.members) < before {
			s.dissolve(g)
			s.setMFTs(g)
		}
	}
}

// dissolve deletes a group that has no full members any more.
func (s *Subnet) dissolve(g *group) {
	if g.fullMembers() > 0 {
		return
	}
	s.reportGID(67, g.MGID)
	g.members = nil
	s.groups = slices.DeleteFunc(s.groups, func(x *group) bool { return x == g && !g.wellKnown })
}
