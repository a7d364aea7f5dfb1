package mad

import "fabsh/mad/internal/snake"

// SnakeName turns the specification's name of a component into the one that
// scripts use: "PortInfo.M_Key" is m_key, "MasterSMLID" master_sm_lid.
func SnakeName(spec string) string { return snake.Name(spec) }

// Attributes lists all attributes by class and ID.
func Attributes() []*Attribute { return append([]*Attribute(nil), attributes...) }

// Lookup finds an attribute by number; nil if it is not known. Both classes
// of subnet management have the same attributes.
func Lookup(c Class, id AttributeID) *Attribute { return index.number[attributeNumber{c.Family(), id}] }

// LookupName finds an attribute by class and exact name; nil if there is none.
func LookupName(c Class, name string) *Attribute {
	return index.name[attributeName{c.Family(), name}]
}

// ByName finds an attribute by its exact name alone; nil if there is none. Of
// a name that several classes share it is the first class's.
func ByName(name string) *Attribute {
	for _, a := range attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

type attributeNumber struct {
	class Class
	id    AttributeID
}

type attributeName struct {
	class Class
	name  string
}

// index is made once from the generated tables, and never changes.
var index = makeIndex(attributes, headers)

type attributeIndex struct {
	number map[attributeNumber]*Attribute
	name   map[attributeName]*Attribute
}

func makeIndex(attributes, headers []*Attribute) attributeIndex {
	x := attributeIndex{map[attributeNumber]*Attribute{}, map[attributeName]*Attribute{}}
	for _, a := range attributes {
		x.number[attributeNumber{a.Class, a.ID}] = a
		x.name[attributeName{a.Class, a.Name}] = a
		a.link()
	}
	for _, a := range headers {
		a.link()
	}
	return x
}

// link fills in what follows from a's fields.
func (a *Attribute) link() {
	a.flat = flatten(nil, a, 0, 0)
	a.script = make(map[string]*Field, len(a.flat)+len(a.Fields))
	for i := range a.flat {
		a.script[a.flat[i].Script] = &a.flat[i]
	}
	for i := range a.Fields {
		a.script[a.Fields[i].Script] = &a.Fields[i]
	}
}

// flatten appends a's fields to list, those of embedded attributes in their place.
func flatten(list []Field, a *Attribute, offset, component int) []Field {
	for _, f := range a.Fields {
		f.Offset += offset
		if f.Component >= 0 {
			f.Component += component
		}
		if f.Kind == KindStruct {
			list = flatten(list, f.Struct, f.Offset, f.Component)
		} else {
			list = append(list, f)
		}
	}
	return list
}
