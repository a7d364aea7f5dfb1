package agent

import (
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Components of MCMemberRecord: those that a Set or Delete needs, and those that
// it takes to create a group.
var (
	joinComponents   = groupComponents("mgid", "port_gid", "join_state")
	createComponents = joinComponents | groupComponents("q_key", "tclass", "p_key", "flow_label", "sl")
	portComponent    = groupComponents("port_gid")
	pkeyComponent    = groupComponents("p_key")
	// Components of a query that are not simply compared.
	notCompared = groupComponents("port_gid", "p_key", "mtu_selector", "mtu", "rate_selector", "rate",
		"packet_life_time_selector", "packet_life_time")
	// Components of a join that are not simply compared: those of the member, and those
	// listed before.
	notComparedInJoin = notCompared | groupComponents("mlid", "scope", "join_state", "proxy_join")
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
	if mask&joinComponents != joinComponents {
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
	case asked.JoinState == 0, mask&pkeyComponent != 0 && asked.PKey&state.PKeyBase == 0:
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
		r.SA.sm.Dissolve(g)
	}
	return mad.StatusOK
}

// mayChangeMember reports whether the requester may change a record: a member may
// change its own; any port of the partition may change that of a proxy join (IBA
// o15-0.2.1).
func (r *saRequest) mayChangeMember(m *state.Member, g *state.Group) bool {
	if m.Proxy {
		return r.SA.subnet.HasPKey(r.From, g.PKey)
	}
	return r.From == m.Port
}

// findGroups finds the records of groups. Only trusted requesters see who the
// members are.
func (r *saRequest) findGroups(q *query) mad.Status {
	var asked mad.MCMemberRecord
	asked.Decode(q.want)
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask()&notCompared != 0 })
	var only *state.Port
	if q.mask&portComponent != 0 {
		if only = r.SA.subnet.EndPortByGUID(asked.PortGID.GUID()); only == nil {
			return mad.StatusOK
		}
	}
	for _, g := range r.SA.subnet.Groups {
		if !r.SA.subnet.HasPKey(r.From, g.PKey) || q.mask&pkeyComponent != 0 && !samePartition(asked.PKey, g.PKey) || !matchesSelectors(&asked, q.mask, &g.MCMemberRecord) {
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
func (q *query) addGroup(rec mad.MCMemberRecord) {
	before := len(q.records)
	q.add(&rec)
	if len(q.records) > before && !q.trusted {
		rec.PortGID, rec.JoinState, rec.ProxyJoin = mad.GID{}, 0, false
		rec.Encode(q.records[before:])
	}
}
