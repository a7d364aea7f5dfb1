package device

import (
	"context"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// PortTarget is a port that is to be changed, with its attributes.
type PortTarget struct {
	Dest fabric.Dest
	// GUID is the node GUID that must answer; 0: any.
	GUID mad.GUID
	// Num is the port; NoPortNumber: of a CA, the port where the request comes
	// in.
	Num int
	// Known is the port in a fabric that was discovered; nil: unknown.
	Known *fabric.Port

	Node          mad.NodeInfo
	Before, After []byte // its PortInfo, before the change and after
	Err           error

	incoming bool         // Num is the port where the request comes in
	caps     mad.PortInfo // whose CapabilityMask counts: of a switch, port 0's
}

// PortInfo is the latest PortInfo read from the port.
func (p *PortTarget) PortInfo() (i mad.PortInfo) {
	if p.After != nil {
		i.Decode(p.After)
	} else {
		i.Decode(p.Before)
	}
	return i
}

// IsSwitch reports whether the port is a switch's.
func (p *PortTarget) IsSwitch() bool { return p.Node.NodeType == mad.NodeTypeSwitch }

// get makes c a Get of PortInfo of port num of p's node.
func (p *PortTarget) get(c *engine.Call, num int) *engine.Call {
	return p.Dest.Put(c, mad.MethodGet, mad.AttrPortInfo, uint32(num), nil)
}

// readPorts reads NodeInfo and PortInfo. The error is the end of ctx.
func readPorts(ctx context.Context, e *engine.Engine, ports []*PortTarget) error {
	calls := make([]struct{ node, port, caps engine.Call }, len(ports))
	var open []*engine.Call
	for i, p := range ports {
		open = append(open, p.Dest.Put(&calls[i].node, mad.MethodGet, mad.AttrNodeInfo, 0, nil))
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	open = open[:0]
	for i, p := range ports {
		c := &calls[i]
		if p.Err = c.node.Err; p.Err != nil {
			continue
		}
		p.Node.Decode(c.node.Data())
		if p.Err = p.checkNode(); p.Err != nil {
			continue
		}
		open = append(open, p.get(&c.port, p.Num))
		if p.IsSwitch() {
			open = append(open, p.get(&c.caps, 0))
		}
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	for i, p := range ports {
		c := &calls[i]
		switch {
		case p.Err != nil:
			continue
		case c.port.Err != nil:
			p.Err = c.port.Err
			continue
		case p.IsSwitch() && c.caps.Err != nil:
			p.Err = c.caps.Err
			continue
		}
		p.Before = slices.Clone(c.port.Data()[:mad.AttrPortInfo.Size])
		p.caps = p.PortInfo()
		if p.IsSwitch() {
			p.caps.Decode(c.caps.Data())
		}
	}
	return nil
}

// checkNode returns an error unless the node is the one to change and has such an external
// port.
func (p *PortTarget) checkNode() error {
	guid := checkGUID(p.Dest, p.GUID, p.Node.NodeGUID)
	if p.incoming || p.Num == NoPortNumber && !p.IsSwitch() {
		p.Num = int(p.Node.LocalPortNum)
	}
	switch {
	case guid != nil:
		return guid
	case p.Num == NoPortNumber:
		return unsupported("it is a switch; name one of its ports")
	case p.Num == 0:
		return unsupported("port 0 of a switch has no link")
	case p.Num > int(p.Node.NumPorts):
		return unsupported("no port %d; the node has ports up to %d", p.Num, p.Node.NumPorts)
	}
	return nil
}

// peer is the port at the other end of the link; nil where no route to it is
// known. A CA forwards nothing, so the peer of its port must be Known's.
func (p *PortTarget) peer() *PortTarget {
	switch {
	case p.IsSwitch() && p.Dest.Route != nil && p.Dest.Route.Hops() < mad.MaxHops:
		to := &PortTarget{Dest: fabric.Dest{Route: p.Dest.Route.Append(uint8(p.Num))}, incoming: true}
		if p.Known != nil && p.Known.Peer() != nil {
			to.Dest.Guard = p.Known.Peer().Guard()
		}
		return to
	case p.Known != nil && p.Known.Peer() != nil:
		q := p.Known.Peer()
		return &PortTarget{Dest: fabric.Dest{Route: q.Route(), LID: q.LID(), Guard: q.Guard()}, GUID: q.Node().GUID(), Num: q.Num(), Known: q}
	}
	return nil
}
