package agent

import (
	"encoding/binary"
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Components of MCMemberRecord: what a Set or Delete needs, and what it takes to create a
// group.
var (
	groupJoinComponents   = groupComponents("mgid", "port_gid", "join_state")
	groupCreateComponents = groupJoinComponents | groupComponents("q_key", "tclass", "p_key", "flow_label", "sl")
	groupPort             = groupComponents("port_gid")
	groupPKey             = groupComponents("p_key")
	// Components of a query that are not simply compared.
	groupNotCompared = groupComponents("port_gid", "p_key", "mtu_selector", "mtu", "rate_selector", "rate",
		"packet_life_time_selector", "packet_life_time")
	// Components of a join that are not simply compared: the ones of the member, and
	// groupNotCompared.
	groupNotComparedInJoin = groupNotCompared | groupComponents("mlid", "scope", "join_state", "proxy_join")
)

func groupComponents(scripts ...string) (mask uint64) {
	for _, s := range scripts {
		mask |= mad.AttrMCMemberRecord.Field(s).Mask()
	}
	return mask
}

// changeGroup makes a port join or leave a group.
func (r *saRequest) changeGroup(mask uint64, _ bool) mad.Status {
	var asked mad.MCMemberRecord
	asked.Decode(r.Data)
	if mask&groupJoinComponents != groupJoinComponents {
		return mad.StatusInsufficient
	}
	if asked.PortGID.Prefix() != state.GIDPrefix {
		return mad.StatusInvalidGID
	}
	p := r.SA.subnet.EndPortByGUID(asked.PortGID.GUID())
	if p == nil {
		return mad.StatusRequestInvalid
	}
	g := r.SA.subnet.GroupOf(asked.MGID)
	var status mad.Status
	if r.Method == mad.MethodSet {
		status = r.join(p, &asked, mask)
	} else {
		status = r.leave(p, &asked)
	}
	if status == mad.StatusOK {
		if g == nil { // it was created, perhaps with an MGID of its own
			g = r.SA.subnet.GroupOf(asked.MGID)
		}
		r.SA.subnet.SetMFTs(g)
		asked.MTUSelector, asked.RateSelector = mad.SelectorExactly, mad.SelectorExactly
		asked.PacketLifeTimeSelector = mad.LifeTimeSelectorExactly
		asked.Encode(r.Data)
	}
	return status
}

// join makes p a member of the group, which it creates if it does not exist. asked
// becomes the member's record.
func (r *saRequest) join(p *state.Port, asked *mad.MCMemberRecord, mask uint64) mad.Status {
	g := r.SA.subnet.GroupOf(asked.MGID)
	switch {
	case asked.JoinState == 0, mask&groupPKey != 0 && asked.PKey&state.PKeyBase == 0:
		return mad.StatusRequestInvalid
	case g == nil:
		var status mad.Status
		if g, status = r.makeGroup(p, *asked, mask); status != mad.StatusOK {
			return status
		}
	case !r.matchesGroup(g, mask):
		return mad.StatusRequestInvalid
	}
	m := g.MemberOf(p)
	switch {
	case !matchesSelectors(asked, mask, &g.MCMemberRecord),
		p.MTU < g.MTU, int(p.Rate) < halfGbps(g.Rate),
		!r.SA.subnet.HasPKey(p, g.PKey),
		m != nil && !r.mayChangeMember(m, g):
		return mad.StatusRequestInvalid
	}
	if m == nil {
		g.AddMember(state.Member{Port: p, Proxy: r.From != p})
		m = g.MemberOf(p)
	}
	r.SA.subnet.AddGroup(g)
	before := g.FullMembers()
	if m.State |= asked.JoinState; before == 0 && g.FullMembers() > 0 {
		r.SA.notices.ReportGID(66, g.MGID)
	}
	gid, proxy := asked.PortGID, asked.ProxyJoin
	*asked = g.MCMemberRecord
	asked.PortGID, asked.JoinState, asked.ProxyJoin = gid, m.State, proxy
	return mad.StatusOK
}

// leave clears bits of p's JoinState. asked becomes the member's record.
func (r *saRequest) leave(p *state.Port, asked *mad.MCMemberRecord) mad.Status {
	g := r.SA.subnet.GroupOf(asked.MGID)
	if g == nil {
		return mad.StatusRequestInvalid
	}
	m := g.MemberOf(p)
	if m == nil || asked.JoinState&m.State == 0 || asked.JoinState&^m.State != 0 || !r.mayChangeMember(m, g) {
		return mad.StatusRequestInvalid
	}
	before := m.State
	m.State &^= asked.JoinState
	// Without full members the group is deleted, even if it has other members.
	stays := m.State&mad.JoinStateFullMember != 0 || m.State != 0 && g.FullMembers() > 0
	asked.Scope, asked.JoinState = g.Scope, m.State
	if !stays {
		asked.JoinState = 0
		g.Members = slices.DeleteFunc(g.Members, func(m state.Member) bool { return m.Port == p })
	}
	if before&state.FullMemberStates != 0 {
		r.SA.sm.DeleteEmptyGroup(g)
	}
	return mad.StatusOK
}

// mayChangeMember reports whether the requester may change a record: a member may
// change its own; any port of the partition may change the record of a proxy join (IBA
// o15-0.2.1).
func (r *saRequest) mayChangeMember(m *state.Member, g *state.Group) bool {
	if m.Proxy {
		return r.SA.subnet.HasPKey(r.From, g.PKey)
	}
	return r.From == m.Port
}

// findGroups finds the records of groups. Only trusted requesters see who the
// members are.
func (r *saRequest) findGroups(q *saQuery) mad.Status {
	var asked mad.MCMemberRecord
	asked.Decode(q.want)
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask()&groupNotCompared != 0 })
	var only *state.Port
	if q.mask&groupPort != 0 {
		if only = r.SA.subnet.EndPortByGUID(asked.PortGID.GUID()); only == nil {
			return mad.StatusOK
		}
	}
	for _, g := range r.SA.subnet.Groups {
		if !r.SA.subnet.HasPKey(r.From, g.PKey) || q.mask&groupPKey != 0 && !samePartition(asked.PKey, g.PKey) || !matchesSelectors(&asked, q.mask, &g.MCMemberRecord) {
			continue
		}
		if only == nil && !q.trusted {
			q.addGroup(g.MCMemberRecord)
			continue
		}
		for _, m := range g.Members {
			if only == nil || m.Port == only {
				rec := g.MCMemberRecord
				rec.PortGID, rec.JoinState, rec.ProxyJoin = m.Port.GID(), m.State, m.Proxy
				q.addGroup(rec)
			}
		}
	}
	return mad.StatusOK
}

