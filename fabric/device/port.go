package device

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	caps     mad.PortInfo // whose CapabilityMask counts: at a switch, PortInfo of port 0
}

// LinkModes are the speeds or the widths that a link may use.
type LinkModes struct {
	Words []string // empty: leave them unchanged
	// UpTo reports that Words is one word, which also includes all slower or narrower ones
	// that the port supports.
	UpTo bool
}

// LinkSettings changes the speeds and widths that are enabled at a port. They take effect when
// the link trains next.
type LinkSettings struct {
	PortTarget
	Speed, Width LinkModes
	// Force makes the change even where a CautionError would refuse it.
	Force bool
}

// SetLinks makes all changes at once; the outcome of each is in its Err.
// The Sets are sent once. The error is the end of ctx.
func SetLinks(ctx context.Context, e *engine.Engine, changes ...*LinkSettings) error {
	var targets, peers []*PortTarget
	for _, c := range changes {
		targets = append(targets, &c.PortTarget)
	}
	if err := readPorts(ctx, e, targets); err != nil {
		return err
	}
	peerOf := map[*LinkSettings]*PortTarget{}
	for _, c := range changes {
		if peer := c.peer(); peer != nil && c.Err == nil && !c.Force {
			peerOf[c] = peer
			peers = append(peers, peer)
		}
	}
	if err := readPorts(ctx, e, peers); err != nil {
		return err
	}
	var sets []*Set
	var open []*LinkSettings
	for _, c := range changes {
		var set *Set
		if c.Err == nil {
			set, c.Err = c.set(peerOf[c])
		}
		if c.Err == nil {
			open, sets = append(open, c), append(sets, set)
		}
	}
	if err := SetAttributes(ctx, e, sets...); err != nil {
		return err
	}
	for i, c := range open {
		c.Err, c.After = sets[i].Err, sets[i].After
	}
	return nil
}

// PortInfo returns the latest PortInfo read from the port.
func (p *PortTarget) PortInfo() (i mad.PortInfo) {
	if p.After != nil {
		i.Decode(p.After)
	} else {
		i.Decode(p.Before)
	}
	return i
}

// IsSwitch reports whether the port belongs to a switch.
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

// peer returns the port at the other end of the link; nil if no route to it is known. A CA
// forwards nothing, so the peer of its port must be known from Known.
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

// set returns the Set of PortInfo. peer is the port at the other end of the link, nil or with
// an error if it is unknown.
func (c *LinkSettings) set(peer *PortTarget) (*Set, error) {
	now := c.PortInfo()
	values := map[string]uint64{}
	if len(c.Speed.Words) > 0 {
		speeds, err := c.Speed.among(fabric.LinkSpeeds, c.speeds(fabric.SupportedSpeeds))
		if err == nil {
			err = c.putSpeeds(values, speeds)
		}
		if err == nil && peer != nil && peer.Err == nil {
			err = checkCommonRate("speeds", fabric.LinkSpeeds, speeds, peer.speeds(fabric.EnabledSpeeds))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.Width.Words) > 0 {
		widths, err := c.Width.among(fabric.LinkWidths, fabric.WidthSet(now.LinkWidthSupported))
		if err == nil && peer != nil && peer.Err == nil {
			i := peer.PortInfo()
			err = checkCommonRate("widths", fabric.LinkWidths, widths, fabric.WidthSet(i.LinkWidthEnabled))
		}
		if err != nil {
			return nil, err
		}
		for _, word := range widths.Words(fabric.LinkWidths) {
			values["link_width_enabled"] |= mad.WordsLinkWidth.Code()[word]
		}
	}
	set := &Set{Dest: c.Dest, GUID: c.GUID, Attr: mad.AttrPortInfo, Modifier: uint32(c.Num), Once: true, Edit: func(data []byte) {
		for name, v := range values {
			mad.AttrPortInfo.Field(name).SetUint(data, v)
		}
	}}
	for name := range sortedEntries(values) {
		set.Named = append(set.Named, name)
	}
	return set, nil
}

// among returns the set that c chooses among the supported rates.
func (c LinkModes) among(all []string, supported fabric.RateSet) (chosen fabric.RateSet, err error) {
	for _, word := range c.Words {
		i := slices.Index(all, word)
		if supported>>i&1 == 0 {
			return 0, unsupported("%s: not supported by the port; supported: %s", word, strings.Join(supported.Words(all), ", "))
		}
		chosen |= 1 << i
		if c.UpTo {
			chosen = supported & (1<<(i+1) - 1)
		}
	}
	return chosen, nil
}

// checkCommonRate returns an error unless the peer has one of the rates mine enabled.
func checkCommonRate(what string, all []string, mine, theirs fabric.RateSet) error {
	if mine&theirs != 0 {
		return nil
	}
	return &CautionError{fmt.Sprintf("not set: of these %s (%s) the neighbour has enabled none, only %s; the link would not come up again", what, strings.Join(mine.Words(all), ", "), strings.Join(theirs.Words(all), ", "))}
}

// speeds returns the speeds of the port.
func (p *PortTarget) speeds(of func(caps, i *mad.PortInfo) fabric.RateSet) fabric.RateSet {
	i := p.PortInfo()
	return of(&p.caps, &i)
}

// putSpeeds puts a set of speeds in the fields that the port has. A set without
// SDR is reserved, and 30 stands for no extended speed (IBA 14.2.5.6;
// opensm opensm/osm_subnet.c force_link_speed, include/iba/ib_types.h
// IB_LINK_SPEED_EXT_DISABLE).
func (c *LinkSettings) putSpeeds(values map[string]uint64, speeds fabric.RateSet) error {
	now := c.PortInfo()
	const xdr = 1 << 7
	switch {
	case speeds&1 == 0:
		return unsupported("the speeds must include sdr: links begin with it, and sets without it are reserved")
	case fabric.HasExtendedSpeeds2(&c.caps) && speeds&xdr == 0 && now.LinkSpeedExtEnabled2 != 0:
		return unsupported("xdr is enabled and no public source documents how to disable it; the speeds must include it")
	}
	values["link_speed_enabled"] = uint64(speeds & 7)
	if fabric.HasExtendedSpeeds(&c.caps) && now.LinkSpeedExtSupported != 0 {
		values["link_speed_ext_enabled"] = uint64(speeds >> 3 & 15)
		if speeds>>3&15 == 0 {
			values["link_speed_ext_enabled"] = uint64(mad.LinkSpeedExtDisabled)
		}
	}
	if speeds&xdr != 0 {
		values["link_speed_ext_enabled2"] = 1
	}
	return nil
}
