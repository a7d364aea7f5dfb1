package state

import (
	"bytes"
	"encoding/binary"
	"slices"

	"fabsh/mad"
)

// Group is a multicast group.
type Group struct {
	mad.MCMemberRecord // as it was created
	Members            []Member
	WellKnown          bool // it remains without members
}

// Member is a member of a multicast group.
type Member struct {
	Port  *Port
	State mad.JoinState
	Proxy bool // another port joined for it
}

// GroupOf returns the group with an MGID, or nil.
func (s *Subnet) GroupOf(g mad.GID) *Group {
	if i := slices.IndexFunc(s.Groups, func(x *Group) bool { return x.MGID == g }); i >= 0 {
		return s.Groups[i]
	}
	return nil
}

// MemberOf returns the port's membership; nil if it is not a member.
func (g *Group) MemberOf(p *Port) *Member {
	if i := slices.IndexFunc(g.Members, func(m Member) bool { return m.Port == p }); i >= 0 {
		return &g.Members[i]
	}
	return nil
}

// FullMembers counts the full members. Without one the group is deleted.
func (g *Group) FullMembers() (n int) {
	for _, m := range g.Members {
		if m.State&FullMemberStates != 0 {
			n++
		}
	}
	return n
}

// broadcastGroup is the IPoIB broadcast group of the default partition, which
// always exists (opensm osm_prtn.c prtn_make_default).
func broadcastGroup() *Group {
	return &Group{WellKnown: true, MCMemberRecord: mad.MCMemberRecord{
		MGID: mad.MakeGID(0xff12401bffff0000, 0xffffffff), QKey: 0xb1b, MLID: FirstMLID, PKey: mad.DefaultPKey,
		MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, RateSelector: mad.SelectorExactly, Rate: mad.Rate10,
		PacketLifeTimeSelector: mad.LifeTimeSelectorExactly, PacketLifeTime: LifeTime,
		Scope: mad.ScopeLinkLocal, JoinState: mad.JoinStateFullMember,
	}}
}

const (
	FirstMLID = mad.MinMulticastLID
	LastMLID  = FirstMLID + MulticastCap - 1

	FullMemberStates = mad.JoinStateFullMember | mad.JoinStateSendOnlyFullMember

	// P_Keys without the bit of full membership (IBA 10.9.1.1).
	PKeyBase = 0x7fff
)

// AddGroup adds a group, in place of one with its MGID.
func (s *Subnet) AddGroup(g *Group) {
	s.Groups = append(slices.DeleteFunc(s.Groups, func(x *Group) bool { return x.MGID == g.MGID }), g)
	slices.SortFunc(s.Groups, func(a, b *Group) int { return bytes.Compare(a.MGID[:], b.MGID[:]) })
}

// AddMember adds a member; they are in the order of their LIDs.
func (g *Group) AddMember(m Member) {
	g.Members = append(g.Members, m)
	slices.SortFunc(g.Members, func(a, b Member) int { return int(a.Port.LID) - int(b.Port.LID) })
}

var switchInfoMulticastTop = mad.AttrSwitchInfo.Field("multicast_fdb_top")

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

// raiseMulticastTops raises MulticastFDBTop of all switches, as OpenSM does (osm_mcast_mgr.c
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
	if top := switchInfoMulticastTop.Uint(n.SwitchInfo[:]); top != 0 && top < uint64(mlid) {
		switchInfoMulticastTop.SetUint(n.SwitchInfo[:], uint64(mlid))
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
