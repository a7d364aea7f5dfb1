package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// manager returns the subnet manager of f, which was just swept; nil: there is no
// manager. The error is the reason that no change may be applied beside it, by Sets or
// staged for OpenSM.
func (h *Host) manager(ctx context.Context, f *fabric.Fabric, staged bool) (*sa.SM, error) {
	if !f.Complete() {
		return nil, &FabricError{fmt.Errorf("change: incomplete sweep; nothing was sent: %s", f.FirstMissing())}
	}
	manager, err := h.SA.FindSM(ctx, f)
	if err != nil {
		return nil, err
	}
	if staged && (manager == nil || manager.Info == nil || manager.Info.SMState != mad.SMStateMaster) {
		return nil, &FabricError{errors.New("change: no subnet manager is MASTER, so no process would write staged tables")}
	}
	if manager != nil && !staged && !h.Engine.Traits().Simulated {
		return nil, fmt.Errorf("change: %v is active; nothing was sent: OpenSM neither detects nor repairs writes of others. Let it write the tables (opensm -R file,no_fallback -U FILE, and change apply --stage FILE --reload PIDFILE), or stop it first", manager)
	}
	return manager, nil
}

// Manager checks that the subnet manager in charge is the same as before the change, or
// that there is still no manager.
func (c *Checks) Manager(ctx context.Context) error {
	now, err := c.findManager(ctx)
	switch {
	case err != nil:
		return err
	case now == nil || c.manager != nil && c.manager.Info != nil && now.Info.GUID == c.manager.Info.GUID:
		return nil
	case c.manager != nil && c.manager.Info == nil && now.LID == c.manager.LID:
		return nil
	}
	return &CheckError{fmt.Sprintf("%v is now in charge of the subnet", now)}
}

// findManager returns a subnet manager that is MASTER; nil: not found. It queries the
// port that the local port names, and the ports that had one.
func (c *Checks) findManager(ctx context.Context) (*sa.SM, error) {
	var local engine.Call
	local.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 0, nil)
	local.SetRoute(mad.DirectedRoute{0})
	e := c.client.Engine
	if err := e.Do(ctx, &local); err != nil {
		return nil, err
	}
	if local.Err != nil {
		return nil, local.Err
	}
	var info mad.PortInfo
	info.Decode(local.Data())
	const most = 16 // ports that are queried
	var calls []*engine.Call
	var lids []mad.LID
	ask := func(d fabric.Dest, lid mad.LID) {
		call := d.Put(new(engine.Call), mad.MethodGet, mad.AttrSMInfo, 0, nil)
		// Between rounds a port that does not answer must not cost seconds. A new master
		// is found after the next round at the latest.
		call.Timeout, call.Retries = 200*time.Millisecond, 1
		calls, lids = append(calls, call), append(lids, lid)
	}
	if lid := info.MasterSMLID; lid != 0 && info.LID != 0 {
		ask(fabric.Dest{LID: lid}, lid)
	}
	for i := range c.f.Ports() {
		p := &c.f.Ports()[i]
		pi := p.Info()
		if pi == nil || p.LID() == 0 && pi.CapabilityMask&mad.CapabilityMaskIsSM == 0 || p.Route() == nil || len(calls) > most {
			continue
		}
		if pi.CapabilityMask&mad.CapabilityMaskIsSM != 0 || p.LID() == info.MasterSMLID {
			ask(fabric.Dest{Route: c.portRoute(p), Guard: p.Guard()}, p.LID())
		}
	}
	if err := e.Do(ctx, calls...); err != nil {
		return nil, err
	}
	for i, call := range calls {
		if call.Err != nil {
			continue
		}
		sm := new(mad.SMInfo)
		if sm.Decode(call.Data()); sm.SMState == mad.SMStateMaster {
			return &sa.SM{LID: lids[i], Info: sm}, nil
		}
	}
	return nil, nil
}
