package state

import (
	"encoding/binary"

	"fabsh/mad"
)

var multicastTop = mad.AttrSwitchInfo.Field("multicast_fdb_top")

// SetMFTs writes the entries of a group in the multicast forwarding tables: the
// links between its members, of a tree that a breadth-first search from the first
// one's switch finds. Without members no entries are written.
func (s *Subnet) SetMFTs(g *Group) {
	s.clearMFTs(g.MLID)
	tree := MulticastTree(g.Members)
	for n, ports := range tree {
		for _, num := range ports {
			s.addToMFT(n, g.MLID, num)
		}
	}
	if len(tree) > 0 {
		s.raiseMulticastTops(g.MLID)
	}
}

// SetAllMFTs writes the entries of all groups.
func (s *Subnet) SetAllMFTs() {
	for _, g := range s.Groups {
		if len(g.Members) > 0 {
			s.SetMFTs(g)
		}
	}
}

// raiseMulticastTops raises those of all switches, as OpenSM does (osm_mcast_mgr.c
// mcast_mgr_set_mfttop).
func (s *Subnet) raiseMulticastTops(mlid mad.LID) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.IsSwitch {
			n.RaiseMulticastTop(mlid)
		}
	}
}

// RaiseMulticastTop raises the MulticastFDBTop of switch n to mlid. 0 is not raised: it is not used.
func (n *Node) RaiseMulticastTop(mlid mad.LID) {
	if top := multicastTop.Uint(n.SwitchInfo[:]); top != 0 && top < uint64(mlid) {
		multicastTop.SetUint(n.SwitchInfo[:], uint64(mlid))
	}
}

// MulticastTree returns the ports of each switch through which packets to members
// leave: a tree of shortest paths from the first one's switch.
func MulticastTree(members []Member) map[*Node][]uint8 {
	ports := map[*Node][]uint8{}
	var root *Node
	var switches []*Node
	for _, m := range members {
		var at *Node
		switch p := m.Port; {
		case p.Node.IsSwitch:
			at = p.Node
			ports[at] = append(ports[at], 0)
		case p.Up && p.Peer.Node.IsSwitch:
			at = p.Peer.Node
			ports[at] = append(ports[at], p.Peer.Num)
		default:
			continue
		}
		switches = append(switches, at)
		if root == nil {
			root = at
		}
	}
	if root == nil {
		return nil
	}
	toward := map[*Node]*Port{root: nil} // the port of a switch toward the root
	for queue := []*Node{root}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := range n.Ports {
			far := n.Ports[i].Neighbour()
			if far == nil || !far.Node.IsSwitch {
				continue
			}
			if _, known := toward[far.Node]; !known {
				toward[far.Node] = far
				queue = append(queue, far.Node)
			}
		}
	}
	joined := map[*Node]bool{root: true}
	for _, n := range switches {
		for ; !joined[n] && toward[n] != nil; n = toward[n].Peer.Node {
			joined[n] = true
			up := toward[n]
			ports[n] = append(ports[n], up.Num)
			ports[up.Peer.Node] = append(ports[up.Peer.Node], up.Peer.Num)
		}
	}
	return ports
}

// mftPlace is where an MLID's mask of a port is: the block, and the offset in it.
func mftPlace(mlid mad.LID, num uint8) (block uint32, offset int) {
	entry := uint32(mlid - FirstMLID)
	return uint32(num/16)<<28 | entry/mad.MFTBlock, int(entry%mad.MFTBlock) * 2
}

func (s *Subnet) addToMFT(n *Node, mlid mad.LID, num uint8) {
	block, offset := mftPlace(mlid, num)
	key := BlockKey{Port: &n.Ports[0], Attr: MFTBlocks.Attr, Block: block}
	if s.Blocks[key] == nil {
		s.Blocks[key] = new([SMPSize]byte)
	}
	mask := s.Blocks[key][offset:]
	binary.BigEndian.PutUint16(mask, binary.BigEndian.Uint16(mask)|1<<(num%16))
}

// clearMFTs deletes the entries of an MLID.
func (s *Subnet) clearMFTs(mlid mad.LID) {
	for key, content := range s.Blocks {
		if block, offset := mftPlace(mlid, 0); key.Attr == MFTBlocks.Attr && key.Block&0x1ff == block {
			copy(content[offset:], []byte{0, 0})
		}
	}
}
