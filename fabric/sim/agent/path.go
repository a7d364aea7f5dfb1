package agent

import (
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Components of PathRecord that are not simply compared (IBA 15.2.5.16).
var (
	pathSLID       = pathComponent("slid")
	pathDLID       = pathComponent("dlid")
	pathSGID       = pathComponent("sgid")
	pathDGID       = pathComponent("dgid")
	pathServiceID  = pathComponent("service_id")
	pathReversible = pathComponent("reversible")
	pathNumbPath   = pathComponent("numb_path")
	pathPKey       = pathComponent("p_key")
	pathMTU        = pathComponent("mtu")
	pathRate       = pathComponent("rate")
	pathLife       = pathComponent("packet_life_time")
	pathSelectMTU  = pathComponent("mtu_selector")
	pathSelectRate = pathComponent("rate_selector")
	pathSelectLife = pathComponent("packet_life_time_selector")
)

func pathComponent(script string) uint64 { return mad.AttrPathRecord.Field(script).Mask() }

// maxPairs is the largest number of pairs of ports of a query that names neither
// end.
const maxPairs = 1 << 20

// pathQuery is a query for PathRecords.
type pathQuery struct {
	*query
	asked    mad.PathRecord
	maxPaths int // paths of one pair
}

// findPaths finds the requested paths by following the forwarding tables.
func (r *saRequest) findPaths(q *query) mad.Status {
	pq := &pathQuery{query: q, maxPaths: 127}
	pq.asked.Decode(q.want)
	from, given, status := r.pathEnds(q, pathSLID, pathSGID, pq.asked.SLID, pq.asked.SGID)
	if status != mad.StatusOK {
		return status
	}
	to, givenTo, status := r.pathEnds(q, pathDLID, pathDGID, pq.asked.DLID, pq.asked.DGID)
	if status != mad.StatusOK {
		return status
	}
	if !given && !givenTo && (r.Method == mad.MethodGet || len(from)*len(to) > maxPairs) {
		return mad.StatusInsufficient
	}
	if q.mask&pathNumbPath != 0 && pq.asked.NumbPath > 0 {
		pq.maxPaths = int(pq.asked.NumbPath)
	}
	if r.Method == mad.MethodGet {
		pq.maxPaths = 1
	}
	special := pathServiceID | pathReversible | pathNumbPath | pathPKey |
		pathMTU | pathRate | pathLife | pathSelectMTU | pathSelectRate | pathSelectLife
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask()&special != 0 })
	if q.mask&pathPKey != 0 && pq.asked.PKey&state.PKeyBase != mad.DefaultPKey&state.PKeyBase {
		return mad.StatusOK
	}
	for _, a := range from {
		for _, b := range to {
			if q.full() {
				return mad.StatusOK
			}
			pq.addPaths(a, b)
		}
	}
	return mad.StatusOK
}

// pathEnds are the ports that match a query's LID and GID at one end.
func (r *saRequest) pathEnds(q *query, lidBit, gidBit uint64, lid mad.LID, gid mad.GID) (ports []*state.Port, given bool, status mad.Status) {
	given = q.mask&(lidBit|gidBit) != 0
	if q.mask&gidBit != 0 {
		if gid.Prefix() != state.GIDPrefix {
			return nil, given, mad.StatusInvalidGID
		}
		if ports = r.SA.subnet.EndPortsWith(func(p *state.Port) bool { return p.GUID == gid.GUID() }); ports == nil {
			return nil, given, mad.StatusInvalidGID
		}
	}
	switch {
	case q.mask&lidBit == 0 && given:
		return ports, given, mad.StatusOK
	case q.mask&lidBit == 0:
		return r.SA.subnet.EndPortsWith(func(*state.Port) bool { return true }), given, mad.StatusOK
	case int(lid) >= len(r.SA.subnet.LIDs) || r.SA.subnet.LIDs[lid] == nil || !r.SA.subnet.LIDs[lid].InService:
		return nil, given, mad.StatusOK
	}
	return []*state.Port{r.SA.subnet.LIDs[lid]}, given, mad.StatusOK
}

