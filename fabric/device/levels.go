package device

import (
	"bytes"
	"context"
	"fmt"

	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// mostOfPair is how many paths between two ports a query may ask for (PathRecord.NumbPath,
// IBA 15.2.5.16).
const mostOfPair = 127

// maxPaths is the number of pairs of LIDs from which path records are no longer
// queried: each is a record of 64 bytes, and the subnet administrator makes them one by
// one.
const maxPaths = 1 << 18

// ReadLevels queries the subnet administrator for the paths between all channel
// adapters and routers, by table of one source LID each, and returns their service levels and the
// number of records. The error is why the levels are unknown.
func ReadLevels(ctx context.Context, client *sa.Client, r *routes.Routes) (*routes.SL, int, error) {
	terminals := r.Graph().Terminals()
	most := 1 // LIDs of a port
	for t := range terminals {
		if most = max(most, terminals[t].Count); most > mostOfPair {
			return nil, 0, fmt.Errorf("%s has %d LIDs, more than a query of paths covers", terminals[t].Port.Name(), most)
		}
	}
	var requests []sa.Request
	var sources []int // the terminal of each
	var slids []mad.LID
	for t := range terminals {
		e := &terminals[t]
		if e.Switch < 0 || e.Out == 0 {
			continue
		}
		for i := range e.Count {
			slid := e.LID + mad.LID(i)
			requests = append(requests, sa.NewRequest(mad.MethodGetTable, mad.AttrPathRecord, &mad.PathRecord{SLID: slid, NumbPath: uint8(most)}, "slid", "numb_path"))
			sources, slids = append(sources, t), append(slids, slid)
		}
	}
	if n := len(requests); n*n > maxPaths {
		return nil, 0, fmt.Errorf("%d LIDs have too many paths to query each", n)
	}
	if len(requests) > 0 { // one that does not answer, or does not support path records, is not queried a thousand times
		if _, err := client.Table(ctx, requests[0]); err != nil {
			return nil, 0, fmt.Errorf("query of the subnet administrator: %w", err)
		}
	}
	calls, err := client.Do(ctx, requests...)
	if err != nil {
		return nil, 0, err
	}
	const untold = 0xff
	levels, count := &routes.SL{Pair: make([][]uint8, len(terminals))}, 0
	for i, call := range calls {
		t := sources[i]
		records, err := sa.Records(call, mad.AttrPathRecord)
		if err != nil {
			return nil, 0, fmt.Errorf("query of the subnet administrator: paths from LID %d: %w", slids[i], err)
		}
		if levels.Pair[t] == nil {
			levels.Pair[t] = bytes.Repeat([]byte{untold}, int(r.Top())+1)
		}
		row := levels.Pair[t]
		for data := range records {
			var path mad.PathRecord
			if path.Decode(data); path.SLID != slids[i] || int(path.DLID) >= len(row) {
				continue
			}
			if was := row[path.DLID]; was != untold && was != path.SL {
				return nil, 0, fmt.Errorf("paths from the LIDs of %s to LID %d have several", terminals[t].Port.Name(), path.DLID)
			}
			row[path.DLID] = path.SL
			count++
		}
	}
	for _, row := range levels.Pair {
		for lid := range row {
			if row[lid] == untold { // no path
				row[lid] = 0
			}
		}
	}
	return levels, count, nil
}
