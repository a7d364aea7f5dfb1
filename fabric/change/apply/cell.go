package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/device"
	"fabsh/mad"
)

// Cell is the part of a change that one Set writes: some fields of an attribute, or a
// block of a table.
type Cell struct {
	Node mad.GUID // the node that must answer
	Name string   // name of the node and of the part written, for people
	// Routes are directed routes to the node; if one gives no answer, the next one is
	// used. LID is for a node without a known route.
	Routes []mad.DirectedRoute
	LID    mad.LID
	// PortGUID is the GUID of the port whose M_Key the node requires.
	PortGUID mad.GUID

	Attr     *mad.Attribute
	Modifier uint32
	// Fields are the fields that the change writes; nil: the whole attribute.
	Fields []string
	// Old and New are the attribute before and after the change. Fields that the change
	// does not write are 0, so that Old and New contain no keys.
	Old, New []byte
}

// cellJSON is a cell in the journal. The attribute is identified by its number.
type cellJSON struct {
	Node     mad.GUID            `json:"node"`
	Name     string              `json:"name"`
	Routes   []mad.DirectedRoute `json:"routes"`
	LID      mad.LID             `json:"lid,omitempty"`
	PortGUID mad.GUID            `json:"port_guid"`
	Attr     mad.AttributeID     `json:"attribute"`
	Modifier uint32              `json:"modifier"`
	Fields   []string            `json:"fields,omitempty"`
	Old      []byte              `json:"old"`
	New      []byte              `json:"new"`
}

// MarshalJSON encodes c for the journal.
func (c *Cell) MarshalJSON() ([]byte, error) {
	return json.Marshal(cellJSON{c.Node, c.Name, c.Routes, c.LID, c.PortGUID, c.Attr.ID, c.Modifier, c.Fields, c.Old, c.New})
}

// UnmarshalJSON decodes c from the journal.
func (c *Cell) UnmarshalJSON(b []byte) error {
	var j cellJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Cell{j.Node, j.Name, j.Routes, j.LID, j.PortGUID, mad.Lookup(mad.ClassSubn, j.Attr), j.Modifier, j.Fields, j.Old, j.New}
	return c.Check()
}

// Check returns an error if c is invalid.
func (c *Cell) Check() error {
	switch {
	case c.Attr == nil:
		return fmt.Errorf("%s: unknown attribute of subnet management", c.Name)
	case len(c.Old) != c.Attr.Size || len(c.New) != c.Attr.Size:
		return fmt.Errorf("%s: %s has %d bytes, not %d and %d", c.Name, c.Attr.Name, c.Attr.Size, len(c.Old), len(c.New))
	case len(c.Routes) == 0 && c.LID == 0:
		return fmt.Errorf("%s: directed route and LID unknown", c.Name)
	}
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		if f == nil {
			return fmt.Errorf("%s: %s has no field %s", c.Name, c.Attr.Name, name)
		}
		if f.Key {
			return fmt.Errorf("%s: %s is a key, which cannot be part of a change; set it separately", c.Name, name)
		}
	}
	return nil
}

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
		c := &Cell{Node: t.GUID, Name: cellName(n, &ch), LID: n.LID(), PortGUID: n.Info().PortGUID, Attr: ch.Attr, Modifier: ch.Modifier, Old: bytes.Clone(ch.Set.Old), New: bytes.Clone(ch.New)}
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

// Classify returns the state of the cell for data, the attribute as it was read.
func (c *Cell) Classify(data []byte) State {
	switch {
	case c.same(data, c.Old):
		return Old
	case c.same(data, c.New):
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

// same reports whether a and b agree in what the change writes of the attribute.
func (c *Cell) same(a, b []byte) bool {
	if c.Fields == nil {
		return bytes.Equal(a[:c.Attr.Size], b[:c.Attr.Size])
	}
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		for i := range f.Count {
			if settledValue(f, f.UintAt(a, i)) != settledValue(f, f.UintAt(b, i)) {
				return false
			}
		}
	}
	return true
}

// settledValue returns the value of a field, ignoring transitions that need no Set: a port
// that is not disabled trains its link.
func settledValue(f *mad.Field, v uint64) uint64 {
	if f.Script != "port_physical_state" {
		return v
	}
	switch mad.PortPhysicalState(v) {
	case mad.PortPhysicalStateDisabled, mad.PortPhysicalStateSleep:
		return v
	}
	return uint64(mad.PortPhysicalStatePolling)
}

// masked returns data with all fields set to 0 that the change does not write.
func (c *Cell) masked(data []byte) []byte {
	data = slices.Clone(data[:c.Attr.Size])
	if c.Fields == nil {
		return data
	}
	kept := make([]byte, len(data))
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		for i := range f.Count {
			f.SetUintAt(kept, i, f.UintAt(data, i))
		}
	}
	return kept
}

// request returns the attribute for a Set that changes what was read to want. Fields for
// which a Set requests an action are sent as 0 unless the change writes them.
func (c *Cell) request(read, want []byte) []byte {
	if c.Fields == nil {
		return want
	}
	data := device.WithoutActions(c.Attr, read)
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		for i := range f.Count {
			f.SetUintAt(data, i, settledValue(f, f.UintAt(want, i)))
		}
	}
	return data
}

// keepRoutes puts the routes first that do not cross the ports that cells take down.
func keepRoutes(f *fabric.Fabric, cells []*Cell) {
	routes := routesAroundCells(f, cells)
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

// routesAroundCells returns routes, by node, that do not cross the ports that cells take down; nil:
// they take none down.
func routesAroundCells(f *fabric.Fabric, cells []*Cell) []mad.DirectedRoute {
	down := map[*fabric.Port]bool{}
	for _, c := range cells {
		if c.disables() {
			c.ports(f, down)
		}
	}
	if len(down) == 0 {
		return nil
	}
	return routesAround(f, down)
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

// cellName returns the name of a cell.
func cellName(n *fabric.Node, ch *change.Change) string {
	text := n.Label() + " " + ch.Attr.Name
	for _, part := range ch.Attr.Modifier {
		text += fmt.Sprintf(" %s %d", part.Name, ch.Modifier>>part.Shift&(1<<part.Bits-1))
	}
	return text
}

// trains reports whether the cell makes a link train again.
func (c *Cell) trains() bool {
	f := mad.AttrPortInfo.Field("port_physical_state")
	return slices.Contains(c.Fields, f.Script) && mad.PortPhysicalState(f.Uint(c.New)) == mad.PortPhysicalStatePolling && settledValue(f, f.Uint(c.Old)) == f.Uint(c.New)
}

// traceless reports whether the cell makes a link train again, or disables adaptive routing,
// and reads alike before and after.
func (c *Cell) traceless() bool { return c.trains() && c.same(c.Old, c.New) || c.rewrites() }

// rewrites reports whether the cell is written to disable adaptive routing: it reads alike
// before and after.
func (c *Cell) rewrites() bool {
	return c.Attr == mad.AttrLinearForwardingTable && bytes.Equal(c.Old, c.New)
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
		return name == "port_physical_state" && settledValue(f, f.Uint(c.Old)) != settledValue(f, f.Uint(c.New))
	})
}
