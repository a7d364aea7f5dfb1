package device

import (
	"context"
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ReadAdaptiveRoutes is ReadRoutes with the adaptive routing of all switches, which replaces
// the forwarding tables where it is on: those are not read, for no packet follows them. announce
// gets the number of requests for the tables of adaptive routing, as in ReadAR.
//
// What was read by inferred modifiers is checked, also against the network; where a check
// fails, the reason is in Unknown of the switch's adaptive.Switch. So it is where the adaptive
// routing of a switch could not be read.
func ReadAdaptiveRoutes(ctx context.Context, e *engine.Engine, f *fabric.Fabric, announce func(requests int)) (r *routes.Routes, failed []SwitchError, err error) {
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		return nil, nil, err
	}
	switches := g.Switches()
	var list []*AR
	of := make([]*AR, len(switches)) // nil: without an address
	for s, n := range switches {
		if n.Route() != nil || n.LID() != 0 {
			of[s] = &AR{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID()}
			list = append(list, of[s])
		}
	}
	if err := ReadAR(ctx, e, announce, list...); err != nil {
		return nil, nil, err
	}
	var static []*fabric.Node
	var at []int
	for s, n := range switches {
		if a := of[s]; a == nil || a.Err != nil || !a.on() {
			static, at = append(static, n), append(at, s)
		}
	}
	lfts, err := readSwitches(ctx, e, static)
	if err != nil {
		return nil, nil, err
	}
	top := 0
	for i := range lfts {
		top = max(top, len(lfts[i].Entries)-1)
	}
	for _, a := range list {
		if a.Tables.Active() {
			top = max(top, int(a.Tables.Top()))
		}
	}
	r = routes.New(g, mad.LID(top))
	r.Engine = "live"
	for i, s := range at {
		if err := lfts[i].Err; err != nil {
			failed = append(failed, SwitchError{switches[s], err})
			continue
		}
		copy(r.Row(s), lfts[i].Entries)
	}
	known := make([]*adaptive.Switch, len(switches))
	for s, a := range of {
		switch {
		case a == nil: // among failed
		case a.Err != nil:
			known[s] = &adaptive.Switch{Unknown: fmt.Sprintf("adaptive routing could not be read: %v", a.Err)}
		default:
			known[s] = a.Tables
		}
		r.SetAdaptive(s, known[s])
	}
	if err := checkStatic(ctx, r, func(s int) *adaptive.Switch { return known[s] }); err != nil {
		return nil, nil, err
	}
	for s, a := range known {
		if a.Active() && a.Unknown != "" {
			r.SetAdaptive(s, a)
		}
	}
	return r, failed, nil
}
