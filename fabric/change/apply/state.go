package apply

import (
	"bytes"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// Planned returns the cells of a plan on f, which was just swept, because the routes of
// the plan may be out of date.
func Planned(p *change.Plan, f *fabric.Fabric) ([]*certificate.Change, error) {
	ways := NewRoutes(f)
	known := map[*fabric.Node][]mad.DirectedRoute{}
	var cells []*certificate.Change
	defer func() { keepRoutes(f, cells) }()
	for _, ch := range p.Changes() {
		n := ch.NodeIn(f)
		if n == nil {
			return nil, fmt.Errorf("%s: the fabric has %d nodes with GUID %v", ch.Label(), len(f.NodeByGUID(ch.Node)), ch.Node)
		}
		ch.Name, ch.LID, ch.PortGUID, ch.Routes = title(n, &ch), n.LID(), n.Info().PortGUID, nil
		if p := n.Port(ch.Port); !n.IsSwitch() && p != nil { // each port answers for itself
			ch.LID, ch.PortGUID = p.LID(), p.GUID()
			if p.Route() != nil {
				ch.Routes = []mad.DirectedRoute{p.Route()}
			}
		} else {
			if known[n] == nil {
				known[n] = ways.To(n)
			}
			ch.Routes = known[n]
		}
		if len(ch.Routes) == 0 && ch.LID == 0 {
			return nil, fmt.Errorf("%s: directed route and LID unknown", ch.Name)
		}
		if err := checkEntries(&ch, n); err != nil {
			return nil, err
		}
		cells = append(cells, &ch)
	}
	return cells, nil
}

// State is the state of a cell in the fabric.
type State uint8

const (
	// Old and New are the states before and after the change.
	Old State = iota
	New
	// Between is the state of a block of a table that has both old and new entries, as the
	// rounds leave it.
	Between
	// Foreign is any other content: another writer wrote it, or the switch was restarted.
	Foreign
	// Unread is the state of a cell that could not be read.
	Unread
)

func (s State) String() string {
	return [...]string{"old", "new", "between old and new", "foreign", "not read"}[s]
}

// classify returns the state of a cell for data, the attribute as it was read.
func classify(c *certificate.Change, data []byte) State {
	switch {
	case c.Same(data, c.Old):
		return Old
	case c.Same(data, c.New):
		return New
	}
	if c.Attr != mad.AttrLinearForwardingTable && c.Attr != mad.AttrMulticastForwardingTable {
		return Foreign
	}
	entry := 1
	if c.Attr == mad.AttrMulticastForwardingTable {
		entry = 2
	}
	for at := 0; at < len(c.Old); at += entry {
		if b := data[at:][:entry]; !bytes.Equal(b, c.Old[at:][:entry]) && !bytes.Equal(b, c.New[at:][:entry]) {
			return Foreign
		}
	}
	return Between
}

// keepRoutes puts the routes first that do not cross the ports that cells take down.
func keepRoutes(f *fabric.Fabric, cells []*certificate.Change) {
	routes := routesAroundCells(f, cells)
	if routes == nil {
		return
	}
	for _, c := range cells {
		n := c.NodeIn(f)
		if r := routes[n.ID()]; r != nil && n.IsSwitch() && (len(c.Routes) == 0 || !slices.Equal(r, c.Routes[0])) {
			c.Routes = append([]mad.DirectedRoute{r}, c.Routes[:min(1, len(c.Routes))]...)
		}
	}
}

// routesAroundCells returns routes, by node, that do not cross the ports that cells take down; nil:
// they take none down.
func routesAroundCells(f *fabric.Fabric, cells []*certificate.Change) []mad.DirectedRoute {
	down := portsOf(f, cells, (*certificate.Change).Disables)
	if len(down) == 0 {
		return nil
	}
	return routesAround(f, down)
}

// portsOf returns the ports whose PortInfo is written by cells that match, and their peers.
func portsOf(f *fabric.Fabric, cells []*certificate.Change, match func(*certificate.Change) bool) map[*fabric.Port]bool {
	ports := map[*fabric.Port]bool{}
	for _, c := range cells {
		if p := c.PortIn(f); p != nil && match(c) {
			ports[p] = true
			if p.Peer() != nil {
				ports[p.Peer()] = true
			}
		}
	}
	return ports
}

// anyCell matches all cells.
func anyCell(*certificate.Change) bool { return true }

// refreshRoutes gives cells of switches the routes of f, a later sweep: links on those before
// may be down.
func refreshRoutes(f *fabric.Fabric, cells []*certificate.Change) {
	ways := NewRoutes(f)
	for _, c := range cells {
		if n := c.NodeIn(f); n != nil && n.IsSwitch() {
			if routes := ways.To(n); routes != nil {
				c.Routes = routes
			}
		}
	}
}

// checkEntries checks that the entries of a forwarding table are for LIDs of ports, and
// for ports of the switch: a plan's file may have been edited.
func checkEntries(c *certificate.Change, n *fabric.Node) error {
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

// title returns the name of a cell.
func title(n *fabric.Node, c *certificate.Change) string {
	text := n.Label() + " " + c.Attr.Name
	for _, part := range c.Attr.Modifier {
		text += fmt.Sprintf(" %s %d", part.Name, c.Modifier>>part.Shift&(1<<part.Bits-1))
	}
	return text
}

// traceless reports whether a cell makes a link train again, or disables adaptive routing,
// and reads alike before and after.
func traceless(c *certificate.Change) bool {
	return c.Trains() && c.Same(c.Old, c.New) || c.Rewrites()
}
