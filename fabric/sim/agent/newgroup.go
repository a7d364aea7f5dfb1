package agent

import (
	"encoding/binary"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// makeGroup creates the group that p requests.
func (r *saRequest) makeGroup(p *state.Port, asked mad.MCMemberRecord, mask uint64) (*state.Group, mad.Status) {
	switch {
	case asked.JoinState&state.FullMemberStates == 0:
		return nil, mad.StatusRequestInvalid
	case mask&createComponents != createComponents:
		return nil, mad.StatusInsufficient
	case asked.MGID == mad.GID{}:
		asked.MGID = r.newMGID(&asked, mask)
	case !r.validMGID(asked.MGID):
		return nil, mad.StatusRequestInvalid
	}
	if !chooseMTUAndRate(&asked, mask, p) {
		return nil, mad.StatusRequestInvalid
	}
	if asked.MLID = r.freeMLID(asked.MLID); asked.MLID == 0 {
		return nil, mad.StatusNoResources
	}
	asked.MTUSelector, asked.RateSelector = mad.SelectorExactly, mad.SelectorExactly
	asked.PacketLifeTimeSelector = mad.LifeTimeSelectorExactly
	return &state.Group{MCMemberRecord: asked}, mad.StatusOK
}

// newMGID is an MGID that the subnet administrator chooses.
func (r *saRequest) newMGID(asked *mad.MCMemberRecord, mask uint64) mad.GID {
	scope := mad.ScopeLinkLocal
	if mask&groupComponents("scope") != 0 {
		scope = asked.Scope
	}
	g := mad.MakeGID(0, 0)
	copy(g[:], []byte{0xff, 0x10 | byte(scope), 0xa0, 0x1b})
	binary.BigEndian.PutUint64(g[4:], state.GIDPrefix)
	for {
		binary.LittleEndian.PutUint32(g[10:], r.SA.madeMGIDs)
		r.SA.madeMGIDs++
		if r.SA.subnet.GroupOf(g) == nil {
			return g
		}
	}
}

// validMGID reports whether a group may have the MGID (IBA 4.1.1). An IPoIB group
// needs the broadcast group of its partition.
func (r *saRequest) validMGID(g mad.GID) bool {
	signature := binary.BigEndian.Uint16(g[2:])
	switch {
	case g[0] != 0xff:
		return false
	case signature == 0x401b, signature == 0x601b:
		broadcast := mad.MakeGID(0xff10401b00000000, 0xffffffff)
		broadcast[1] |= g[1] & 0xf
		copy(broadcast[4:6], g[4:6])
		return g == broadcast || r.SA.subnet.GroupOf(broadcast) != nil
	}
	return g[1]&0xe0 == 0 && (signature != 0xa01b || g[1]&0xf != byte(mad.ScopeLinkLocal))
}

// freeMLID returns the wanted MLID if it is free, else the lowest free one; 0: all are in
// use.
func (r *saRequest) freeMLID(want mad.LID) mad.LID {
	used := map[mad.LID]bool{}
	for _, g := range r.SA.subnet.Groups {
		used[g.MLID] = true
	}
	if want >= state.FirstMLID && want <= state.LastMLID && !used[want] {
		return want
	}
	for lid := mad.LID(state.FirstMLID); lid <= state.LastMLID; lid++ {
		if !used[lid] {
			return lid
		}
	}
	return 0
}

// chooseMTUAndRate gives a new group the MTU and the rate of p, or those that the request
// contains. It returns false if no value matches.
func chooseMTUAndRate(g *mad.MCMemberRecord, mask uint64, p *state.Port) bool {
	mtu := p.MTU
	if hasBoth(mask, groupMTU) {
		switch g.MTUSelector {
		case mad.SelectorGreaterThan:
			if g.MTU >= p.MTU {
				return false
			}
		case mad.SelectorLessThan:
			mtu = min(g.MTU-1, p.MTU)
		case mad.SelectorExactly:
			mtu = g.MTU
		}
	}
	rate := int(p.Rate)
	if hasBoth(mask, groupRate) {
		asked := halfGbps(g.Rate)
		switch g.RateSelector {
		case mad.SelectorGreaterThan:
			if asked >= rate {
				return false
			}
		case mad.SelectorLessThan:
			rate = min(asked-1, rate)
		case mad.SelectorExactly:
			rate = asked
		}
	}
	if mtu < mad.MTU256 || mtu > mad.MTU4096 || rate < halfGbps(mad.Rate2_5) {
		return false
	}
	g.MTU, g.Rate = mtu, RateCode(uint16(rate))
	return true
}

func hasBoth(mask uint64, components [2]uint64) bool {
	return mask&components[0] != 0 && mask&components[1] != 0
}

// samePartition reports whether ports with the two P_Keys can communicate (IBA 10.9.1.1).
func samePartition(a, b uint16) bool {
	return a&state.PKeyBase == b&state.PKeyBase && (a|b)&^state.PKeyBase != 0
}

// matchesGroup reports whether the components in the request are those of the group,
// except those of a member.
func (r *saRequest) matchesGroup(g *state.Group, mask uint64) bool {
	q := newQuery(mad.AttrMCMemberRecord, mask&^notComparedInJoin, r.Data)
	q.add(&g.MCMemberRecord)
	var asked mad.MCMemberRecord
	asked.Decode(r.Data)
	return len(q.records) > 0 && (mask&pkeyComponent == 0 || samePartition(asked.PKey, g.PKey))
}

var (
	groupMTU  = [2]uint64{groupComponents("mtu_selector"), groupComponents("mtu")}
	groupRate = [2]uint64{groupComponents("rate_selector"), groupComponents("rate")}
)

// matchesSelectors reports whether MTU and rate of the group match the request's
// selectors. As in OpenSM, the packet lifetime does not count.
func matchesSelectors(asked *mad.MCMemberRecord, mask uint64, g *mad.MCMemberRecord) bool {
	return (mask&groupMTU[0] == 0 || selectorHolds(asked.MTUSelector, int(g.MTU), int(asked.MTU))) &&
		(mask&groupRate[0] == 0 || selectorHolds(asked.RateSelector, halfGbps(g.Rate), halfGbps(asked.Rate)))
}
