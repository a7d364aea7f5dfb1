package device

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
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

// ReadRoutes reads the linear forwarding tables of all switches of f at once, of
// each the blocks up to LinearFDBTop. A table that could not be read drops all
// packets; failed are those, by switch number. The error is the end of ctx, or
// that f has no graph.
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

// ReadLanes gives r, tables that were just read, the SL2VL of all switches between ports
// with a link, by routes to them. Rows of other ports, which no packets use, are as some
// other one of the switch. The error is the end of ctx, or that a row cannot be read.
func ReadLanes(ctx context.Context, e *engine.Engine, r *routes.Routes) error {
	const most = 8192 // calls at once
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
		if len(pairs) > most {
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

// readSwitches reads the tables of those switches that have an address.
func readSwitches(ctx context.Context, e *engine.Engine, switches []*fabric.Node) ([]LFT, error) {
	lfts := make([]LFT, len(switches))
	var dests []fabric.Dest
	var asked []int
	for s, n := range switches {
		if n.Route() == nil && n.LID() == 0 {
			lfts[s].Err = ErrNoAddress
			continue
		}
		dests, asked = append(dests, fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}), append(asked, s)
	}
	read, err := ReadLFTs(ctx, e, dests)
	for i, s := range asked[:len(read)] {
		lfts[s] = read[i]
	}
	return lfts, err
}
