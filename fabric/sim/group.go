package sim

import (
	"bytes"
	"encoding/binary"
	"slices"

	"fabsh/mad"
)

// Multicast groups, as in OpenSM (opensm osm_sa_mcmember_record.c,
// osm_multicast.c).

const (
	firstMLID = mad.MinMulticastLID
	lastMLID  = firstMLID + multicastCap - 1

	fullMember = mad.JoinStateFullMember | mad.JoinStateSendOnlyFullMember

	// P_Keys without the bit of full membership (IBA 10.9.1.1).
	pkeyBase = 0x7fff
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
	// Components of a join that are not simply compared: those of the member, and
	// those above.
	notComparedInJoin = notCompared | groupComponents("mlid", "scope", "join_state", "proxy_join")
)

func groupComponents(scripts ...string) (mask uint64) {
	for _, s := range scripts {
		mask |= mad.AttrMCMemberRecord.Field(s).Mask()
	}
	return mask
}

// group is a multicast group.
type group struct {
	mad.MCMemberRecord // as it was created
	members            []member
	wellKnown          bool // it remains without members
}

type member struct {
	port  *port
	state mad.JoinState
	proxy bool // another port joined for it
}

// broadcastGroup is the IPoIB broadcast group of the default partition, which
// always exists (opensm osm_prtn.c prtn_make_default).
func broadcastGroup() *group {
	return &group{wellKnown: true, MCMemberRecord: mad.MCMemberRecord{
		MGID: mad.MakeGID(0xff12401bffff0000, 0xffffffff), QKey: 0xb1b, MLID: firstMLID, PKey: mad.DefaultPKey,
		MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, RateSelector: mad.SelectorExactly, Rate: mad.Rate10,
		PacketLifeTimeSelector: mad.LifeTimeSelectorExactly, PacketLifeTime: lifeTime,
		Scope: mad.ScopeLinkLocal, JoinState: mad.JoinStateFullMember,
	}}
}

// groupOf finds a group by its MGID; nil: there is none.
func (s *Subnet) groupOf(g mad.GID) *group {
	if i := slices.IndexFunc(s.groups, func(x *group) bool { return x.MGID == g }); i >= 0 {
		return s.groups[i]
	}
	return nil
}

// memberOf is the port's membership; nil: it is no member.
func (g *group) memberOf(p *port) *member {
	if i := slices.IndexFunc(g.members, func(m member) bool { return m.port == p }); i >= 0 {
		return &g.members[i]
	}
	return nil
}

// fullMembers counts the full members. Without one the group is deleted.
func (g *group) fullMembers() (n int) {
	for _, m := range g.members {
		if m.state&fullMember != 0 {
			n++
		}
	}
	return n
}

// changeGroup makes a port join or leave a group.
func (r *request) changeGroup(mask uint64, _ bool) mad.Status {
	var asked mad.MCMemberRecord
	asked.Decode(r.data)
	if mask&joinComponents != joinComponents {
		return mad.StatusInsufficient
	}
	if asked.PortGID.Prefix() != gidPrefix {
		return mad.StatusInvalidGID
	}
	p := r.endPortByGUID(asked.PortGID.GUID())
	if p == nil {
		return mad.StatusRequestInvalid
	}
	g := r.groupOf(asked.MGID)
	var status mad.Status
	if r.Method == mad.MethodSet {
		status = r.join(p, &asked, mask)
	} else {
		status = r.leave(p, &asked)
	}
	if status == mad.StatusOK {
		if g == nil { // it was created, perhaps with an MGID of its own
			g = r.groupOf(asked.MGID)
		}
		r.setMFTs(g)
		asked.MTUSelector, asked.RateSelector = mad.SelectorExactly, mad.SelectorExactly
		asked.PacketLifeTimeSelector = mad.LifeTimeSelectorExactly
		asked.Encode(r.data)
	}
	return status
}

// join makes p a member of the group, which it creates if there is none. asked
// becomes the member's record.
func (r *request) join(p *port, asked *mad.MCMemberRecord, mask uint64) mad.Status {
	g := r.groupOf(asked.MGID)
	switch {
	case asked.JoinState == 0, mask&pkeyComponent != 0 && asked.PKey&pkeyBase == 0:
		return mad.StatusRequestInvalid
	case g == nil:
		var status mad.Status
		if g, status = r.makeGroup(p, *asked, mask); status != mad.StatusOK {
			return status
		}
	case !r.matchesGroup(g, mask):
		return mad.StatusRequestInvalid
	}
	m := g.memberOf(p)
	switch {
	case !matchesSelectors(asked, mask, &g.MCMemberRecord),
		p.mtu < g.MTU, int(p.rate) < halfGbps(g.Rate),
		!r.hasPKey(p, g.PKey),
		m != nil && !r.mayChangeMember(m, g):
		return mad.StatusRequestInvalid
	}
	if m == nil {
		g.members = append(g.members, member{port: p, proxy: r.from != p})
		slices.SortFunc(g.members, func(a, b member) int { return int(a.port.lid) - int(b.port.lid) })
		m = g.memberOf(p)
	}
	if !slices.Contains(r.groups, g) {
		r.groups = append(r.groups, g)
		slices.SortFunc(r.groups, func(a, b *group) int { return bytes.Compare(a.MGID[:], b.MGID[:]) })
	}
	before := g.fullMembers()
	if m.state |= asked.JoinState; before == 0 && g.fullMembers() > 0 {
		r.reportGID(66, g.MGID)
	}
	gid, proxy := asked.PortGID, asked.ProxyJoin
	*asked = g.MCMemberRecord
	asked.PortGID, asked.JoinState, asked.ProxyJoin = gid, m.state, proxy
	return mad.StatusOK
}

