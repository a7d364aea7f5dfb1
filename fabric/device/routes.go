package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ErrNoAddress reports that a node of a fabric cannot be queried: it has neither a
// directed route nor a LID.
var ErrNoAddress = errors.New("no known directed route or LID")

// SwitchError reports why the table of a switch could not be read.
type SwitchError struct {
	Switch *fabric.Node
	Err    error
}

// ReadRoutes reads the linear forwarding tables of all switches of f at once, each up to
// LinearFDBTop. A table that could not be read drops all packets; failed are these tables, by
// switch number. The error is the end of ctx, or that f has no graph.
func ReadRoutes(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (r *routes.Routes, failed []SwitchError, err error) {
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		return nil, nil, err
	}
	lfts, err := readSwitches(ctx, e, g.Switches())
	if err != nil {
		return nil, nil, err
	}
	top := 0
	for i := range lfts {
		top = max(top, len(lfts[i].Entries)-1)
	}
	r = routes.New(g, mad.LID(top))
	r.Engine = "live"
	for s, n := range g.Switches() {
		if err := lfts[s].Err; err != nil {
			failed = append(failed, SwitchError{n, err})
			continue
		}
		copy(r.Row(s), lfts[s].Entries)
	}
	return r, failed, nil
}

// ReadLanes gives r, tables that were just read, the SL2VL of all switches between ports with a
// link, by routes to them. Rows of other ports, which no packets use, are copies of some row of
// the switch. The error is the end of ctx, or that a row cannot be read.
func ReadLanes(ctx context.Context, e *engine.Engine, r *routes.Routes) error {
	lanes := routes.NewSL2VL(r.Graph())
	type pair struct {
		s       int
		in, out uint8
	}
	var pairs []pair
	flush := func() error {
		calls := make([]engine.Call, len(pairs))
		open := make([]*engine.Call, len(pairs))
		for i, p := range pairs {
			n := r.Graph().Switches()[p.s]
			open[i] = fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}.Put(&calls[i], mad.MethodGet, mad.AttrSLtoVLMappingTable, uint32(p.in)<<8|uint32(p.out), nil)
		}
		if err := e.Do(ctx, open...); err != nil {
			return err
		}
		filled := -1
		for i, p := range pairs {
			n := r.Graph().Switches()[p.s]
			if err := calls[i].Err; err != nil {
				return fmt.Errorf("the SL2VL of %s from port %d to port %d: %w", n.Label(), p.in, p.out, err)
			}
			var row mad.SLtoVLMappingTable
			row.Decode(calls[i].Data())
			for in := range n.NumPorts() + 1 {
				for out := range n.NumPorts() + 1 {
					if p.s != filled {
						if err := lanes.Set(p.s, uint8(in), uint8(out), row.SLtoVL); err != nil {
							return err
						}
					}
				}
			}
			filled = p.s
			if err := lanes.Set(p.s, p.in, p.out, row.SLtoVL); err != nil {
				return err
			}
		}
		pairs = pairs[:0]
		return nil
	}
	for s, n := range r.Graph().Switches() {
		if n.Route() == nil && n.LID() == 0 {
			return fmt.Errorf("%s: %w", n.Label(), ErrNoAddress)
		}
		if len(pairs) > maxCalls {
			if err := flush(); err != nil {
				return err
			}
		}
		for in := range n.Ports() {
			for out := range n.Ports() {
				if in != out && in.Peer() != nil && out.Peer() != nil {
					pairs = append(pairs, pair{s, uint8(in.Num()), uint8(out.Num())})
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

// mostOfPair is the largest number of paths between two ports that a query may request
// (PathRecord.NumbPath, IBA 15.2.5.16).
const mostOfPair = 127

// maxPaths is the number of pairs of LIDs from which path records are no longer
// queried: each is a record of 64 bytes, and the subnet administrator makes them one by
// one.
const maxPaths = 1 << 18

// readSwitches reads the tables of the switches that have an address.
func readSwitches(ctx context.Context, e *engine.Engine, switches []*fabric.Node) ([]LFT, error) {
	lfts := make([]LFT, len(switches))
	var dests []fabric.Dest
	var readable []int
	for s, n := range switches {
		if n.Route() == nil && n.LID() == 0 {
			lfts[s].Err = ErrNoAddress
			continue
		}
		dests, readable = append(dests, fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}), append(readable, s)
	}
	read, err := ReadLFTs(ctx, e, dests)
	for i, s := range readable[:len(read)] {
		lfts[s] = read[i]
	}
	return lfts, err
}
