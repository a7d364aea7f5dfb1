package sim

import (
	"slices"

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

// findPaths finds the paths that q asks for, by following the forwarding tables.
func (r *request) findPaths(q *query) mad.Status {
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
	if q.mask&pathPKey != 0 && pq.asked.PKey&pkeyBase != mad.DefaultPKey&pkeyBase {
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
func (r *request) pathEnds(q *query, lidBit, gidBit uint64, lid mad.LID, gid mad.GID) (ports []*port, given bool, status mad.Status) {
	given = q.mask&(lidBit|gidBit) != 0
	if q.mask&gidBit != 0 {
		if gid.Prefix() != gidPrefix {
			return nil, given, mad.StatusInvalidGID
		}
		if ports = r.endPortsWith(func(p *port) bool { return p.guid == gid.GUID() }); ports == nil {
			return nil, given, mad.StatusInvalidGID
		}
	}
	switch {
	case q.mask&lidBit == 0 && given:
		return ports, given, mad.StatusOK
	case q.mask&lidBit == 0:
		return r.endPortsWith(func(*port) bool { return true }), given, mad.StatusOK
	case int(lid) >= len(r.lids) || r.lids[lid] == nil || !r.lids[lid].inService:
		return nil, given, mad.StatusOK
	}
	return []*port{r.lids[lid]}, given, mad.StatusOK
}

// endPortsWith lists the end ports that the latest sweep reached, and for which ok
// holds, by LID.
func (s *Subnet) endPortsWith(ok func(*port) bool) (ports []*port) {
	all := &query{limit: maxTable}
	for p := range all.endPorts(s) {
		if p.inService && ok(p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// addPaths adds the paths from a to b. With LMCs these are the paths between the
// first LIDs of both, between the second ones, and so on; or between the LID in
// the query and all LIDs of the other end.
func (q *pathQuery) addPaths(a, b *port) {
	n := max(1<<a.lmc, 1<<b.lmc)
	if q.mask&pathSLID != 0 {
		n = 1 << b.lmc
	} else if q.mask&pathDLID != 0 {
		n = 1 << a.lmc
	}
	for i, found := 0, 0; i < n && found < q.maxPaths; i++ {
		slid, dlid := a.lid+mad.LID(i%(1<<a.lmc)), b.lid+mad.LID(i%(1<<b.lmc))
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

// path is the record of one path; nil if there is none, or it does not match.
func (q *pathQuery) path(a, b *port, slid, dlid mad.LID) *mad.PathRecord {
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
		!q.selects(pathLife, pathSelectLife, uint8(asked.PacketLifeTimeSelector), int(asked.PacketLifeTime), lifeTime):
		return nil
	}
	return &mad.PathRecord{
		ServiceID: asked.ServiceID & -min(1, q.mask&pathServiceID),
		DGID:      mad.MakeGID(gidPrefix, b.guid), SGID: mad.MakeGID(gidPrefix, a.guid),
		DLID: dlid, SLID: slid,
		Reversible: reversible, NumbPath: 1, PKey: mad.DefaultPKey,
		MTUSelector: mad.SelectorExactly, MTU: mtu,
		RateSelector: mad.SelectorExactly, Rate: rateCode(rate),
		PacketLifeTimeSelector: mad.LifeTimeSelectorExactly, PacketLifeTime: lifeTime,
	}
}

// selects: the value matches the component in the query, by its selector.
func (q *pathQuery) selects(component, selectorComponent uint64, selector uint8, asked, value int) bool {
	if q.mask&component == 0 {
		return true
	}
	if q.mask&selectorComponent == 0 {
		selector = uint8(mad.SelectorExactly)
	}
	return selectorHolds(mad.Selector(selector), value, asked)
}

// tracePath follows the tables from a to dlid of b, and gives the smallest MTU and
// rate of the links. The subnet manager does not know dead ports.
func tracePath(a, b *port, dlid mad.LID) (mtu mad.MTU, rate uint16, ok bool) {
	at := a
	mtu, rate = a.mtu, a.rate
	if a.node.isSwitch {
		mtu, rate = b.mtu, b.rate // port 0 has no link
	}
	for range maxLIDHops {
		out, arrived := at.nextHop(dlid, at == a)
		if arrived {
			return mtu, rate, at.endPort() == b
		}
		if out == nil || !out.active() {
			return 0, 0, false
		}
		mtu, rate = min(mtu, out.mtu), min(rate, out.rate)
		at = out.peer
	}
	return 0, 0, false
}

// rates are the codes of PathRecord.Rate by rising rate, in units of half a Gb/s.
var rates = []struct {
	half uint16
	code mad.Rate
}{
	{5, mad.Rate2_5}, {10, mad.Rate5}, {20, mad.Rate10}, {28, mad.Rate14}, {40, mad.Rate20}, {50, mad.Rate25},
	{56, mad.Rate28}, {60, mad.Rate30}, {80, mad.Rate40}, {100, mad.Rate50}, {112, mad.Rate56}, {120, mad.Rate60},
	{160, mad.Rate80}, {200, mad.Rate100}, {224, mad.Rate112}, {240, mad.Rate120}, {336, mad.Rate168},
	{400, mad.Rate200}, {600, mad.Rate300}, {800, mad.Rate400}, {1200, mad.Rate600}, {1600, mad.Rate800}, {2400, mad.Rate1200}, {3200, mad.Rate1600},
}

// rateCode is the code of the highest rate up to half.
func rateCode(half uint16) mad.Rate {
	code := rates[0].code
	for _, r := range rates {
		if r.half <= half {
			code = r.code
		}
	}
	return code
}

// halfGbps is the rate of a code in units of half a Gb/s; 0 if it is unknown.
func halfGbps(code mad.Rate) int {
	for _, r := range rates {
		if r.code == code {
			return int(r.half)
		}
	}
	return 0
}

// activeRate is the rate of a port's link, in units of half a Gb/s, by the
// speed's name, not its signalling rate: HDR on 4 lanes is 200 Gb/s.
func activeRate(i *mad.PortInfo) uint16 {
	return laneRate(mad.ActiveSpeed(i)) * uint16(mad.WidthLanes(mad.ActiveWidth(i)))
}

func laneRate(speed string) uint16 {
	switch speed {
	case "sdr":
		return 5
	case "ddr":
		return 10
	case "qdr":
		return 20
	case "fdr":
		return 28
	case "edr":
		return 50
	case "hdr":
		return 100
	case "ndr":
		return 200
	case "xdr":
		return 400
	}
	return 0
}
