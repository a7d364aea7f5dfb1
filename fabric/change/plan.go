// Package change describes an intended change of a subnet: as a value and as a file, with the
// tables that it leads to, its predicted effect, and the proof of a safe order of its writes.
//
// A Recorder records Sets instead of sending them; NewPlan makes a Plan of them. Plan.Prove
// finds an order of the writes and returns a Report, Plan.Certify also a certificate, and
// Plan.CheckCertificate checks it. Tables are the input of these proofs: what is in force,
// and what is known of lanes, service levels and adaptive routing. PredictEffect predicts
// what links that go down do to paths. A TargetPolicy chooses the tables that a change leads
// to: the first of several to which the change is proven. Package change/apply applies plans.
//
// Rules: a plan contains no keys. LoadPlan trusts nothing in a file, and whoever applies a
// plan reads the fabric again and computes order and proof again: a plan is stale if the
// Fingerprint of the fabric differs. This package sends no Set.
//
// A Recorder is safe for concurrent use; Baseline and Predictor are immutable. All else is
// not safe for concurrent use.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
package change

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// Plan is an intended change of a subnet: its Sets, in the order in which they were
// requested, and the fabric that they were made from. It holds no keys.
//
// Only the new bytes are taken from it when it is applied: order and
// proof are computed again, and current values are read again.
type Plan struct {
	// From is the origin: "maintenance.star", "--routes ftree".
	From string
	Base Fingerprint
	Sets []Set
	// Target are the tables that the Sets make, if their paths have their own service
	// levels or virtual lanes; nil: none do. A file does not contain them.
	Target *routes.Routes
	// Choice is which of a policy's tables it leads to; nil: there was no choice.
	Choice *Choice
	// Static reports that static routing was requested: the plan disables adaptive routing at
	// the switches whose forwarding tables it writes, where it is on. Disables are these
	// switches.
	Static   bool
	Disables []Switch
	// Report is the result of the proof when the plan was made, in this process; nil:
	// none. For a plan read from a file it is the report in the file, marked Recorded;
	// nothing relies on it.
	Report, Recorded *Report
	// Certificate is the proof of the rounds of forwarding tables and SL2VL; nil: there is
	// no proof. If the plan was read from a file, it is not checked: see CheckCertificate.
	Certificate *certificate.Certificate
}

// Set is one intended Set.
type Set struct {
	Attr *mad.Attribute
	// Modifier is the attribute modifier of the Set, which writes one block: a request to
	// write several blocks at once is recorded as several Sets.
	Modifier uint32
	Target   Target
	// Old and New are the block before and after, of tables: Attr.Size bytes.
	Old, New []byte
	// Fields are what a Set of PortInfo or SwitchInfo changes, sorted by name. A field by
	// which a Set requests an action (a port state) has the requested value.
	Fields []Field
	// Line is the line of the script that requested it: "maintenance.star:12"; may be empty.
	Line string
}

// Target is the node that a Set goes to.
type Target struct {
	GUID mad.GUID // of the node
	// Port is the port where the request comes in at a channel adapter, each of
	// whose ports answers for itself; 0 at switches.
	Port int
	Name string // for messages: the node description, or ""
	// Routes are directed routes to it from where the plan was made. They may have
	// changed since: only GUID says who is meant.
	Routes []mad.DirectedRoute
}

// Field is one field of PortInfo or SwitchInfo.
type Field struct {
	Name     string // the name that scripts use: "port_physical_state"
	Old, New uint64
}

