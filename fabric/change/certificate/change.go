package certificate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Change is what one Set changes of a node: a block of a table, or fields of PortInfo or
// SwitchInfo. It is this value that is recorded for a plan, numbered by its certificate, kept in
// a journal, and sent. The check of a certificate uses only Attr, Modifier, Node, Old and New of
// LinearForwardingTable and SLtoVLMappingTable; other changes are only numbered.
type Change struct {
	Attr *mad.Attribute
	// Modifier is the attribute modifier of the Set, which writes one block: a request to
	// write several blocks at once is recorded as several changes.
	Modifier uint32
	Node     mad.GUID // that must answer
	// Port is the port where the request comes in at a channel adapter, each of whose ports
	// answers for itself; 0 at switches, and in a journal.
	Port int
	// Name is for people: the node description, or ""; in a journal the node and the part of
	// it that is written.
	Name string
	// Routes are directed routes to the node; if one gives no answer, the next one is used.
	// Those of a plan may be out of date: only Node says who is meant. LID is for a node
	// without a known route. PortGUID is the GUID of the port whose M_Key the node requires.
	// A plan has neither LID nor PortGUID.
	Routes   []mad.DirectedRoute
	LID      mad.LID
	PortGUID mad.GUID
	// Fields are the fields that change, by the names that scripts use, sorted; nil: the
	// whole attribute.
	Fields []string
	// Old and New are the attribute before and after. Fields that do not change are 0, so
	// that there are no keys. Fields by which a Set requests an action (a port state) have
	// the requested value.
	Old, New []byte
	// Line is the line of the script that requested it: "maintenance.star:12"; may be empty.
	Line string
}

// Place is the subject of a change, regardless of its path: a block of a table, a port's
// PortInfo, a switch's SwitchInfo.
type Place struct {
	GUID mad.GUID
	Port int // as in Change
	Attr mad.AttributeID
	At   uint32 // the modifier, without bits that do not select anything; of PortInfo and VLArb the port's number even where the Set has 0
}

// PlannedAttributes returns the attributes that a change may be of.
func PlannedAttributes() []*mad.Attribute {
	return []*mad.Attribute{
		mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable,
		mad.AttrPKeyTable, mad.AttrGUIDInfo, mad.AttrPortInfo, mad.AttrSwitchInfo,
	}
}

// InFields reports whether a change of a has the fields that a Set changes, and not the whole
// attribute, because other fields change on their own, and one may be a key.
func InFields(a *mad.Attribute) bool { return a == mad.AttrPortInfo || a == mad.AttrSwitchInfo }

// With returns c with a change of one more field, or of one that it changes already to another
// new value. The field exists, and holds the values.
func (c Change) With(name string, old, new uint64) Change {
	if c.Fields == nil {
		c.Old, c.New = make([]byte, c.Attr.Size), make([]byte, c.Attr.Size)
	}
	c.Old, c.New, c.Fields = bytes.Clone(c.Old), bytes.Clone(c.New), slices.Clone(c.Fields)
	f := c.Attr.Field(name)
	if i, found := slices.BinarySearch(c.Fields, name); !found {
		c.Fields = slices.Insert(c.Fields, i, name)
		f.SetUint(c.Old, old)
	}
	f.SetUint(c.New, new)
	return c
}

// Then returns the change of c and of a later one of the same place.
func (c Change) Then(later *Change) Change {
	if later.Fields == nil {
		c.New = later.New
	}
	for _, name := range later.Fields {
		f := c.Attr.Field(name)
		c = c.With(name, f.Uint(later.Old), f.Uint(later.New))
	}
	return c
}

// Effective returns c without the fields that end as they began, except those that request an
// action. nothing reports that nothing is left, or that a table ends as it began.
func (c Change) Effective() (effective Change, nothing bool) {
	if c.Fields == nil {
		return c, bytes.Equal(c.Old, c.New)
	}
	c.Fields = slices.DeleteFunc(slices.Clone(c.Fields), func(name string) bool {
		f := c.Attr.Field(name)
		return f.Uint(c.Old) == f.Uint(c.New) && !requestsAction(f)
	})
	c.Old, c.New = c.Masked(c.Old), c.Masked(c.New)
	return c, len(c.Fields) == 0
}

