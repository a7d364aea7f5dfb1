package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// maxMultiPaths is the largest number of paths of a MultiPathRecord (opensm
// OSM_SA_MPR_MAX_NUM_PATH).
const maxMultiPaths = 127

func multiPathComponent(script string) uint64 {
	return mad.AttrMultiPathRecord.Field(script).Mask()
}

// findMultiPaths finds the paths between the ports of a MultiPathRecord, up to
// NumbPath in all.
func (r *saRequest) findMultiPaths(q *query) mad.Status {
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
	pq := &pathQuery{query: q, maxPaths: maxMultiPaths, asked: mad.PathRecord{
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
