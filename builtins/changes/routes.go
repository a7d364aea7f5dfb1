package changes

import (
	"context"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// WriteRoutes writes the entries by which r differs from live, the tables that the
// switches have, as set_lft does. LIDs beyond r stay as they are.
func WriteRoutes(c *lang.Call, r, live *routing.Routes) error {
	e, err := topology.MayChange(c, mad.AttrLinearForwardingTable)
	if err != nil {
		return err
	}
	var all []*change.Table
	for _, sd := range r.Diff(live).Switches {
		n := r.Graph().Switches()[sd.Switch]
		if n.Route() == nil && n.LID() == 0 {
			return lang.Errorf("%s: %w", n.Label(), change.ErrNoAddress)
		}
		t := &change.Table{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Port: change.NoPortNumber}
		change.EditLinear(t, differing(r.Row(sd.Switch), rowOf(live, n.GUID())), false)
		all = append(all, t)
	}
	if err := topology.Change(c, func(ctx context.Context) error { return change.WriteTables(ctx, e, all...) }); err != nil {
		return err
	}
	for _, t := range all {
		if t.Err != nil {
			topology.CountUnanswered(c, t.Err)
			return lang.Errorf("the forwarding table of %v: %w", t.GUID, t.Err)
		}
	}
	return nil
}

func rowOf(r *routing.Routes, switchGUID mad.GUID) []uint8 {
	if s := r.Graph().SwitchByGUID(switchGUID); s >= 0 {
		return r.Row(s)
	}
	return nil
}

// differing are the entries of a row that another one has not.
func differing(row, old []uint8) map[mad.LID]uint8 {
	entries := map[mad.LID]uint8{}
	for lid := range row {
		was := uint8(mad.NoPort)
		if lid < len(old) {
			was = old[lid]
		}
		if lid > 0 && row[lid] != was {
			entries[mad.LID(lid)] = row[lid]
		}
	}
	return entries
}