// requestsAction reports whether a Set of f requests an action, after which the field has
// another value.
func requestsAction(f *mad.Field) bool { return f.W1C || f.NoChange && f.Type == mad.FieldTypeEnum }

// Place returns the place of c.
func (c *Change) Place() Place { return PlaceOf(c.Attr, c.Modifier, c.Node, c.Port) }

// PlaceOf returns the place of a request that comes in at port in of a node; for a switch that
// is 0.
func PlaceOf(a *mad.Attribute, modifier uint32, node mad.GUID, in int) Place {
	p := Place{GUID: node, Port: in, Attr: a.ID, At: modifier & a.Place()}
	if a == mad.AttrPortInfo || a == mad.AttrVLArbitrationTable { // they name the port, and any port of the node answers
		if port := p.At & bitsOf(a, "port"); port == 0 {
			p.At |= uint32(in)
		}
		p.Port = 0
	} else if in > 0 { // the modifier cannot name another port
		p.At = modifier & bitsOf(a, "block")
	}
	return p
}

// bitsOf returns the bits of a's modifier that name a port, or a block.
func bitsOf(a *mad.Attribute, name string) uint32 {
	for _, part := range a.Modifier {
		if part.Name == name {
			return (1<<part.Bits - 1) << part.Shift
		}
	}
	return 0
}

// ModifierBits returns the bits that the modifier of a Set of a that changes one block may have.
func ModifierBits(a *mad.Attribute) uint32 {
	bits := a.Place()
	if a == mad.AttrPortInfo {
		bits |= mad.ExtendedSpeeds
	}
	return bits
}

// Check returns the reason why c is invalid; nil: it is valid.
func (c *Change) Check() error {
	switch {
	case c.Attr == nil:
		return fmt.Errorf("%s: unknown attribute of subnet management", c.Label())
	case !slices.Contains(PlannedAttributes(), c.Attr):
		return fmt.Errorf("a Set of %s cannot be part of a plan", c.Attr.Name)
	case InFields(c.Attr) && c.Fields == nil:
		return fmt.Errorf("%s: missing \"fields\"", c.Attr.Name)
	case !InFields(c.Attr) && c.Fields != nil:
		return fmt.Errorf("%s: expected bytes, got fields", c.Attr.Name)
	case len(c.Old) != c.Attr.Size || len(c.New) != c.Attr.Size:
		return fmt.Errorf("%s: expected %d bytes, got %d and %d", c.Attr.Name, c.Attr.Size, len(c.Old), len(c.New))
	case c.Modifier&^ModifierBits(c.Attr) != 0:
		return fmt.Errorf("modifier %#x: invalid for %s; valid bits: %#x", c.Modifier, c.Attr.Name, ModifierBits(c.Attr))
	}
	last := ""
	for _, name := range c.Fields {
		if _, err := FieldOf(c.Attr, name); err != nil {
			return err
		}
		if name <= last {
			return fmt.Errorf("%s: field %s after %s: fields must be sorted and unique", c.Attr.Name, name, last)
		}
		last = name
	}
	return nil
}

// FieldOf returns a field of a that a change may be of.
func FieldOf(a *mad.Attribute, name string) (*mad.Field, error) {
	switch f := a.Field(name); {
	case f == nil || f.Script != name:
		return nil, fmt.Errorf("%s: unknown field %q", a.Name, name)
	case f.Key:
		return nil, fmt.Errorf("%s.%s: a key cannot be part of a plan", a.Name, name)
	case f.ReadOnly || f.Bits > 64 || f.Count > 1:
		return nil, fmt.Errorf("%s.%s: read-only", a.Name, name)
	default:
		return f, nil
	}
}

// Same reports whether a and b agree in what c changes of the attribute.
func (c *Change) Same(a, b []byte) bool {
	if c.Fields == nil {
		return bytes.Equal(a[:c.Attr.Size], b[:c.Attr.Size])
	}
	return !slices.ContainsFunc(c.Fields, func(name string) bool {
		f := c.Attr.Field(name)
		return settledValue(f, f.Uint(a)) != settledValue(f, f.Uint(b))
	})
}

