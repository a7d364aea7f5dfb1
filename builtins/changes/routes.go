package changes

import (
	"context"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// WriteRoutes writes the virtual lanes of r, as set_sl2vl does, and the entries in
// which r differs from live, the current tables, as set_lft does. LIDs beyond r stay
// unchanged. A plan that is being made is one for the service levels of r. Where adaptive
// routing is on, it is refused, unless the plan requests static routing: then each of these
// switches has its table written.
func WriteRoutes(c *lang.Call, r, live *routes.Routes) error {
	if r.HasChoices() {
		return lang.Errorf("these routes have choices of adaptive routing, which fabsh does not write; clone(choices=False) has their static ports")
	}
	e, err := topology.MayChange(c, mad.AttrLinearForwardingTable)
	if err != nil {
		return err
	}
	a, err := readAdaptivity(c, r.Graph().Fabric())
	if err != nil {
		return err
	}
	static, err := switchesToRewrite(c, a.On, isStatic(e), r, live)
	if err != nil {
		return err
	}
	if err := writeLanes(c, e, r); err != nil {
		return err
	}
	var all []*device.Table
	for _, sd := range r.Diff(live).Switches {
		n := r.Graph().Switches()[sd.Switch]
		if n.Route() == nil && n.LID() == 0 {
			return lang.Errorf("%s: %w", n.Label(), device.ErrNoAddress)
		}
		t := &device.Table{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Port: device.NoPortNumber}
		device.EditLinear(t, changedEntries(r.Row(sd.Switch), rowOf(live, n.GUID())))
		all = append(all, t)
	}
	if err := writeTables(c, e, "forwarding table", all); err != nil {
		return err
	}
	return rewriteFirstBlocks(c, e, live, static)
}

// writeLanes writes the virtual lanes of r between ports with a link. Service levels
// without a path keep their lane if the link does not have the lane of r.
func writeLanes(c *lang.Call, e *engine.Engine, r *routes.Routes) error {
	if r.SL2VL == nil { // one lane is enough, so the choice does not matter
		return nil
	}
	if rec, ok := e.Interceptor().(*change.Recorder); ok {
		rec.Target = r
	}
	used := r.SL.Used()
	var all []*device.Table
	for s, n := range r.Graph().Switches() {
		if n.Route() == nil && n.LID() == 0 {
			return lang.Errorf("%s: %w", n.Label(), device.ErrNoAddress)
		}
		t := &device.Table{Dest: fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}, GUID: n.GUID(), Port: device.NoPortNumber}
		device.EditLanes(t, func(t *device.Table, rows [][mad.ServiceLevels]uint8) error {
			for i := range rows {
				p := device.LanePorts(t, i)
				if in := n.Port(int(p.In)); p.Out == 0 || p.In == p.Out || n.Port(int(p.Out)).Peer() == nil || p.In > 0 && in.Peer() == nil {
					continue
				}
				has := lanesOf(n.Port(int(p.Out)))
				for sl := range rows[i] {
					vl := r.SL2VL.VL(s, p.In, p.Out, uint8(sl))
					switch {
					case vl < has:
						rows[i][sl] = vl
					case used>>sl&1 != 0:
						return lang.Errorf("%s has %s, but the tables map service level %d to VL %d there; limit the policy (max_vls), or enable more on the port (operational_vls)", n.Port(int(p.Out)).Name(), plural.Count(int(has), "virtual lane", "virtual lanes"), sl, vl)
					}
				}
			}
			return nil
		})
		all = append(all, t)
	}
	return writeTables(c, e, "SL2VL", all)
}

// lanesOf returns how many virtual lanes for data the link of a port has in use.
func lanesOf(p *fabric.Port) uint8 {
	if p.Info() != nil && p.Info().OperationalVLs.Count() > 0 {
		return uint8(p.Info().OperationalVLs.Count())
	}
	return lanes.Max
}

// writeTables writes tables of switches, which are called what.
func writeTables(c *lang.Call, e *engine.Engine, what string, all []*device.Table) error {
	if err := topology.Change(c, func(ctx context.Context) error { return device.WriteTables(ctx, e, all...) }); err != nil {
		return err
	}
	for _, t := range all {
		if t.Err != nil {
			topology.CountUnanswered(c, t.Err)
			return lang.Errorf("the %s of %v: %w", what, t.GUID, t.Err)
		}
	}
	return nil
}

func rowOf(r *routes.Routes, switchGUID mad.GUID) []uint8 {
	if s := r.Graph().SwitchByGUID(switchGUID); s >= 0 {
		return r.Row(s)
	}
	return nil
}

// changedEntries returns the entries of a row that differ from another one.
func changedEntries(row, old []uint8) map[mad.LID]uint8 {
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

// firstBlock returns the first block of the forwarding table of a switch.
func firstBlock(live *routes.Routes, n *fabric.Node) []byte {
	data := make([]byte, mad.LFTBlock)
	for i := range data {
		data[i] = mad.NoPort
	}
	copy(data, rowOf(live, n.GUID()))
	return data
}

// rewriteFirstBlocks writes the first block of the forwarding tables of switches, unchanged.
func rewriteFirstBlocks(c *lang.Call, e *engine.Engine, live *routes.Routes, switches []*fabric.Node) error {
	calls := make([]engine.Call, len(switches))
	open := make([]*engine.Call, len(switches))
	for i, n := range switches {
		open[i] = fabric.Dest{Route: n.Route(), LID: n.LID(), Guard: n.Guard()}.Put(&calls[i], mad.MethodSet, mad.AttrLinearForwardingTable, 0, firstBlock(live, n))
	}
	if err := c.Block(func(ctx context.Context) error { return e.Do(ctx, open...) }); err != nil {
		return err
	}
	for i, n := range switches {
		if calls[i].Err != nil {
			return lang.Errorf("the forwarding table of %s: %w", n.Label(), calls[i].Err)
		}
	}
	return nil
}
