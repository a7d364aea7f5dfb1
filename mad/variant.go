package mad

import "slices"

// A Variant is one of the layouts that a field of raw bytes can have: what a
// Notice's DataDetails mean depends on its trap number. The conditions are
// data of the tables; nothing else in the program knows them.
type Variant struct {
	Name   string     // "gid_in_service"
	Field  string     // script name of the field
	Layout *Attribute // a header: what stands there
	When   []Condition
}

// Condition is true when a number is in one of the ranges. A variant without
// conditions is never found by itself: what decides stands in no MAD (whether
// a port's FEC is Reed-Solomon, for PortExtendedSpeedsCounters), and the asker
// names it.
type Condition struct {
	Name     string // script name of a field; of a part of the modifier if Modifier
	Modifier bool
	Values   [][2]uint64 // from, to
}

// Of is the attribute as data and modifier say it is: a with the variant in
// place whose conditions hold, or a itself.
func (a *Attribute) Of(data []byte, modifier uint32) *Attribute {
	for i := range a.Variants {
		if when := a.Variants[i].When; len(when) > 0 && !slices.ContainsFunc(when, func(c Condition) bool { return !a.holds(c, data, modifier) }) {
			return a.link().variants[i]
		}
	}
	return a
}

// As is a with the variant of that name in place; nil if it has none.
func (a *Attribute) As(variant string) *Attribute {
	for i := range a.Variants {
		if a.Variants[i].Name == variant {
			return a.link().variants[i]
		}
	}
	return nil
}

func (a *Attribute) holds(c Condition, data []byte, modifier uint32) bool {
	var v uint64
	if c.Modifier {
		i := slices.IndexFunc(a.Modifier, func(p ModifierPart) bool { return p.Name == c.Name })
		v = uint64(modifier >> a.Modifier[i].Shift & (1<<a.Modifier[i].Bits - 1))
	} else {
		v = a.Field(c.Name).Uint(data)
	}
	return slices.ContainsFunc(c.Values, func(r [2]uint64) bool { return r[0] <= v && v <= r[1] })
}

// with is a copy of a in which v stands in the place of its field.
func (a *Attribute) with(v *Variant) *Attribute {
	b := *a
	b.Variant, b.Variants = v.Name, nil
	b.Confirmed = a.Confirmed && v.Layout.Confirmed
	b.Doc = a.Doc + " " + v.Layout.Doc
	b.Fields = slices.Clone(a.Fields)
	i := slices.IndexFunc(b.Fields, func(f Field) bool { return f.Script == v.Field })
	f := &b.Fields[i]
	f.Kind, f.Struct, f.Doc = KindStruct, v.Layout, v.Layout.Doc
	f.Bits, f.Count = 8*v.Layout.Size, 1
	f.Stride = f.Bits
	b.links = new(links)
	return &b
}