// settledValue returns the value of a field, ignoring transitions that need no Set: a port
// that is not disabled trains its link.
func settledValue(f *mad.Field, v uint64) uint64 {
	if f.Script != stateField {
		return v
	}
	switch mad.PortPhysicalState(v) {
	case mad.PortPhysicalStateDisabled, mad.PortPhysicalStateSleep:
		return v
	}
	return uint64(mad.PortPhysicalStatePolling)
}

// stateField is the field of PortInfo that disables a port, or makes its link train.
const stateField = "port_physical_state"

// Masked returns data with all fields set to 0 that c does not change.
func (c *Change) Masked(data []byte) []byte {
	if c.Fields == nil {
		return slices.Clone(data[:c.Attr.Size])
	}
	kept := make([]byte, c.Attr.Size)
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		f.SetUint(kept, f.Uint(data))
	}
	return kept
}

// Request returns the attribute for a Set that changes what was read to want. Fields for
// which a Set requests an action are sent as 0 unless c changes them.
func (c *Change) Request(read, want []byte) []byte {
	if c.Fields == nil {
		return want
	}
	data := c.Attr.WithoutActions(read)
	for _, name := range c.Fields {
		f := c.Attr.Field(name)
		f.SetUint(data, settledValue(f, f.Uint(want)))
	}
	return data
}

// Rewrites reports whether c is written to disable adaptive routing: the block of a forwarding
// table reads alike before and after.
func (c *Change) Rewrites() bool {
	return c.Attr == mad.AttrLinearForwardingTable && bytes.Equal(c.Old, c.New)
}

// PortState returns the physical state of a port before and after, if c changes it.
func (c *Change) PortState() (old, new mad.PortPhysicalState, ok bool) {
	if c.Attr != mad.AttrPortInfo || !slices.Contains(c.Fields, stateField) {
		return 0, 0, false
	}
	f := c.Attr.Field(stateField)
	return mad.PortPhysicalState(f.Uint(c.Old)), mad.PortPhysicalState(f.Uint(c.New)), true
}

// Trains reports whether c makes a link train again that was not disabled.
func (c *Change) Trains() bool {
	_, to, ok := c.PortState()
	return ok && to == mad.PortPhysicalStatePolling && !c.Disables()
}

// Disables reports whether the port is disabled after the change, or after its reversal.
func (c *Change) Disables() bool {
	from, to, ok := c.PortState()
	f := mad.AttrPortInfo.Field(stateField)
	return ok && settledValue(f, uint64(from)) != settledValue(f, uint64(to))
}

// OfLink reports whether c changes only the state or the speeds of a link. A running subnet
// manager handles such a change like the change of a cable.
func (c *Change) OfLink() bool {
	return c.Attr == mad.AttrPortInfo && len(c.Fields) > 0 && !slices.ContainsFunc(c.Fields, func(name string) bool { return !slices.Contains(linkFields, name) })
}

// linkFields are the fields of PortInfo whose Sets a subnet manager sees as links that go
// down and come up.
var linkFields = []string{stateField, "link_speed_enabled", "link_speed_ext_enabled", "link_speed_ext_enabled2"}

// NodeIn returns the node of c in f; nil: f does not identify one.
func (c *Change) NodeIn(f *fabric.Fabric) *fabric.Node {
	if nodes := f.NodeByGUID(c.Node); len(nodes) == 1 {
		return nodes[0]
	}
	return nil
}

// PortIn returns the port whose PortInfo c changes, in f; nil: it is not there.
func (c *Change) PortIn(f *fabric.Fabric) *fabric.Port {
	if n := c.NodeIn(f); n != nil && c.Attr == mad.AttrPortInfo {
		return n.Port(int(c.Place().At))
	}
	return nil
}

// Label returns the name of c in messages: its name, else the GUID of the node.
func (c *Change) Label() string { return cmp.Or(c.Name, c.Node.String()) }

