package change

import (
	"fmt"
	"slices"

	"fabsh/mad"
)

// Place is the subject of a Set, regardless of its path: a block of a table, a port's
// PortInfo, a switch's SwitchInfo.
type Place struct {
	GUID mad.GUID
	Port int // as in Target
	Attr mad.AttributeID
	At   uint32 // the modifier, without bits that do not select anything; of PortInfo and VLArb the port's number even where the Set has 0
}

// Place returns the place of s.
func (s *Set) Place() Place {
	return placeOf(s.Attr, s.Modifier, s.Target.GUID, s.Target.Port)
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

// PlannedAttributes are the attributes whose Sets a plan may hold.
func PlannedAttributes() []*mad.Attribute {
	return []*mad.Attribute{
		mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable,
		mad.AttrPKeyTable, mad.AttrGUIDInfo, mad.AttrPortInfo, mad.AttrSwitchInfo,
	}
}

// InFields reports whether a plan has the fields of a that a Set changes, and not its
// bytes, because other fields change on their own, and one may be a key.
func InFields(a *mad.Attribute) bool { return a == mad.AttrPortInfo || a == mad.AttrSwitchInfo }

// check returns why a plan must not contain s.
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

// modifierBits are the bits that a Set's modifier may have.
func (s *Set) modifierBits() uint32 {
	bits := s.Attr.Place()
	if s.Attr == mad.AttrPortInfo {
		bits |= 1 << 31 // the sender knows the extended speeds
	}
	return bits
}