// addPaths adds the paths from a to b. With LMCs these are the paths between the
// first LIDs of both, between the second ones, and so on; or between the LID in
// the query and all LIDs of the other end.
func (q *pathQuery) addPaths(a, b *state.Port) {
	n := max(1<<a.LMC, 1<<b.LMC)
	if q.mask&pathSLID != 0 {
		n = 1 << b.LMC
	} else if q.mask&pathDLID != 0 {
		n = 1 << a.LMC
	}
	for i, found := 0, 0; i < n && found < q.maxPaths; i++ {
		slid, dlid := a.LID+mad.LID(i%(1<<a.LMC)), b.LID+mad.LID(i%(1<<b.LMC))
		if q.mask&pathSLID != 0 {
			slid = q.asked.SLID
		}
		if q.mask&pathDLID != 0 {
			dlid = q.asked.DLID
		}
		if rec := q.path(a, b, slid, dlid); rec != nil {
			before := len(q.records)
			q.add(rec)
			found += (len(q.records) - before) / q.size
		}
		if q.mask&pathSLID != 0 && q.mask&pathDLID != 0 {
			return
		}
	}
}

// path returns the record of one path; nil without a path, or if it does not match.
func (q *pathQuery) path(a, b *state.Port, slid, dlid mad.LID) *mad.PathRecord {
	mtu, rate, ok := tracePath(a, b, dlid)
	if !ok {
		return nil
	}
	_, _, reversible := tracePath(b, a, slid)
	asked := &q.asked
	switch {
	case q.mask&pathReversible != 0 && asked.Reversible && !reversible,
		!q.selects(pathMTU, pathSelectMTU, uint8(asked.MTUSelector), int(asked.MTU), int(mtu)),
		!q.selects(pathRate, pathSelectRate, uint8(asked.RateSelector), halfGbps(asked.Rate), int(rate)),
		!q.selects(pathLife, pathSelectLife, uint8(asked.PacketLifeTimeSelector), int(asked.PacketLifeTime), state.LifeTime):
		return nil
	}
	return &mad.PathRecord{
		ServiceID: asked.ServiceID & -min(1, q.mask&pathServiceID),
		DGID:      mad.MakeGID(state.GIDPrefix, b.GUID), SGID: mad.MakeGID(state.GIDPrefix, a.GUID),
		DLID: dlid, SLID: slid,
		Reversible: reversible, NumbPath: 1, PKey: mad.DefaultPKey,
		MTUSelector: mad.SelectorExactly, MTU: mtu,
		RateSelector: mad.SelectorExactly, Rate: RateCode(rate),
		PacketLifeTimeSelector: mad.LifeTimeSelectorExactly, PacketLifeTime: state.LifeTime,
	}
}

// selects reports whether the value matches the component in the query, by its selector.
func (q *pathQuery) selects(component, selectorComponent uint64, selector uint8, asked, value int) bool {
	if q.mask&component == 0 {
		return true
	}
	if q.mask&selectorComponent == 0 {
		selector = uint8(mad.SelectorExactly)
	}
	return selectorHolds(mad.Selector(selector), value, asked)
}

// tracePath follows the tables from a to dlid of b, and returns the smallest MTU and rate
// of the links. The subnet manager does not know dead ports.
func tracePath(a, b *state.Port, dlid mad.LID) (mtu mad.MTU, rate uint16, ok bool) {
	at := a
	mtu, rate = a.MTU, a.Rate
	if a.Node.IsSwitch {
		mtu, rate = b.MTU, b.Rate // port 0 has no link
	}
	for range state.MaxLIDHops {
		out, arrived := at.NextHop(dlid, at == a)
		if arrived {
			return mtu, rate, at.EndPort() == b
		}
		if out == nil || !out.Active() {
			return 0, 0, false
		}
		mtu, rate = min(mtu, out.MTU), min(rate, out.Rate)
		at = out.Peer
	}
	return 0, 0, false
}
