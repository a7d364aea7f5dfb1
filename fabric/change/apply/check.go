package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Checks check the fabric between two rounds, and compare it with its state before the
// first.
type Checks struct {
	client  *sa.Client
	f       *fabric.Fabric
	manager *sa.SM // before the change; nil: there was no manager
	admin   bool   // the SA answered before
	marked  []bool // by node: PortStateChange was set before
	planned map[*fabric.Port]bool
	tables  map[mad.GUID]bool   // nodes whose forwarding tables the change writes
	routes  []mad.DirectedRoute // by node: a route that uses no disabled port; nil: the route of the sweep
	sampled []sample
}

// sample is a port whose counters are compared.
type sample struct {
	port            *fabric.Port
	dropped, stuck  uint64 // VL15Dropped, discards for HOQLife
	hasDrop, hasHOQ bool   // whether they can be read
}

// maxSampled is the largest number of ports whose counters are read after each round, and
// maxLooked that of switches whose ports are read.
const (
	maxSampled = 64
	maxLooked  = 64
)

// NewChecks records the state of f, which was just swept, and of its subnet manager,
// before the change of cells.
func NewChecks(ctx context.Context, client *sa.Client, f *fabric.Fabric, manager *sa.SM, cells []*Cell) (*Checks, error) {
	c := &Checks{client: client, f: f, manager: manager, planned: map[*fabric.Port]bool{}, tables: map[mad.GUID]bool{}}
	for _, cell := range cells {
		cell.ports(f, c.planned)
		c.tables[cell.Node] = c.tables[cell.Node] || cell.Attr == mad.AttrLinearForwardingTable
	}
	c.routes = aroundCells(f, cells)
	if manager != nil {
		var err error
		if c.admin, err = c.answers(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if c.marked, err = c.marks(ctx); err != nil {
		return nil, err
	}
	seen := map[*fabric.Node]bool{}
	for _, cell := range cells {
		for _, n := range f.NodeByGUID(cell.Node) {
			if seen[n] || !n.IsSwitch() {
				continue
			}
			seen[n] = true
			for p := range n.Ports() {
				if p.Peer() != nil && len(c.sampled) < maxSampled {
					c.sampled = append(c.sampled, sample{port: p})
				}
			}
		}
	}
	for i := range c.sampled {
		c.sampled[i].hasDrop, c.sampled[i].hasHOQ = true, true
	}
	return c, c.counters(ctx, func(s *sample, drop, hoq *uint64) error {
		if s.hasDrop, s.hasHOQ = drop != nil, hoq != nil; s.hasDrop {
			s.dropped = *drop
		}
		if s.hasHOQ {
			s.stuck = *hoq
		}
		return nil
	})
}

// ports adds the ports whose PortInfo c writes, and their peers.
func (c *Cell) ports(f *fabric.Fabric, to map[*fabric.Port]bool) {
	if c.Attr != mad.AttrPortInfo {
		return
	}
	for _, n := range f.NodeByGUID(c.Node) {
		if p := n.Port(int(c.Modifier & 0xff)); p != nil {
			to[p] = true
			if p.Peer() != nil {
				to[p.Peer()] = true
			}
		}
	}
}

// disables reports whether the port is disabled after the change, or after its reversal.
func (c *Cell) disables() bool {
	return slices.ContainsFunc(c.Fields, func(name string) bool {
		f := c.Attr.Field(name)
		return name == "port_physical_state" && settled(f, f.Uint(c.Old)) != settled(f, f.Uint(c.New))
	})
}

// route returns a directed route to n.
func (c *Checks) route(n *fabric.Node) mad.DirectedRoute {
	if c.routes != nil && c.routes[n.ID()] != nil {
		return c.routes[n.ID()]
	}
	return n.Route()
}

// portRoute returns a directed route to p.
func (c *Checks) portRoute(p *fabric.Port) mad.DirectedRoute {
	peer := p.Peer()
	if c.routes == nil || peer == nil || c.planned[p] || p.Route().Hops() == 0 || c.routes[peer.Node().ID()] == nil {
		return p.Route()
	}
	return append(slices.Clip(c.routes[peer.Node().ID()]), uint8(peer.Num()))
}

// Between checks the fabric after a round that wrote to some nodes. A *CheckError
// describes what failed.
func (c *Checks) Between(ctx context.Context, changed []mad.GUID) error {
	if err := c.state(ctx, changed); err != nil {
		return err
	}
	return c.counters(ctx, func(s *sample, drop, hoq *uint64) error {
		switch {
		case drop != nil && s.hasDrop && *drop > s.dropped:
			return &CheckError{fmt.Sprintf("VL15Dropped of %s has risen by %d", s.port.Name(), *drop-s.dropped)}
		case hoq != nil && s.hasHOQ && *hoq > s.stuck:
			return &CheckError{fmt.Sprintf("%s has dropped %d packets that waited longer than HOQLife", s.port.Name(), *hoq-s.stuck)}
		}
		return nil
	})
}

// state checks the subnet manager and administrator, and the ports.
func (c *Checks) state(ctx context.Context, changed []mad.GUID) error {
	if err := c.Manager(ctx); err != nil {
		return err
	}
	if c.admin {
		answers, err := c.answers(ctx)
		if err != nil {
			return err
		}
		if !answers {
			return &CheckError{"the subnet administrator answered before, and does not answer now"}
		}
	}
	if err := c.static(ctx, changed); err != nil {
		return err
	}
	return c.ports(ctx, changed)
}

// answers reports whether the subnet administrator answers. An answer with an error
// status counts.
func (c *Checks) answers(ctx context.Context) (bool, error) {
	_, err := c.client.Query(ctx, sa.NewRequest(mad.MethodGet, mad.AttrSubnAdmClassPortInfo, nil))
	var status *engine.Error
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err == nil:
		return true, nil
	}
	return errors.As(err, &status) && status.Status != 0, nil
}

// marks returns the switches whose PortStateChange bit is set: one of their ports has
// changed its state since a subnet manager cleared the bit.
func (c *Checks) marks(ctx context.Context) ([]bool, error) {
	marked := make([]bool, len(c.f.Nodes()))
	var calls []*engine.Call
	var of []int
	for i := range c.f.Nodes() {
		if n := &c.f.Nodes()[i]; n.IsSwitch() && n.Route() != nil {
			calls = append(calls, fabric.Dest{Route: c.route(n), Guard: n.Guard()}.Put(new(engine.Call), mad.MethodGet, mad.AttrSwitchInfo, 0, nil))
			of = append(of, i)
		}
	}
	if err := c.client.Engine.Do(ctx, calls...); err != nil {
		return nil, err
	}
	for i, call := range calls {
		var sw mad.SwitchInfo
		if call.Err == nil {
			sw.Decode(call.Data())
		}
		// A switch that does not answer is checked port by port, from both ends of its
		// links.
		marked[of[i]] = call.Err != nil || sw.PortStateChange
	}
	return marked, nil
}

// ports checks that no port that was up is down, and that no port that was active has
// left that state, on the switches that report a changed port and those that were written
// to.
func (c *Checks) ports(ctx context.Context, changed []mad.GUID) error {
	now, err := c.marks(ctx)
	if err != nil {
		return err
	}
	look := map[*fabric.Node]bool{}
	var nodes []*fabric.Node
	add := func(n *fabric.Node) {
		if n.IsSwitch() && n.Route() != nil && !look[n] && len(nodes) < maxLooked {
			look[n], nodes = true, append(nodes, n)
		}
	}
	for i := range now {
		if now[i] && !c.marked[i] {
			add(&c.f.Nodes()[i])
		}
	}
	for _, guid := range changed {
		for _, n := range c.f.NodeByGUID(guid) {
			add(n)
		}
	}
	var calls []*engine.Call
	var of []*fabric.Port
	for _, n := range nodes {
		for p := range n.Ports() {
			if p.Peer() != nil && !c.planned[p] {
				calls = append(calls, fabric.Dest{Route: c.route(n), Guard: n.Guard()}.Put(new(engine.Call), mad.MethodGet, mad.AttrPortInfo, uint32(p.Num()), nil))
				of = append(of, p)
			}
		}
	}
	if err := c.client.Engine.Do(ctx, calls...); err != nil {
		return err
	}
	for i, call := range calls {
		if call.Err != nil {
			return &CheckError{fmt.Sprintf("%s no longer answers: %v", of[i].Name(), call.Err)}
		}
		var info mad.PortInfo
		info.Decode(call.Data())
		switch was := of[i].Info(); {
		case info.PortState == mad.PortStateDown:
			return &CheckError{fmt.Sprintf("%s is now down; it was up", of[i].Name())}
		case was != nil && was.PortState == mad.PortStateActive && info.PortState != mad.PortStateActive:
			return &CheckError{fmt.Sprintf("%s is now in state %v; it was active: its link, or a node at its end, was restarted", of[i].Name(), info.PortState)}
		}
	}
	return nil
}

// counters reads the counters of the sampled ports, and passes them to take. Counters
// that cannot be read are nil, and are not judged.
func (c *Checks) counters(ctx context.Context, take func(s *sample, drop, hoq *uint64) error) error {
	e := c.client.Engine
	local, err := e.Port()
	if err != nil || local.LID == 0 || len(c.sampled) == 0 {
		for i := range c.sampled {
			c.sampled[i].hasDrop, c.sampled[i].hasHOQ = false, false
		}
		return err
	}
	attrs := []*mad.Attribute{mad.AttrPortCounters, mad.AttrPortXmitDiscardDetails}
	calls := make([]engine.Call, len(attrs)*len(c.sampled))
	var open []*engine.Call
	for i := range c.sampled {
		s := &c.sampled[i]
		for a, attr := range attrs {
			if has := []bool{s.hasDrop, s.hasHOQ}[a]; !has || s.port.LID() == 0 {
				continue
			}
			call := &calls[i*len(attrs)+a]
			data := make([]byte, mad.ClassPerf.DataSize())
			attr.Field("port_select").SetUint(data, uint64(s.port.Num()))
			call.PutPerf(mad.MethodGet, attr.ID, 0, data)
			if err := c.client.PutGMP(call, &local, s.port.LID()); err != nil {
				return err
			}
			open = append(open, call)
		}
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	value := func(i, a int, field string) *uint64 {
		call := &calls[i*len(attrs)+a]
		if call.Err != nil || call.Attempts == 0 {
			return nil
		}
		v := attrs[a].Field(field).Uint(call.Data())
		return &v
	}
	for i := range c.sampled {
		if err := take(&c.sampled[i], value(i, 0, "vl15_dropped"), value(i, 1, "port_sw_hoq_lifetime_limit_discards")); err != nil {
			return err
		}
	}
	return nil
}
