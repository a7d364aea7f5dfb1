package device

import (
	"context"
	"errors"

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
	r.Engine = routes.FromSwitches
	for s, n := range g.Switches() {
		if err := lfts[s].Err; err != nil {
			failed = append(failed, SwitchError{n, err})
			continue
		}
		copy(r.Row(s), lfts[s].Entries)
	}
	return r, failed, nil
}

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
