package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ReadLanes gives r, tables that were just read, the SL2VL of all switches between ports with a
// link, by routes to them. Rows of other ports, which no packets use, are copies of some row of
// the switch. The error is the end of ctx, or that a row cannot be read.
func ReadLanes(ctx context.Context, e *engine.Engine, r *routes.Routes) error {
	lanes := routes.NewSL2VL(r.Graph())
	var turns []routes.Hop
	filled := -1
	flush := func() error {
		err := readRows(ctx, e, r, turns, func(t routes.Hop, row [16]uint8) error {
			n := r.Graph().Switches()[t.Switch]
			for in := range n.NumPorts() + 1 {
				for out := range n.NumPorts() + 1 {
					if t.Switch != filled {
						if err := lanes.Set(t.Switch, uint8(in), uint8(out), row); err != nil {
							return err
						}
					}
				}
			}
			filled = t.Switch
			return lanes.Set(t.Switch, t.In, t.Out, row)
		})
		turns = turns[:0]
		return err
	}
	for s, n := range r.Graph().Switches() {
		if n.Route() == nil && n.LID() == 0 {
			return fmt.Errorf("%s: %w", n.Label(), ErrNoAddress)
		}
		if len(turns) > maxCalls {
			if err := flush(); err != nil {
				return err
			}
		}
		for in := range n.Ports() {
			for out := range n.Ports() {
				if in != out && in.Peer() != nil && out.Peer() != nil {
					turns = append(turns, routes.Hop{Switch: s, In: uint8(in.Num()), Out: uint8(out.Num())})
				}
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	r.SL2VL = lanes
	return nil
}

// readRows reads the rows of the SL2VL of switches from ports to ports at once, and calls set with
// each.
func readRows(ctx context.Context, e *engine.Engine, r *routes.Routes, turns []routes.Hop, set func(t routes.Hop, row [16]uint8) error) error {
	calls := make([]engine.Call, len(turns))
	open := make([]*engine.Call, len(turns))
	for i, t := range turns {
		n := r.Graph().Switches()[t.Switch]
		open[i] = fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}.Put(&calls[i], mad.MethodGet, mad.AttrSLtoVLMappingTable, uint32(t.In)<<8|uint32(t.Out), nil)
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	for i, t := range turns {
		if err := calls[i].Err; err != nil {
			return fmt.Errorf("the SL2VL of %s from port %d to port %d: %w", r.Graph().Switches()[t.Switch].Label(), t.In, t.Out, err)
		}
		var row mad.SLtoVLMappingTable
		row.Decode(calls[i].Data())
		if err := set(t, row.SLtoVL); err != nil {
			return err
		}
	}
	return nil
}

// ReadLevels queries the subnet administrator for the paths between all channel
// adapters and routers, by one query for each source LID, and returns their service levels and
// the number of records. The error is the reason why the levels are unknown.
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
		return nil, 0, fmt.Errorf("%d LIDs have %w", n, errTooMany)
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
	const noLevel = 0xff
	levels, count := &routes.SL{Pair: make([][]uint8, len(terminals))}, 0
	for i, call := range calls {
		t := sources[i]
		records, err := sa.Records(call, mad.AttrPathRecord)
		if err != nil {
			return nil, 0, fmt.Errorf("query of the subnet administrator: paths from LID %d: %w", slids[i], err)
		}
		if levels.Pair[t] == nil {
			levels.Pair[t] = bytes.Repeat([]byte{noLevel}, int(r.Top())+1)
		}
		row := levels.Pair[t]
		for data := range records {
			var path mad.PathRecord
			if path.Decode(data); path.SLID != slids[i] || int(path.DLID) >= len(row) {
				continue
			}
			if was := row[path.DLID]; was != noLevel && was != path.SL {
				return nil, 0, fmt.Errorf("paths from the LIDs of %s to LID %d have several", terminals[t].Port.Name(), path.DLID)
			}
			row[path.DLID] = path.SL
			count++
		}
	}
	for _, row := range levels.Pair {
		for lid := range row {
			if row[lid] == noLevel { // no path
				row[lid] = 0
			}
		}
	}
	return levels, count, nil
}

// errTooMany reports that the service levels of all paths, or the lanes of all turns, are more than
// ReadLevels and VerifyInLanes read.
var errTooMany = errors.New("too many paths to query each")

// mostOfPair is the largest number of paths between two ports that a query may request
// (PathRecord.NumbPath, IBA 15.2.5.16).
const mostOfPair = 127

// maxPaths is the number of pairs of LIDs from which path records are no longer
// queried: each is a record of 64 bytes, and the subnet administrator makes them one by
// one.
const maxPaths = 1 << 18

// maxTurns is the number of turns, from a port of a switch to another, of which VerifyInLanes reads
// the SL2VL.
const maxTurns = 1 << 18

// VerifyInLanes judges the credit loop that tables alone close, by v, the verdict on r, tables of
// switches: packets on several virtual lanes may not wait for each other. It reads the SL2VL of all
// switches by e, and by client the path records between all channel adapters and routers, and returns the
// verdict on these lanes. Of more than 512 LIDs or 262,144 turns, it reads those of at most 4,096
// paths that cover the loop. If these close a loop, it is returned, else credit loops are not
// judged; neither are they if something cannot be read. The error is the end of ctx.
func VerifyInLanes(ctx context.Context, e *engine.Engine, client *sa.Client, r *routes.Routes, o verify.Options, v *verify.Verdict) (*verify.Verdict, error) {
	judged, err := verifyInLanes(ctx, e, client, r, o, v)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return v.WithoutLoop(err.Error()), nil
	}
	return judged, nil
}

func verifyInLanes(ctx context.Context, e *engine.Engine, client *sa.Client, r *routes.Routes, o verify.Options, v *verify.Verdict) (*verify.Verdict, error) {
	in := *r
	levels, records, err := ReadLevels(ctx, client, r)
	if err == nil && countTurns(r.Graph()) > maxTurns {
		err = errTooMany
	}
	switch {
	case errors.Is(err, errTooMany):
		return sampleLoop(ctx, e, client, &in, v, err)
	case err != nil:
		return nil, err
	}
	if err := ReadLanes(ctx, e, &in); err != nil {
		return nil, err
	}
	in.SL = levels
	if v, err = verify.Tables(ctx, &in, o); err == nil {
		v.Notes = append(v.Notes, fmt.Sprintf("service levels are those of %s, without partition, service or class", plural.Count(records, "path record", "path records")))
	}
	return v, err
}

// countTurns counts the pairs of ports with a link of each switch.
func countTurns(g *graph.Graph) int {
	turns := 0
	for _, n := range g.Switches() {
		linked := 0
		for p := range n.Ports() {
			if p.Peer() != nil {
				linked++
			}
		}
		turns += linked * linked
	}
	return turns
}

// sampleLoop is verifyInLanes by paths that cover the loop of v. Of switches that route adaptively, these
// are paths by the static ports alone, so a loop of choices is not among them.
func sampleLoop(ctx context.Context, e *engine.Engine, client *sa.Client, in *routes.Routes, v *verify.Verdict, why error) (*verify.Verdict, error) {
	paths, err := readSampled(ctx, client, in, verify.PathsThrough(in, v.Cycle, maxSampled))
	if err != nil {
		return nil, err
	}
	var turns []routes.Hop
	seen := map[routes.Hop]bool{}
	for _, p := range paths {
		for _, h := range p.Hops {
			if t := (routes.Hop{Switch: h.Switch, In: h.In, Out: h.Out}); !seen[t] && h.Out > 0 {
				seen[t] = true
				turns = append(turns, t)
			}
		}
	}
	in.SL2VL = routes.NewSL2VL(in.Graph())
	if err := readRows(ctx, e, in, turns, func(t routes.Hop, row [16]uint8) error { return in.SL2VL.Set(t.Switch, t.In, t.Out, row) }); err != nil {
		return nil, err
	}
	count := plural.Count(len(paths), "path that covers", "paths that cover") + " the loop of the tables"
	sampled := *v
	if sampled.Cycle = verify.LoopOf(in, paths); sampled.Cycle == nil {
		return nil, fmt.Errorf("%w; %s: no loop on their virtual lanes", why, count)
	}
	sampled.Notes = append(slices.Clip(v.Notes), "the credit loop is on the virtual lanes of "+count)
	return &sampled, nil
}

// readSampled gives paths the service levels of path records, and returns those that have a record.
func readSampled(ctx context.Context, client *sa.Client, r *routes.Routes, paths []*routes.Path) (known []*routes.Path, err error) {
	requests := make([]sa.Request, len(paths))
	for i, p := range paths {
		requests[i] = sa.NewRequest(mad.MethodGetTable, mad.AttrPathRecord, &mad.PathRecord{SLID: r.Graph().Terminals()[p.From].LID, DLID: p.LID, NumbPath: 1}, "slid", "dlid", "numb_path")
	}
	if len(requests) > 0 { // as ReadLevels
		if _, err := client.Table(ctx, requests[0]); err != nil {
			return nil, fmt.Errorf("query of the subnet administrator: %w", err)
		}
	}
	calls, err := client.Do(ctx, requests...)
	if err != nil {
		return nil, err
	}
	for i, call := range calls {
		records, err := sa.Records(call, mad.AttrPathRecord)
		if err != nil {
			return nil, fmt.Errorf("query of the subnet administrator: path to LID %d: %w", paths[i].LID, err)
		}
		for data := range records {
			var path mad.PathRecord
			path.Decode(data)
			paths[i].SL = path.SL
			known = append(known, paths[i])
			break
		}
	}
	return known, nil
}

// maxSampled is the largest number of paths that cover a loop.
const maxSampled = 4096
