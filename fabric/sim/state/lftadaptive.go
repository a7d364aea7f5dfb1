package state

import (
	"slices"
	"sync/atomic"

	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// LFTEngines are the routing engines that compute the choices of ports. What each may choose:
//
//   - updn: all ports on the shortest routes that go up first and then down; a switch from
//     which a route goes down only takes no other. Without credit loops between hosts in any
//     network: up is away from hosts in fat trees whose routes all exist, and else to a root.
//   - ftree: the same in fat trees; in others as minhop, like OpenSM, which falls back to it.
//   - minhop: all ports on the shortest routes.
//   - dor: the parallel links to the next switch, in the order of dimensions.
var LFTEngines = []string{"updn", "ftree", "minhop", "dor"}

// AdaptiveOptions select the routing engine, and what of the choices.
type AdaptiveOptions struct {
	Engine string         // of Engines
	State  adaptive.State // of the entries with a choice
	// Secondary adds a sub-group to each group: the other ports up, of switches that go up.
	Secondary bool
}

// computeAdaptiveLFTs is Compute, with the tables of adaptive routing: they share the memory of
// the other ones. A route that turns up again, as between roots, has no choice. Groups are
// those of the switches of destinations, from 1 on, or where these are too many, of equal
// sets of ports.
func computeAdaptiveLFTs(switches []lftSwitch, top mad.LID, o AdaptiveOptions) ([][]uint8, []*adaptive.Table) {
	r := newChoosing(switches, o)
	tree := false
	switch o.Engine {
	case "updn", "ftree":
		tree = r.rankSwitches()
	case "dor":
		r.dor = true
	}
	if tree || o.Engine != "updn" {
		r.compute(top)
	}
	if o.Engine == "updn" && (!tree || r.choices.turned.Load()) {
		r = newChoosing(switches, o)
		r.rankFromRoots()
		r.compute(top)
	}
	return r.tables, r.choices.tables
}

func newChoosing(switches []lftSwitch, o AdaptiveOptions) *router {
	r := newRouter(switches)
	r.choices = &choices{AdaptiveOptions: o, router: r, tables: make([]*adaptive.Table, len(switches)), shared: len(switches) >= adaptive.MaxGroups}
	return r
}

// choices are the tables of adaptive routing in the making.
type choices struct {
	AdaptiveOptions
	*router
	tables []*adaptive.Table
	shared bool        // groups are those of equal sets
	turned atomic.Bool // a route between hosts turns up again
}

// add makes the table of a switch, whose static ports are those of its forwarding table.
func (c *choices) add(at int, ports []uint8) {
	sub := 1
	if c.Secondary {
		sub = 2
	}
	c.tables[at] = adaptive.NewTable(mad.LID(len(ports)-1), adaptive.NewGroups(sub)).WithPorts(ports)
}

// set lets a switch choose among ports on the way to the LIDs behind a switch.
func (c *choices) set(at int, way *distances, ports []uint8, to []lftDestination) {
	switch {
	case c == nil:
		return
	case c.rank != nil && way.path[at] == minimalPath:
		if c.leaf[at] && c.leaf[way.to] {
			c.turned.Store(true)
		}
		return
	}
	further := c.further(at, way, ports)
	if len(ports) < 2 && further.Empty() {
		return
	}
	t := c.tables[at]
	group := way.to + 1
	if c.shared {
		group, _ = t.Groups.Place(adaptive.PortSet(ports...))
	}
	if t.Groups.Set(group, 0, adaptive.PortSet(ports...)) != nil || c.Secondary && t.Groups.Set(group, 1, further) != nil {
		return // too many: the routes stay static
	}
	for _, d := range to {
		t.Set(d.LID, adaptive.Entry{State: c.State, Port: t.Entry(d.LID).Port, Group: uint16(group)})
	}
}

// further are the other ports up of a switch that goes up, from which routes go on.
func (c *choices) further(at int, way *distances, ports []uint8) (set adaptive.Ports) {
	if !c.Secondary || c.shared || way.path[at] != upDownPath {
		return set
	}
	for i, to := range c.ups[at].to {
		if port := c.ups[at].port[i]; way.dist[to] >= 0 && way.path[to] != minimalPath && !slices.Contains(ports, port) {
			set.Add(port)
		}
	}
	return set
}
