package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/plural"
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
	watched []watch
	next    int // the first written node that the next check while waiting reads
	missed  int // how often in succession the subnet manager did not answer
}

// watch is a port whose counters are compared.
type watch struct {
	port             *fabric.Port
	dropped, expired uint64 // VL15Dropped, discards for HOQLife
	hasDrop, hasHOQ  bool   // whether they can be read, and can rise
}

// maxWaiting is the largest number of switches whose ports are read by each check while a
// change waits: the next check reads the next ones.
const maxWaiting = 64

// NewChecks records the state of f, which was just swept, and of its subnet manager,
// before the change of cells.
func NewChecks(ctx context.Context, client *sa.Client, f *fabric.Fabric, manager *sa.SM, cells []*certificate.Change) (*Checks, error) {
	c := &Checks{client: client, f: f, manager: manager, planned: portsOf(f, cells, anyCell), tables: map[mad.GUID]bool{}}
	for _, cell := range cells {
		c.tables[cell.Node] = c.tables[cell.Node] || cell.Attr == mad.AttrLinearForwardingTable
	}
	c.routes = routesAroundCells(f, cells)
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
	c.watch(cells)
	return c, c.counters(ctx, func(w *watch, drop, hoq *uint64) error {
		if w.hasDrop = drop != nil && *drop < vl15Dropped.Max(); w.hasDrop {
			w.dropped = *drop
		}
		if w.hasHOQ = hoq != nil && *hoq < hoqDiscards.Max(); w.hasHOQ {
			w.expired = *hoq
		}
		return nil
	})
}

// watch adds the ports with a link of the nodes that cells write, and the other ends of their
// links, except hosts whose link the change itself may take down.
func (c *Checks) watch(cells []*certificate.Change) {
	seen := map[*fabric.Port]bool{}
	add := func(p *fabric.Port) {
		if !seen[p] {
			seen[p] = true
			c.watched = append(c.watched, watch{port: p, hasDrop: true, hasHOQ: true})
		}
	}
	for _, guid := range nodesOf(cells) {
		for _, n := range c.f.NodeByGUID(guid) {
			for p := range n.Ports() {
				if p.Peer() == nil {
					continue
				}
				if add(p); p.Peer().Node().IsSwitch() || !c.planned[p.Peer()] {
					add(p.Peer())
				}
			}
		}
	}
}

// Cost describes what the counters of the watched ports cost after each round, and which
// ports are not watched, because their counters cannot be read, or cannot rise.
func (c *Checks) Cost() string {
	var not []string
	calls := 0
	for i := range c.watched {
		w := &c.watched[i]
		if w.hasDrop {
			calls++
		}
		if w.hasHOQ {
			calls++
		}
		if !w.hasDrop {
			not = append(not, w.port.Name())
		}
	}
	text := fmt.Sprintf("after each round the counters of %s are read, by %s", plural.Count(len(c.watched)-len(not), "port", "ports"), plural.Count(calls, "datagram", "datagrams"))
	if not != nil {
		text += fmt.Sprintf("; VL15Dropped of %s cannot be read or is at its maximum, so it is not watched: %s", plural.Count(len(not), "port", "ports"), firstOf(5, not))
	}
	return text
}

// The counters that are watched: a packet of subnet management was dropped, or another
// waited longer than HOQLife.
var (
	vl15Dropped = mad.AttrPortCounters.Field("vl15_dropped")
	hoqDiscards = mad.AttrPortXmitDiscardDetails.Field("port_sw_hoq_lifetime_limit_discards")
)

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
	return c.counters(ctx, func(w *watch, drop, hoq *uint64) error {
		switch {
		case drop != nil && w.hasDrop && *drop > w.dropped:
			return &CheckError{fmt.Sprintf("VL15Dropped of %s has risen by %d", w.port.Name(), *drop-w.dropped)}
		case hoq != nil && w.hasHOQ && *hoq > w.expired:
			return &CheckError{fmt.Sprintf("%s has dropped %s that waited longer than HOQLife", w.port.Name(), plural.Count(int(*hoq-w.expired), "packet", "packets"))}
		}
		return nil
	})
}

