package state

import (
	"bytes"
	"slices"

	"fabsh/mad"
)

// Group is a multicast group.
type Group struct {
	mad.MCMemberRecord // as it was created
	Members            []Member
	WellKnown          bool // it remains without members
}

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