// leave clears bits of p's JoinState. asked becomes the member's record.
func (r *request) leave(p *port, asked *mad.MCMemberRecord) mad.Status {
	g := r.groupOf(asked.MGID)
	if g == nil {
		return mad.StatusRequestInvalid
	}
	m := g.memberOf(p)
	if m == nil || asked.JoinState&m.state == 0 || asked.JoinState&^m.state != 0 || !r.mayChangeMember(m, g) {
		return mad.StatusRequestInvalid
	}
	before := m.state
	m.state &^= asked.JoinState
	// Without full members the group is deleted, other members or not.
	stays := m.state&mad.JoinStateFullMember != 0 || m.state != 0 && g.fullMembers() > 0
	asked.Scope, asked.JoinState = g.Scope, m.state
	if !stays {
		asked.JoinState = 0
		g.members = slices.DeleteFunc(g.members, func(m member) bool { return m.port == p })
	}
	if before&fullMember != 0 {
		r.dissolve(g)
	}
	return mad.StatusOK
}

// mayChangeMember: a member may change its own record; that of a proxy join may
// be changed by any port of the partition (IBA o15-0.2.1).
func (r *request) mayChangeMember(m *member, g *group) bool {
	if m.proxy {
		return r.hasPKey(r.from, g.PKey)
	}
	return r.from == m.port
}

// makeGroup creates the group that p asks for.
func (r *request) makeGroup(p *port, asked mad.MCMemberRecord, mask uint64) (*group, mad.Status) {
	switch {
	case asked.JoinState&fullMember == 0:
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
	return &group{MCMemberRecord: asked}, mad.StatusOK
}

// newMGID is an MGID that the subnet administrator chooses.
func (r *request) newMGID(asked *mad.MCMemberRecord, mask uint64) mad.GID {
	scope := mad.ScopeLinkLocal
	if mask&groupComponents("scope") != 0 {
		scope = asked.Scope
	}
	g := mad.MakeGID(0, 0)
	copy(g[:], []byte{0xff, 0x10 | byte(scope), 0xa0, 0x1b})
	binary.BigEndian.PutUint64(g[4:], gidPrefix)
	for {
		binary.LittleEndian.PutUint32(g[10:], r.madeMGIDs)
		r.madeMGIDs++
		if r.groupOf(g) == nil {
			return g
		}
	}
}

// validMGID: a group may have the MGID (IBA 4.1.1). An IPoIB group needs the
// broadcast group of its partition.
func (r *request) validMGID(g mad.GID) bool {
	signature := binary.BigEndian.Uint16(g[2:])
	switch {
	case g[0] != 0xff:
		return false
	case signature == 0x401b, signature == 0x601b:
		broadcast := mad.MakeGID(0xff10401b00000000, 0xffffffff)
		broadcast[1] |= g[1] & 0xf
		copy(broadcast[4:6], g[4:6])
		return g == broadcast || r.groupOf(broadcast) != nil
	}
	return g[1]&0xe0 == 0 && (signature != 0xa01b || g[1]&0xf != byte(mad.ScopeLinkLocal))
}

// freeMLID is the wanted MLID if it is free, else the lowest free one; 0: none is.
func (r *request) freeMLID(want mad.LID) mad.LID {
	used := map[mad.LID]bool{}
	for _, g := range r.groups {
		used[g.MLID] = true
	}
	if want >= firstMLID && want <= lastMLID && !used[want] {
		return want
	}
	for lid := mad.LID(firstMLID); lid <= lastMLID; lid++ {
		if !used[lid] {
			return lid
		}
	}
	return 0
}

// findGroups finds the records of groups. Only trusted requesters see who the
// members are.
func (r *request) findGroups(q *query) mad.Status {
	var asked mad.MCMemberRecord
	asked.Decode(q.want)
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask()&notCompared != 0 })
	var only *port
	if q.mask&portComponent != 0 {
		if only = r.endPortByGUID(asked.PortGID.GUID()); only == nil {
			return mad.StatusOK
		}
	}
	for _, g := range r.groups {
		if !r.hasPKey(r.from, g.PKey) || q.mask&pkeyComponent != 0 && !samePartition(asked.PKey, g.PKey) || !matchesSelectors(&asked, q.mask, &g.MCMemberRecord) {
			continue
		}
		if only == nil && !q.trusted {
			q.addGroup(g.MCMemberRecord)
			continue
		}
		for _, m := range g.members {
			if only == nil || m.port == only {
				rec := g.MCMemberRecord
				rec.PortGID, rec.JoinState, rec.ProxyJoin = m.port.gid(), m.state, m.proxy
				q.addGroup(rec)
			}
		}
	}
	return mad.StatusOK
}

// addGroup adds a record, if it matches; for requesters that are not trusted,
// without the member.
func (q *query) addGroup(rec mad.MCMemberRecord) {
	before := len(q.records)
	q.add(&rec)
	if len(q.records) > before && !q.trusted {
		rec.PortGID, rec.JoinState, rec.ProxyJoin = mad.GID{}, 0, false
		rec.Encode(q.records[before:])
	}
}