// NewPlan makes a plan of Sets that were recorded. f is the current fabric after the last
// of them, and sm its subnet manager, nil without one: targets get their names and
// routes from f. The error is a *RefusalError if f does not identify a target.
func NewPlan(from string, sets []Set, f *fabric.Fabric, sm *sa.SM) (*Plan, error) {
	p := &Plan{From: from, Base: FingerprintOf(f, sm), Sets: slices.Clone(sets)}
	for i := range p.Sets {
		if err := p.Sets[i].Target.find(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Settled returns an error if f, which the plan's script read, differs from the fabric
// that p was made from. LIDs that p itself sets do not count.
func (p *Plan) Settled(f *fabric.Fabric) error {
	then := FingerprintOf(f, nil)
	then.Manager = p.Base.Manager
	if p.setsLIDs() {
		return nil
	}
	if since := then.Since(&p.Base); len(since) > 0 {
		return refusal("the fabric has changed since discover(): %s; discover and plan again", firstOf(since))
	}
	return nil
}

// RefusalError reports why there is no plan, or why it must not be applied.
type RefusalError struct{ Reason string }

func (e *RefusalError) Error() string { return e.Reason }

// Changes returns what p changes in the end, in the order of the first Set of each. What
// ends as it began is not a change, except where the write disables adaptive routing.
func (p *Plan) Changes() []Change {
	at := map[Place]int{}
	var all []Change
	for i := range p.Sets {
		s := &p.Sets[i]
		n, seen := at[s.Place()]
		if !seen {
			n = len(all)
			at[s.Place()] = n
			all = append(all, Change{Set: s})
		}
		c := &all[n]
		c.New = s.New
		c.Fields = merge(c.Fields, s.Fields)
		if s.Line != "" && !slices.Contains(c.Lines, s.Line) {
			c.Lines = append(c.Lines, s.Line)
		}
	}
	for i := range all {
		c := &all[i]
		c.Fields = slices.DeleteFunc(c.Fields, func(f Field) bool { return f.Old == f.New && !requestsAction(c.Attr.Field(f.Name)) })
	}
	disables := map[mad.GUID]bool{}
	for _, s := range p.Disables {
		disables[s.GUID] = true
	}
	return slices.DeleteFunc(all, func(c Change) bool {
		rewritten := c.Attr == mad.AttrLinearForwardingTable && disables[c.Target.GUID]
		return len(c.Fields) == 0 && bytes.Equal(c.Old, c.New) && !rewritten
	})
}

// Place returns the place of s.
func (s *Set) Place() Place {
	return placeOf(s.Attr, s.Modifier, s.Target.GUID, s.Target.Port)
}

// Changed describes the change of s: "LIDs 64..127: 3 entries", "port 5:
// port_physical_state link_up to disabled".
func (s *Set) Changed() string {
	var texts []string
	if where := s.where(); where != "" {
		texts = append(texts, where)
	}
	what := "nothing"
	switch {
	case s.New != nil:
		size := entrySize(s.Attr)
		n := 0
		for i := 0; i < len(s.New); i += size {
			if string(s.Old[i:i+size]) != string(s.New[i:i+size]) {
				n++
			}
		}
		if n > 0 {
			what = plural.Count(n, "entry", "entries")
		}
	case len(s.Fields) > 0:
		var fields []string
		for _, f := range s.Fields {
			field := s.Attr.Field(f.Name)
			fields = append(fields, fmt.Sprintf("%s %s to %s", f.Name, fieldText(field, f.Old), fieldText(field, f.New)))
		}
		what = strings.Join(fields, ", ")
	}
	return strings.Join(append(texts, what), ": ")
}

// Request returns the attribute as the Set carries it, where now is what the node has: New
// for a table, else now with the changed fields. Fields by which a Set requests an action
// are 0 unless they are changed.
func (s *Set) Request(now []byte) []byte {
	if s.New != nil {
		return s.New
	}
	data := device.WithoutActions(s.Attr, now)
	for _, f := range s.Fields {
		s.Attr.Field(f.Name).SetUint(data, f.New)
	}
	return data
}

// Change is the effect of a plan on one block, or on one port's or switch's attribute: the
// result of all its Sets there.
type Change struct {
	*Set // the first: target, attribute, modifier, what was there before
	// New and Fields are as the last Set leaves them. Fields that end as they began are left
	// out, unless they request an action.
	New    []byte
	Fields []Field
	Lines  []string // of all its Sets
}

// Place is the subject of a Set, regardless of its path: a block of a table, a port's
// PortInfo, a switch's SwitchInfo.
type Place struct {
	GUID mad.GUID
	Port int // as in Target
	Attr mad.AttributeID
	At   uint32 // the modifier, without bits that do not select anything; of PortInfo and VLArb the port's number even where the Set has 0
}

// PlannedAttributes returns the attributes whose Sets a plan may contain.
func PlannedAttributes() []*mad.Attribute {
	return []*mad.Attribute{
		mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable,
		mad.AttrPKeyTable, mad.AttrGUIDInfo, mad.AttrPortInfo, mad.AttrSwitchInfo,
	}
}

// InFields reports whether a plan has the fields of a that a Set changes, and not its
// bytes, because other fields change on their own, and one may be a key.
func InFields(a *mad.Attribute) bool { return a == mad.AttrPortInfo || a == mad.AttrSwitchInfo }

// Label returns the name of a target in messages: its name, else its GUID.
func (t *Target) Label() string { return cmp.Or(t.Name, t.GUID.String()) }

// String describes in one line how much the plan writes.
func (p *Plan) String() string {
	nodes := map[mad.GUID]bool{}
	changes := p.Changes()
	for _, c := range changes {
		nodes[c.Target.GUID] = true
	}
	return fmt.Sprintf("plan: %d of %d Sets change something, on %d nodes", len(changes), len(p.Sets), len(nodes))
}

func (p *Plan) setsLIDs() bool {
	return slices.ContainsFunc(p.Sets, func(s Set) bool {
		return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Name == "lid" || f.Name == "lmc" })
	})
}

// firstOf returns the first of some texts, and how many more there are.
func firstOf(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%s, and %d more", texts[0], len(texts)-1)
}

func refusal(format string, args ...any) error {
	return &RefusalError{fmt.Sprintf(format, args...)}
}

// find gives t the name and the route that the node has in f.
func (t *Target) find(f *fabric.Fabric) error {
	nodes := f.NodeByGUID(t.GUID)
	switch len(nodes) {
	case 0:
		return refusal("node %v: to be changed, but not found by the sweep", t.GUID)
	case 1:
	default:
		return refusal("GUID %[2]v: not unique: %[1]d nodes have it", len(nodes), t.GUID)
	}
	n := nodes[0]
	t.Name = n.Name()
	route := n.Route()
	if p := n.Port(t.Port); p != nil && !n.IsSwitch() {
		route = p.Route()
	}
	if route != nil {
		t.Routes = []mad.DirectedRoute{route}
	}
	return nil
}

// requestsAction reports whether a Set of f requests an action, after which the field has
// another value.
func requestsAction(f *mad.Field) bool { return f.W1C || f.NoChange && f.Type == mad.FieldTypeEnum }

// merge returns earlier fields with the new values of later ones.
func merge(earlier, later []Field) []Field {
	merged := slices.Clone(earlier)
	for _, f := range later {
		i, found := slices.BinarySearchFunc(merged, f.Name, func(f Field, name string) int { return cmp.Compare(f.Name, name) })
		if found {
			merged[i].New = f.New
		} else {
			merged = slices.Insert(merged, i, f)
		}
	}
	return merged
}

// placeOf returns the place of a request that comes in at port in of a node; for a
// switch that is 0.
func placeOf(a *mad.Attribute, modifier uint32, node mad.GUID, in int) Place {
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

// check returns the reason why a plan must not contain s; nil: it may.
func (s *Set) check() error {
	switch {
	case !slices.Contains(PlannedAttributes(), s.Attr):
		return fmt.Errorf("a Set of %s cannot be part of a plan", s.Attr.Name)
	case InFields(s.Attr) && (s.Old != nil || s.New != nil):
		return fmt.Errorf("%s: expected changed fields, got bytes", s.Attr.Name)
	case !InFields(s.Attr) && s.Fields != nil:
		return fmt.Errorf("%s: expected bytes, got fields", s.Attr.Name)
	case !InFields(s.Attr) && (len(s.Old) != s.Attr.Size || len(s.New) != s.Attr.Size):
		return fmt.Errorf("%s: expected %d bytes, got %d and %d", s.Attr.Name, s.Attr.Size, len(s.Old), len(s.New))
	case s.Modifier&^s.modifierBits() != 0:
		return fmt.Errorf("modifier %#x: invalid for %s; valid bits: %#x", s.Modifier, s.Attr.Name, s.modifierBits())
	}
	last := ""
	for _, f := range s.Fields {
		field := s.Attr.Field(f.Name)
		switch {
		case field == nil || field.Script != f.Name:
			return fmt.Errorf("%s: unknown field %q", s.Attr.Name, f.Name)
		case field.Key:
			return fmt.Errorf("%s.%s: a key cannot be part of a plan", s.Attr.Name, f.Name)
		case field.ReadOnly || field.Bits > 64 || field.Count > 1:
			return fmt.Errorf("%s.%s: read-only", s.Attr.Name, f.Name)
		case f.Old > field.Max() || f.New > field.Max():
			return fmt.Errorf("%s.%s: %d and %d: the maximum is %d", s.Attr.Name, f.Name, f.Old, f.New, field.Max())
		case f.Name <= last:
			return fmt.Errorf("%s: field %s after %s: fields must be sorted and unique", s.Attr.Name, f.Name, last)
		}
		last = f.Name
	}
	return nil
}

// modifierBits returns the bits that a Set's modifier may have.
func (s *Set) modifierBits() uint32 {
	bits := s.Attr.Place()
	if s.Attr == mad.AttrPortInfo {
		bits |= device.ExtendedSpeeds
	}
	return bits
}

// where names the part of the node that a Set is about; "" if there is only one.
func (s *Set) where() string {
	at := s.Place().At
	switch s.Attr {
	case mad.AttrLinearForwardingTable:
		return fmt.Sprintf("LIDs %d..%d", at*mad.LFTBlock, at*mad.LFTBlock+mad.LFTBlock-1)
	case mad.AttrPortInfo:
		return fmt.Sprintf("port %d", at)
	case mad.AttrSwitchInfo:
		return ""
	}
	var parts []string
	for _, part := range s.Attr.Modifier {
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
