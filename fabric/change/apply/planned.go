package apply

import (
	"bytes"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/mad"
)

// Planned returns the cells of a plan on f, which was just swept, because the routes of
// the plan may be out of date.
func Planned(p *change.Plan, f *fabric.Fabric) ([]*Cell, error) {
	ways := NewRoutes(f)
	known := map[mad.GUID][]mad.DirectedRoute{}
	var cells []*Cell
	defer func() { keepRoutes(f, cells) }()
	for _, ch := range p.Changes() {
		t := &ch.Target
		nodes := f.NodeByGUID(t.GUID)
		if len(nodes) != 1 {
			return nil, fmt.Errorf("%s: the fabric has %d nodes with GUID %v", t.Label(), len(nodes), t.GUID)
		}
		n := nodes[0]
		c := &Cell{Node: t.GUID, Name: name(n, &ch), LID: n.LID(), PortGUID: n.Info().PortGUID, Attr: ch.Attr, Modifier: ch.Modifier, Old: bytes.Clone(ch.Set.Old), New: bytes.Clone(ch.New)}
		if p := n.Port(t.Port); !n.IsSwitch() && p != nil { // each port answers for itself
			c.LID, c.PortGUID = p.LID(), p.GUID()
			if p.Route() != nil {
				c.Routes = []mad.DirectedRoute{p.Route()}
			}
		} else {
			if known[t.GUID] == nil {
				known[t.GUID] = ways.To(n)
			}
			c.Routes = known[t.GUID]
		}
		if change.InFields(ch.Attr) {
			c.Old, c.New = make([]byte, ch.Attr.Size), make([]byte, ch.Attr.Size)
			for _, f := range ch.Fields {
				c.Fields = append(c.Fields, f.Name)
				ch.Attr.Field(f.Name).SetUint(c.Old, f.Old)
				ch.Attr.Field(f.Name).SetUint(c.New, f.New)
			}
		}
		if err := c.Check(); err != nil {
			return nil, err
		}
		if err := c.checkEntries(n); err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// keepRoutes puts routes first that do not cross the ports that cells take down.
func keepRoutes(f *fabric.Fabric, cells []*Cell) {
	routes := aroundCells(f, cells)
	if routes == nil {
		return
	}
	for _, c := range cells {
		for _, n := range f.NodeByGUID(c.Node) {
			if r := routes[n.ID()]; r != nil && n.IsSwitch() && (len(c.Routes) == 0 || !slices.Equal(r, c.Routes[0])) {
				c.Routes = append([]mad.DirectedRoute{r}, c.Routes[:min(1, len(c.Routes))]...)
			}
		}
	}
}

// aroundCells returns routes, by node, that do not cross the ports that cells take down; nil:
// they take none down.
func aroundCells(f *fabric.Fabric, cells []*Cell) []mad.DirectedRoute {
	down := map[*fabric.Port]bool{}
	for _, c := range cells {
		if c.disables() {
			c.ports(f, down)
		}
	}
	if len(down) == 0 {
		return nil
	}
	return around(f, down)
}

// refreshRoutes gives cells of switches the routes of f, a later sweep: links on those before
// may be down.
func refreshRoutes(f *fabric.Fabric, cells []*Cell) {
	ways := NewRoutes(f)
	for _, c := range cells {
		if nodes := f.NodeByGUID(c.Node); len(nodes) == 1 && nodes[0].IsSwitch() {
			if routes := ways.To(nodes[0]); routes != nil {
				c.Routes = routes
			}
		}
	}
}

// checkEntries checks that the entries of a forwarding table are for LIDs of ports, and
// for ports of the switch: a plan's file may have been edited.
func (c *Cell) checkEntries(n *fabric.Node) error {
	if c.Attr != mad.AttrLinearForwardingTable {
		return nil
	}
	for at, port := range c.New {
		lid := int(c.Modifier)*mad.LFTBlock + at
		switch {
		case port == c.Old[at]:
		case lid == 0 || lid > int(mad.MaxUnicastLID):
			return fmt.Errorf("%s: LID %d: not assigned to a port", c.Name, lid)
		case port != mad.NoPort && int(port) > n.NumPorts():
			return fmt.Errorf("%s: LID %d: no port %d; the switch has ports 0..%d", c.Name, lid, port, n.NumPorts())
		}
	}
	return nil
}

// name returns the name of a cell.
func name(n *fabric.Node, ch *change.Change) string {
	text := n.Label() + " " + ch.Attr.Name
	for _, part := range ch.Attr.Modifier {
		text += fmt.Sprintf(" %s %d", part.Name, ch.Modifier>>part.Shift&(1<<part.Bits-1))
	}
	return text
}