// addGroup adds a record, if it matches; without the member for requesters that are not
// trusted.
func (q *saQuery) addGroup(rec mad.MCMemberRecord) {
	before := len(q.records)
	q.add(&rec)
	if len(q.records) > before && !q.trusted {
		rec.PortGID, rec.JoinState, rec.ProxyJoin = mad.GID{}, 0, false
		rec.Encode(q.records[before:])
	}
}

// makeGroup creates the group that p requests.
func (r *saRequest) makeGroup(p *state.Port, asked mad.MCMemberRecord, mask uint64) (*state.Group, mad.Status) {
	switch {
	case asked.JoinState&state.FullMemberStates == 0:
		return nil, mad.StatusRequestInvalid
	case mask&groupCreateComponents != groupCreateComponents:
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

// chooseMTUAndRate gives a new group the MTU and the rate of p, or of the request, if it
// contains them. It returns false if no value matches.
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

// matchesGroup reports whether the components in the request equal the components of the
// group, except the ones of a member.
func (r *saRequest) matchesGroup(g *state.Group, mask uint64) bool {
	q := newSAQuery(mad.AttrMCMemberRecord, mask&^groupNotComparedInJoin, r.Data)
	q.add(&g.MCMemberRecord)
	var asked mad.MCMemberRecord
	asked.Decode(r.Data)
	return len(q.records) > 0 && (mask&groupPKey == 0 || samePartition(asked.PKey, g.PKey))
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
