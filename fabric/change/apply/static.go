package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/device"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// static returns the switches whose adaptive routing p disables, and where it is still on.
// The error is a *StaleError if p writes forwarding tables at others where it is on.
func (h *Host) static(ctx context.Context, p *change.Plan, f *fabric.Fabric, o *ChangeOptions) (nodes []mad.GUID, err error) {
	if !slices.ContainsFunc(p.Sets, func(s change.Set) bool { return s.Attr == mad.AttrLinearForwardingTable }) {
		return nil, nil
	}
	a, err := device.ReadAdaptivity(ctx, h.Engine, f)
	if err != nil {
		return nil, err
	}
	if since := p.Stale(a.On); len(since) > 0 {
		return nil, &StaleError{o.Plan, since}
	}
	for _, s := range p.Disables {
		if slices.ContainsFunc(a.On, func(n *fabric.Node) bool { return n.GUID() == s.GUID }) {
			nodes = append(nodes, s.GUID)
		}
	}
	if len(nodes) > 0 && o.Stage != "" {
		return nil, errors.New("change apply: --stage: not supported with a plan that disables adaptive routing: OpenSM does not write blocks that stay; stop OpenSM, and omit --stage")
	}
	for _, x := range a.Undetermined {
		h.log(fmt.Sprintf("warning: %s: adaptive routing could not be determined, assumed to be off: %v", x.Switch.Label(), x.Err))
	}
	return nodes, nil
}

// readAdaptivity gives t the adaptive routing that is on, with its choices.
func readAdaptivity(ctx context.Context, e *engine.Engine, t *change.Tables) (*device.Adaptivity, error) {
	a, err := device.ReadAdaptivity(ctx, e, t.Live.Graph().Fabric())
	if err != nil {
		return nil, err
	}
	choices, err := device.ReadChoices(ctx, e, t.Live, a.On)
	if err == nil {
		t.SetAdaptivity(a, choices)
	}
	return a, err
}

// rewrites reports whether the cell is written to disable adaptive routing: it reads the
// same before and after.
func (c *Cell) rewrites() bool {
	return c.Attr == mad.AttrLinearForwardingTable && bytes.Equal(c.Old, c.New)
}

// checkStatic returns an error if adaptive routing is on at a switch whose forwarding table
// is written, and that is not in p.Static: it was switched on after the change began.
func (p *Prover) checkStatic(a *device.Adaptivity, writes []change.Write) error {
	for _, n := range a.On {
		if slices.ContainsFunc(writes, func(w change.Write) bool {
			return w.Node == n.GUID() && w.Attr == mad.AttrLinearForwardingTable
		}) && (p.Back || !slices.Contains(p.Static, n.GUID())) {
			return &CheckError{fmt.Sprintf("adaptive routing of %s was switched on; its forwarding table is not written", n.Label())}
		}
	}
	return nil
}

// static checks that adaptive routing is off at switches whose forwarding tables the change
// has written: else their packets do not follow them.
func (c *Checks) static(ctx context.Context, changed []mad.GUID) error {
	var list []*engine.Call
	var of []*fabric.Node
	for _, guid := range changed {
		for _, n := range c.f.NodeByGUID(guid) {
			if c.tables[guid] && n.IsSwitch() {
				list = append(list, fabric.Dest{Route: c.route(n), LID: n.LID(), Guard: n.Guard()}.Put(new(engine.Call), mad.MethodGet, mad.AttrAdaptiveRoutingInfo, 0, nil))
				of = append(of, n)
			}
		}
	}
	if err := c.client.Engine.Do(ctx, list...); err != nil {
		return err
	}
	for i, call := range list {
		var info mad.AdaptiveRoutingInfo
		if call.Err != nil { // not announced, or not determined, as before the change
			continue
		}
		if info.Decode(call.Data()); info.E || info.HBFEn {
			return &CheckError{fmt.Sprintf("adaptive routing of %s is on although its forwarding table was written, so packets do not follow the table", of[i].Label())}
		}
	}
	return nil
}

// Unrestored describes the adaptive routing that the change has disabled, and that its
// reversal does not restore; "": none.
func (b *Begin) Unrestored() string {
	if b == nil {
		return ""
	}
	return change.Unrestored(len(b.Static))
}