// Changed describes c: "LIDs 64..127: 3 entries", "port 5: port_physical_state link_up to
// disabled".
func (c *Change) Changed() string {
	what := "nothing"
	if c.Fields == nil {
		size, n := entrySize(c.Attr), 0
		for i := 0; i < len(c.New); i += size {
			if string(c.Old[i:i+size]) != string(c.New[i:i+size]) {
				n++
			}
		}
		if n > 0 {
			what = plural.Count(n, "entry", "entries")
		}
	} else if len(c.Fields) > 0 {
		var fields []string
		for _, name := range c.Fields {
			f := c.Attr.Field(name)
			fields = append(fields, fmt.Sprintf("%s %s to %s", name, fieldText(f, f.Uint(c.Old)), fieldText(f, f.Uint(c.New))))
		}
		what = strings.Join(fields, ", ")
	}
	if where := c.where(); where != "" {
		return where + ": " + what
	}
	return what
}

// where names the part of the node that c is about; "" if there is only one.
func (c *Change) where() string {
	at := c.Place().At
	switch c.Attr {
	case mad.AttrLinearForwardingTable:
		return fmt.Sprintf("LIDs %d..%d", at*mad.LFTBlock, at*mad.LFTBlock+mad.LFTBlock-1)
	case mad.AttrPortInfo:
		return fmt.Sprintf("port %d", at)
	case mad.AttrSwitchInfo:
		return ""
	}
	var parts []string
	for _, part := range c.Attr.Modifier {
		if part.Bits > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(part.Name, "_", " "), at>>part.Shift&(1<<part.Bits-1)))
		}
	}
	return strings.Join(parts, ", ")
}

// entrySize returns the size of a table entry in bytes; two lanes share one byte.
func entrySize(a *mad.Attribute) int {
	switch a {
	case mad.AttrMulticastForwardingTable, mad.AttrPKeyTable, mad.AttrVLArbitrationTable:
		return binary.Size(uint16(0))
	case mad.AttrGUIDInfo:
		return binary.Size(uint64(0))
	}
	return 1
}

func fieldText(f *mad.Field, v uint64) string {
	switch f.Type {
	case mad.FieldTypeEnum:
		return f.Words.Text(v)
	case mad.FieldTypeMask:
		return "[" + f.Words.Join(v) + "]"
	}
	return fmt.Sprint(v)
}

// changeJSON is a change in a journal. The attribute is identified by its number.
type changeJSON struct {
	Node     mad.GUID            `json:"node"`
	Name     string              `json:"name"`
	Routes   []mad.DirectedRoute `json:"routes"`
	LID      mad.LID             `json:"lid,omitempty" optional:"the node has no LID, and is reached by a route"`
	PortGUID mad.GUID            `json:"port_guid"`
	Attr     mad.AttributeID     `json:"attribute"`
	Modifier uint32              `json:"modifier"`
	Fields   []string            `json:"fields,omitempty" optional:"the whole attribute is written"`
	Old      []byte              `json:"old"`
	New      []byte              `json:"new"`
}

// MarshalJSON encodes c for a journal.
func (c *Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(changeJSON{c.Node, c.Name, c.Routes, c.LID, c.PortGUID, c.Attr.ID, c.Modifier, c.Fields, c.Old, c.New})
}

// Form decodes c from a journal: it implements jsonfile.Former.
func (c *Change) Form() (any, func() error) {
	j := &changeJSON{}
	return j, func() error {
		*c = Change{Node: j.Node, Name: j.Name, Routes: j.Routes, LID: j.LID, PortGUID: j.PortGUID, Attr: mad.Lookup(mad.ClassSubn, j.Attr), Modifier: j.Modifier, Fields: j.Fields, Old: j.Old, New: j.New}
		if len(c.Routes) == 0 && c.LID == 0 {
			return fmt.Errorf("%s: directed route and LID unknown", c.Label())
		}
		if err := c.Check(); err != nil {
			return fmt.Errorf("%s: %w", c.Label(), err)
		}
		return nil
	}
}
