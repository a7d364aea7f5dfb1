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

// maxPathPairs is the largest number of pairs of ports of a query that names neither
// end.
const maxPathPairs = 1 << 20

// pathQuery is a query for PathRecords.
type pathQuery struct {
	*saQuery
	asked    mad.PathRecord
	maxPaths int // paths of one pair
}

// findPaths finds the requested paths by following the forwarding tables.
func (r *saRequest) findPaths(q *saQuery) mad.Status {
	pq := &pathQuery{saQuery: q, maxPaths: 127}
	pq.asked.Decode(q.want)
	from, given, status := r.pathEnds(q, pathSLID, pathSGID, pq.asked.SLID, pq.asked.SGID)
	if status != mad.StatusOK {
		return status
	}
	to, givenTo, status := r.pathEnds(q, pathDLID, pathDGID, pq.asked.DLID, pq.asked.DGID)
	if status != mad.StatusOK {
		return status
	}
	if !given && !givenTo && (r.Method == mad.MethodGet || len(from)*len(to) > maxPathPairs) {
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
func (r *saRequest) pathEnds(q *saQuery, lidBit, gidBit uint64, lid mad.LID, gid mad.GID) (ports []*state.Port, given bool, status mad.Status) {
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

// maxMultiPaths is the largest number of paths of a MultiPathRecord (opensm
// OSM_SA_MPR_MAX_NUM_PATH).
const maxMultiPaths = 127

func multiPathComponent(script string) uint64 {
	return mad.AttrMultiPathRecord.Field(script).Mask()
}

// findMultiPaths finds the paths between the ports of a MultiPathRecord, up to
// NumbPath in all.
func (r *saRequest) findMultiPaths(q *saQuery) mad.Status {
	var asked mad.MultiPathRecord
	asked.Decode(q.want)
	if counts := multiPathComponent("sgid_count") | multiPathComponent("dgid_count"); q.mask&counts != counts {
		return mad.StatusInsufficient
	}
	n, m := int(asked.SGIDCount), int(asked.DGIDCount)
	gids := q.want[mad.AttrMultiPathRecord.Field("sdgid").Offset/8:] // may be more than in asked
	if n == 0 || m == 0 || n+m > len(gids)/len(mad.GID{}) {
		return mad.StatusRequestInvalid
	}
	ports := make([]*state.Port, n+m)
	for i := range ports {
		g := mad.GID(gids[i*len(mad.GID{}):])
		if ports[i] = r.SA.subnet.EndPortByGUID(g.GUID()); ports[i] == nil || g.Prefix() != state.GIDPrefix {
			return mad.StatusInvalidGID
		}
	}
	pq := &pathQuery{saQuery: q, maxPaths: maxMultiPaths, asked: mad.PathRecord{
		Reversible: asked.Reversible, PKey: asked.PKey, MTUSelector: asked.MTUSelector, MTU: asked.MTU,
		RateSelector: asked.RateSelector, Rate: asked.Rate,
		PacketLifeTimeSelector: asked.PacketLifeTimeSelector, PacketLifeTime: asked.PacketLifeTime,
	}}
	if q.mask&multiPathComponent("numb_path") != 0 {
		pq.maxPaths = int(asked.NumbPath)
	}
	// The answer are PathRecords.
	mask := q.mask
	q.mask = 0
	for _, name := range []string{"reversible", "p_key", "mtu_selector", "mtu", "rate_selector", "rate", "packet_life_time_selector", "packet_life_time"} {
		if mask&multiPathComponent(name) != 0 {
			q.mask |= pathComponent(name)
		}
	}
	q.setRecord(mad.AttrPathRecord)
	q.compare = nil // path compares all of them
	if q.mask&pathPKey != 0 && asked.PKey&state.PKeyBase != mad.DefaultPKey&state.PKeyBase {
		return mad.StatusOK
	}
	for _, a := range ports[:n] {
		for _, b := range ports[n:] {
			if pq.maxPaths > 0 {
				before := len(q.records)
				pq.addPaths(a, b)
				pq.maxPaths -= (len(q.records) - before) / q.size
			}
		}
	}
	return mad.StatusOK
}

// findTrace finds the hops of the first path that matches.
func (r *saRequest) findTrace(q *saQuery) mad.Status {
	path := newSAQuery(mad.AttrPathRecord, q.mask, q.want)
	path.limit = path.size
	if q.mask&(pathSLID|pathSGID) == 0 || q.mask&(pathDLID|pathDGID) == 0 {
		return mad.StatusInsufficient
	}
	if status := r.findPaths(path); status != mad.StatusOK || len(path.records) == 0 {
		return status
	}
	var first mad.PathRecord
	first.Decode(path.records)
	q.compare = nil
	at, entry := r.SA.subnet.LIDs[first.SLID], uint8(0)
	for begin := at; ; {
		out, arrived := at.NextHop(first.DLID, at == begin)
		hop := traceRecord(at)
		if hop.EntryPort = entry; entry > 0 {
			hop.EntryPortID = uint64(at.Node.Ports[entry].GUID)
		}
		if arrived {
			q.add(hop)
			return mad.StatusOK
		}
		hop.ExitPort, hop.ExitPortID = out.Num, uint64(out.GUID)
		q.add(hop)
		at, entry = out.Peer, out.Peer.Num
	}
}

// traceRecord is the record of a hop at p's node.
func traceRecord(p *state.Port) *mad.TraceRecord {
	info := p.Node.NodeInfo()
	return &mad.TraceRecord{
		GIDPrefix: state.GIDPrefix, NodeType: info.NodeType,
		NodeID: uint64(info.NodeGUID), ChassisID: uint64(info.SystemImageGUID),
	}
}

// rateCodes are the codes of PathRecord.Rate by rising rate, in units of half a Gb/s.
var rateCodes = []struct {
	half uint16
	code mad.Rate
}{
	{5, mad.Rate2_5}, {10, mad.Rate5}, {20, mad.Rate10}, {28, mad.Rate14}, {40, mad.Rate20}, {50, mad.Rate25},
	{56, mad.Rate28}, {60, mad.Rate30}, {80, mad.Rate40}, {100, mad.Rate50}, {112, mad.Rate56}, {120, mad.Rate60},
	{160, mad.Rate80}, {200, mad.Rate100}, {224, mad.Rate112}, {240, mad.Rate120}, {336, mad.Rate168},
	{400, mad.Rate200}, {600, mad.Rate300}, {800, mad.Rate400}, {1200, mad.Rate600}, {1600, mad.Rate800}, {2400, mad.Rate1200}, {3200, mad.Rate1600},
}

// RateCode returns the code of the highest rate that is at most half.
func RateCode(half uint16) mad.Rate {
	code := rateCodes[0].code
	for _, r := range rateCodes {
		if r.half <= half {
			code = r.code
		}
	}
	return code
}

// halfGbps returns the rate of a code in units of half a Gb/s; 0 if the code is unknown.
func halfGbps(code mad.Rate) int {
	for _, r := range rateCodes {
		if r.code == code {
			return int(r.half)
		}
	}
	return 0
}

// selectorHolds reports whether the value matches the requested one, by the selector.
func selectorHolds(s mad.Selector, value, asked int) bool {
	switch s {
	case mad.SelectorGreaterThan:
		return value > asked
	case mad.SelectorLessThan:
		return value < asked
	case mad.SelectorExactly:
		return value == asked
	}
	return true // the largest available
}
