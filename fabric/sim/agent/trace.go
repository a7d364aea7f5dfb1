package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// findTrace finds the hops of the first path that matches.
func (r *saRequest) findTrace(q *query) mad.Status {
	path := newQuery(mad.AttrPathRecord, q.mask, q.want)
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
