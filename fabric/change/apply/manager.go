package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// beside is how a change goes with a running subnet manager.
type beside uint8

const (
	alone       beside = iota // it is refused: fabsh writes what the subnet manager owns
	staged                    // OpenSM writes the tables
	ofLinks                   // it changes only links, which needs Host.OverrideSM
	ofLinksBack               // the reversal of such a change
)

// besideOf returns how the change of cells goes with a subnet manager, or its reversal.
func besideOf(cells []*Cell, isStaged, back bool) beside {
	switch only := !slices.ContainsFunc(cells, func(c *Cell) bool { return !change.OfLinks(c.Attr, c.Fields) }); {
	case isStaged:
		return staged
	case only && back:
		return ofLinksBack
	case only:
		return ofLinks
	}
	return alone
}

// manager returns the subnet manager of f, which was just swept; nil: there is no
// manager. The error is the reason that a change must not be applied beside it.
func (h *Host) manager(ctx context.Context, f *fabric.Fabric, how beside) (*sa.SM, error) {
	if !f.Complete() {
		return nil, &FabricError{fmt.Errorf("change: incomplete sweep; nothing was sent: %s", f.FirstMissing())}
	}
	manager, err := h.SA.FindSM(ctx, f)
	if err != nil {
		return nil, err
	}
	if how == staged && (manager == nil || manager.Info == nil || manager.Info.SMState != mad.SMStateMaster) {
		return nil, &FabricError{errors.New("change: no subnet manager is MASTER, so no process would write staged tables")}
	}
	if manager == nil || h.Engine.Traits().Simulated && !h.OverrideSM {
		return manager, nil
	}
	switch {
	case how == ofLinks && !h.OverrideSM:
		return nil, fmt.Errorf("change: %v is active; nothing was sent: the change is one of links only, which it handles like that of a cable; --override-sm applies it link by link, and checks its new tables", manager)
	case how == ofLinks && (manager.Info == nil || manager.Info.SMState != mad.SMStateMaster):
		return nil, &FabricError{fmt.Errorf("change: %v does not answer as MASTER; nothing was sent: no subnet manager would write new tables", manager)}
	case how == alone && h.OverrideSM && !h.Engine.Traits().Simulated:
		return nil, fmt.Errorf("change: %v is active; nothing was sent: --override-sm applies only changes of port states and link speeds. %s", manager, letItWrite)
	case how == alone && !h.Engine.Traits().Simulated:
		return nil, fmt.Errorf("change: %v is active; nothing was sent: OpenSM neither detects nor repairs writes of others. %s", manager, letItWrite)
	}
	return manager, nil
}

// letItWrite is the remedy for a change that fabsh must not apply beside OpenSM.
const letItWrite = "Let it write the tables (opensm -R file,no_fallback -U FILE, and change apply --stage FILE --reload PIDFILE), or stop it first"

// Manager checks that the subnet manager in charge is the same as before the change, or
// that there is still no manager.
func (c *Checks) Manager(ctx context.Context) error {
	now, err := c.findManager(ctx)
	if err != nil || now == nil {
		return err
	}
	return c.sameManager(now)
}

// sameManager returns a *CheckError if a subnet manager is not the one before the change.
func (c *Checks) sameManager(now *sa.SM) error {
	switch {
	case c.manager != nil && c.manager.Info != nil && now.Info.GUID == c.manager.Info.GUID:
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