// Waiting checks the fabric while the change waits to be confirmed: like Between, without
// the counters, which rise with load in the hours that this may take. Of many written nodes
// each check reads the next ones.
func (c *Checks) Waiting(ctx context.Context, cells []*certificate.Change) error {
	nodes := nodesOf(cells)
	if len(nodes) > maxWaiting {
		first := c.next % len(nodes)
		c.next = first + maxWaiting
		nodes = append(nodes, nodes...)[first : first+maxWaiting]
	}
	return c.state(ctx, nodes)
}

// watchEvery is how often a change that waits for confirmation is checked, and maxMissed how
// often in succession the subnet manager may fail to answer: it may be busy.
const (
	watchEvery = 2 * time.Second
	maxMissed  = int(silentFor / watchEvery)
)

// Manager checks that the subnet manager in charge is the one before the change, or that
// there is still no manager.
func (c *Checks) Manager(ctx context.Context) error {
	now, err := c.findManager(ctx)
	if err != nil || now == nil {
		return err
	}
	return c.sameManager(now)
}

// state checks the subnet manager and administrator, and the ports.
func (c *Checks) state(ctx context.Context, changed []mad.GUID) error {
	manager, err := c.findManager(ctx)
	switch {
	case err != nil:
		return err
	case manager != nil:
		if err := c.sameManager(manager); err != nil {
			return err
		}
		c.missed = 0
	case c.manager != nil && c.manager.Info != nil:
		if c.missed++; c.missed >= maxMissed {
			return &CheckError{managerMissing(c.manager.Info.GUID)}
		}
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
// left that state, on the switches that report a changed port, and on the switches that were
// written to.
func (c *Checks) ports(ctx context.Context, changed []mad.GUID) error {
	now, err := c.marks(ctx)
	if err != nil {
		return err
	}
	chosen := map[*fabric.Node]bool{}
	var nodes []*fabric.Node
	add := func(n *fabric.Node) {
		if n.IsSwitch() && n.Route() != nil && !chosen[n] {
			chosen[n], nodes = true, append(nodes, n)
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

// counters reads the counters of the watched ports, and passes them to take. Counters
// that cannot be read are nil, and are not judged.
func (c *Checks) counters(ctx context.Context, take func(w *watch, drop, hoq *uint64) error) error {
	e := c.client.Engine
	local, err := e.Port()
	if err != nil || local.LID == 0 || len(c.watched) == 0 {
		for i := range c.watched {
			c.watched[i].hasDrop, c.watched[i].hasHOQ = false, false
		}
		return err
	}
	attrs := []*mad.Attribute{mad.AttrPortCounters, mad.AttrPortXmitDiscardDetails}
	calls := make([]engine.Call, len(attrs)*len(c.watched))
	var open []*engine.Call
	for i := range c.watched {
		w := &c.watched[i]
		for a, attr := range attrs {
			if has := []bool{w.hasDrop, w.hasHOQ}[a]; !has || w.port.LID() == 0 {
				continue
			}
			call := &calls[i*len(attrs)+a]
			data := make([]byte, mad.ClassPerf.DataSize())
			attr.Field("port_select").SetUint(data, uint64(w.port.Num()))
			call.PutPerf(mad.MethodGet, attr.ID, 0, data)
			if err := c.client.PutGMP(call, &local, w.port.LID()); err != nil {
				return err
			}
			open = append(open, call)
		}
	}
	if err := e.Do(ctx, open...); err != nil {
		return err
	}
	value := func(i, a int, field *mad.Field) *uint64 {
		call := &calls[i*len(attrs)+a]
		if call.Err != nil || call.Attempts == 0 {
			return nil
		}
		v := field.Uint(call.Data())
		return &v
	}
	for i := range c.watched {
		if err := take(&c.watched[i], value(i, 0, vl15Dropped), value(i, 1, hoqDiscards)); err != nil {
			return err
		}
	}
	return nil
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

// nodesOf returns the nodes that cells write, each once.
func nodesOf(cells []*certificate.Change) (nodes []mad.GUID) {
	seen := map[mad.GUID]bool{}
	for _, c := range cells {
		if !seen[c.Node] {
			seen[c.Node] = true
			nodes = append(nodes, c.Node)
		}
	}
	return nodes
}

// Ports are ports of a node.
type Ports struct {
	Node  mad.GUID `json:"node"`
	Name  string   `json:"name"` // of the node, for people
	Ports []int    `json:"ports"`
	// Rates are the widths and speeds in use of written ports, "4x hdr", by port; "": unknown.
	Rates []string `json:"rates,omitempty" optional:"written before 0.10, or the change does not write the ports"`
}

// linksOf returns the ports with an active link of the switches that cells write, except
// ports whose state the change writes.
func linksOf(f *fabric.Fabric, cells []*certificate.Change) (links []Ports) {
	planned := portsOf(f, cells, anyCell)
	for _, guid := range nodesOf(cells) {
		for _, n := range f.NodeByGUID(guid) {
			at := Ports{Node: guid, Name: n.Label()}
			for p := range n.Ports() {
				if p.Peer() != nil && p.Num() > 0 && !planned[p] && p.Info() != nil && p.Info().PortState == mad.PortStateActive {
					at.Ports = append(at.Ports, p.Num())
				}
			}
			if n.IsSwitch() && at.Ports != nil {
				links = append(links, at)
			}
		}
	}
	return links
}

// checkLinks returns a *CheckError if ports that were active before the change are no
// longer active, or the subnet manager that was in charge is missing, or not in charge.
func (r *Run) checkLinks(ctx context.Context, b *Begin) error {
	checks := Checks{client: r.Host.SA, f: new(fabric.Fabric), manager: b.manager()}
	for start := r.Host.Clock.Now(); ; {
		manager, err := checks.findManager(ctx)
		if err == nil && manager != nil {
			err = checks.sameManager(manager)
		}
		if err != nil {
			return err
		}
		if manager != nil || b.Manager == 0 {
			break
		}
		if r.Host.Clock.Now().Sub(start) >= silentFor {
			return &CheckError{managerMissing(b.Manager)}
		}
		if err := r.Host.Clock.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
	cells := map[mad.GUID]*certificate.Change{}
	for _, c := range b.Cells {
		cells[c.Node] = c
	}
	var all []exchange
	at := newAccess(r.Host.Engine, nil)
	for _, link := range b.Links {
		cell := cells[link.Node]
		if cell == nil {
			return errors.New("the journal has links of a switch that the change does not write")
		}
		for _, port := range link.Ports {
			at.cells = append(at.cells, &certificate.Change{Node: link.Node, Name: fmt.Sprintf("%s port %d", link.Name, port), Routes: cell.Routes, LID: cell.LID, PortGUID: cell.PortGUID, Attr: mad.AttrPortInfo, Modifier: uint32(port)})
			all = append(all, exchange{cell: len(all)})
		}
	}
	if err := at.do(ctx, mad.MethodGet, nil, all); err != nil {
		return err
	}
	var lost []string
	for i := range all {
		name := at.cells[i].Name
		if err := all[i].err; err != nil {
			lost = append(lost, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		var info mad.PortInfo
		if info.Decode(all[i].data); info.PortState != mad.PortStateActive {
			lost = append(lost, fmt.Sprintf("%s is %v", name, info.PortState))
		}
	}
	if lost == nil {
		return nil
	}
	return &CheckError{fmt.Sprintf("%s active before the change, and not now: %s", plural.Count(len(lost), "port was", "ports were"), firstOf(5, lost))}
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
