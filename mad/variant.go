package mad

import "slices"

// Variant is one of the layouts that a field of raw bytes can have. For
// example, the layout of Notice.DataDetails depends on the trap number.
type Variant struct {
	Name   string     // "gid_in_service"
	Field  string     // script name of the field
	Layout *Attribute // a header
	When   []Condition
}

// Condition holds when a number is in one of the ranges. A variant without
// conditions is chosen only by its name, because nothing in the MAD selects it:
// the layout of PortExtendedSpeedsCounters depends on whether the port's FEC is
// Reed-Solomon.
type Condition struct {
	Name     string      // script name of a field, or of a part of the modifier; in a field of bytes the first two count
	Modifier bool        // a part of the modifier
	Values   [][2]uint64 // from, to
}

// Resolve returns the layout that data and the modifier select: a with the variant
// in place whose conditions hold, or a itself. Where IsGeneric is 0, the fields that a
// vendor defines have vendor names and are numbers.
func (a *Attribute) Resolve(data []byte, modifier uint32) *Attribute {
	if v := a.derived().vendor; v != nil {
		if f := a.Field("is_generic"); f.Offset/8 < len(data) && f.Uint(data) == 0 {
			a = v
		}
	}
	for i := range a.Variants {
		if when := a.Variants[i].When; len(when) > 0 && !slices.ContainsFunc(when, func(c Condition) bool { return !a.conditionHolds(c, data, modifier) }) {
			return a.nested(i, data, modifier)
		}
	}
	return a
}

// nested returns a with variant i in place, and in that its own variant.
func (a *Attribute) nested(i int, data []byte, modifier uint32) *Attribute {
	v := a.Variants[i]
	at := a.Field(v.Field).Offset / 8
	inner := v.Layout.Resolve(data[min(at, len(data)):], modifier)
	if inner == v.Layout {
		return a.derived().variants[i]
	}
	d := a.derived()
	d.mu.Lock()
	defer d.mu.Unlock()
	with := d.nested[inner]
	if with == nil {
		v.Layout = inner
		with = a.with(&v)
		if d.nested == nil {
			d.nested = map[*Attribute]*Attribute{}
		}
		d.nested[inner] = with
	}
	return with
}

// WithVariant returns a with the variant of that name in place; nil if a does not have it.
func (a *Attribute) WithVariant(name string) *Attribute {
	for i := range a.Variants {
		if a.Variants[i].Name == name {
			return a.derived().variants[i]
		}
	}
	return nil
}

func (a *Attribute) conditionHolds(c Condition, data []byte, modifier uint32) bool {
	var v uint64
	if c.Modifier {
		i := slices.IndexFunc(a.Modifier, func(p ModifierPart) bool { return p.Name == c.Name })
		v = uint64(modifier >> a.Modifier[i].Shift & (1<<a.Modifier[i].Bits - 1))
	} else if f := a.Field(c.Name); f.Bits > 64 {
		v = getBits(data, f.Offset, firstBits)
	} else {
		v = f.Uint(data)
	}
	return slices.ContainsFunc(c.Values, func(r [2]uint64) bool { return r[0] <= v && v <= r[1] })
}

// firstBits is the number of bits of a field of bytes that a condition tests.
const firstBits = 16

// ofVendor returns f as a vendor defines it: a number.
func (f *Field) ofVendor() *Field {
	v := *f
	v.Name, v.Script, v.Also, v.Vendor = f.Vendor, SnakeName(f.Vendor), append([]string{f.Script}, f.Also...), ""
	v.Type, v.Words, v.Hex = FieldTypeUint, nil, true
	return &v
}

// ofVendor reports whether v is for an IsGeneric of 0.
func (v *Variant) ofVendor() bool {
	return slices.ContainsFunc(v.When, func(c Condition) bool { return c.Name == "is_generic" && c.Values[0] == [2]uint64{} })
}

// asVendors returns a copy of a, or of the attribute in it, with the fields as a vendor
// defines them; nil without such fields.
func (a *Attribute) asVendors() *Attribute {
	var b *Attribute
	for i := range a.Fields {
		f := a.Fields[i]
		switch {
		case f.Vendor != "":
			f = *f.ofVendor()
		case f.Type == FieldTypeStruct && f.Count == 1 && f.Struct.derived().vendor != nil:
			f.Struct = f.Struct.derived().vendor
		default:
			continue
		}
		if b == nil {
			b = new(Attribute)
			*b = *a
			b.Fields, b.lazy = slices.Clone(a.Fields), new(derived)
			b.Variants = slices.DeleteFunc(slices.Clone(a.Variants), func(v Variant) bool { return !v.ofVendor() })
		}
		b.Fields[i] = f
	}
	return b
}

// with returns a copy of a in which v replaces its field.
func (a *Attribute) with(v *Variant) *Attribute {
	b := *a
	b.Variant, b.Variants = v.Name, nil
	b.Confirmed = a.Confirmed && v.Layout.Confirmed
	b.Doc = a.Doc + " " + v.Layout.Doc
	b.Fields = slices.Clone(a.Fields)
	i := slices.IndexFunc(b.Fields, func(f Field) bool { return f.Script == v.Field })
	f := &b.Fields[i]
	f.Type, f.Struct, f.Doc = FieldTypeStruct, v.Layout, v.Layout.Doc
	f.Bits, f.Count = 8*v.Layout.Size, 1
	f.Stride = f.Bits
	b.lazy = new(derived)
	return &b
}
