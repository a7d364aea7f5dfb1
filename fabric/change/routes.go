package change

import (
	"context"
	"errors"

	"fabsh/fabric"
	"fabsh/fabric/routing"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ErrNoAddress is why a node of a fabric cannot be asked: it has neither a
// directed route nor a LID.
var ErrNoAddress = errors.New("neither a directed route nor a LID is known")

// SwitchError is why the table of a switch could not be read.
type SwitchError struct {
	Switch *fabric.Node
	Err    error
}

// ReadRoutes reads the linear forwarding tables of all switches of f at once, of
// each the blocks up to LinearFDBTop. A table that could not be read drops all
// packets; failed are those, by switch number. The error is the end of ctx, or
// that f has no graph.
func ReadRoutes(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (r *routing.Routes, failed []SwitchError, err error) {
	g, err := routing.NewGraph(f, routing.GraphOptions{})
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
	r = routing.NewRoutes(g, mad.LID(top))
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
