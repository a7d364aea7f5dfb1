// Package apply applies a change to a fabric, and reverts it: round by round, under a
// journal, with a check of the fabric between the rounds.
//
//	host.go     Host: the port and process from which changes are applied
//	make.go     applies the change of a plan; each of its checks has a file:
//	stale.go    whether the fabric is still the one of the plan
//	manager.go  whether a subnet manager forbids it; links.go, a change of links beside
//	            one, link by link; stopped.go, at a link that had to be restored
//	static.go   whether adaptive routing does; the check that it is off
//	begin.go    the head of the journal; the proof of ports that go down
//	staged.go   OpenSM writes the tables: whether it can, and how
//	latest.go   where journals are, and which change has not ended; subnet.go, of which
//	            subnet a journal is
//	guard.go    the guard process: when it is needed, and what it does
//
//	run.go      a change under its journal: applied, confirmed, resumed, reverted;
//	            abandon.go, ended without a write
//	await.go    what the process that applied a change does until the change has ended
//	status.go   the state of a change, from its journal and the fabric
//	cell.go     what one Set writes, and its state in the fabric
//	read.go     reading and writing many cells
//	journal.go  the file that records how a change began and ended; record.go, its
//	            records; line.go, its lines, and what damage is
//	damage.go   a change whose journal is damaged: copied, reverted from the fabric
//	planned.go  the cells of a plan; order.go, tables.go: their order; cut.go, that of
//	            cells that take links down
//	move.go     from the current state to the old or the new one
//	check.go    conditions checked between two rounds; watch.go, until the change is
//	            confirmed
//	route.go    two directed routes to a node
//	error.go    errors
package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

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
	// PortGUID is that of the port whose M_Key the node requires.
	PortGUID mad.GUID

	Attr     *mad.Attribute
	Modifier uint32
	// Fields are those that the change writes; nil: the whole attribute.
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

// State is the state of a cell in the fabric.
type State uint8

const (
	// Old and New are the states before and after the change.
	Old State = iota
	New
	// Between is the state of a block of a table with some entries old and the others
	// new, as the rounds leave it.
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
			if settled(f, f.UintAt(a, i)) != settled(f, f.UintAt(b, i)) {
				return false
			}
		}
	}
	return true
}

// settled returns the value of a field, ignoring transitions that need no Set: a port
// that is not disabled trains its link.
func settled(f *mad.Field, v uint64) uint64 {
	if f.Script != "port_physical_state" {
		return v
	}
	switch mad.PortPhysicalState(v) {
	case mad.PortPhysicalStateDisabled, mad.PortPhysicalStateSleep:
		return v
	}
	return uint64(mad.PortPhysicalStatePolling)
}

// only returns data with all fields set to 0 that the change does not write.
func (c *Cell) only(data []byte) []byte {
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
	data := slices.Clone(read[:c.Attr.Size])
	for i := range c.Attr.Fields {
		if f := &c.Attr.Fields[i]; f.NoChange || f.W1C {
			f.SetUint(data, 0)
		}
	}
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		for i := range f.Count {
			f.SetUintAt(data, i, settled(f, f.UintAt(want, i)))
		}
	}
	return data
}
