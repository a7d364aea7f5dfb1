package mad

import (
	"slices"
	"sync"

	"fabsh/mad/internal/snake"
)

// SnakeName turns the specification's name of a component into the one that
// scripts use: "PortInfo.M_Key" is m_key, "MasterSMLID" master_sm_lid.
func SnakeName(spec string) string { return snake.Name(spec) }

// Attributes lists all attributes by class and ID.
func Attributes() []*Attribute { return slices.Clone(attributes) }

// Headers lists what stands in MADs, or in attributes, and is no attribute:
// their headers, the elements of arrays, what a Notice's DataDetails may be.
func Headers() []*Attribute { return append([]*Attribute(nil), headers...) }

// Lookup finds an attribute by number; nil if it is not known. Both classes
// of subnet management have the same attributes. Where class versions differ
// it is the current version's.
func Lookup(c Class, id AttributeID) *Attribute {
	if a := LookupVersion(c, c.Version(), id); a != nil || c != ClassSubnAdm {
		return a
	}
	return LookupVersion(c, 1, id)
}

// LookupVersion finds an attribute of one version of a class by number; nil if
// it is not known.
func LookupVersion(c Class, version uint8, id AttributeID) *Attribute {
	return index.number[attributeNumber{c.Family(), version, id}]
}

// LookupName finds an attribute by class and exact name, or older name; nil if
// there is none.
func LookupName(c Class, name string) *Attribute {
	return index.name[attributeName{c.Family(), name}]
}

// ByName finds an attribute by its exact name alone; nil if there is none. Of
// a name that several classes share it is the first class's.
func ByName(name string) *Attribute {
	for _, a := range attributes {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a
		}
	}
	return nil
}

type attributeNumber struct {
	class   Class
	version uint8
	id      AttributeID
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
	for _, a := range headers {
		a.links = new(links)
	}
	for _, a := range attributes {
		x.number[attributeNumber{a.Class, a.Version, a.ID}] = a
		for _, name := range append(a.Aliases, a.Name) {
			if n := (attributeName{a.Class, name}); x.name[n] == nil {
				x.name[n] = a // the current version's comes first
			}
		}
		a.links = new(links)
	}
	return x
}

// links are what follows from an attribute's fields. They are made at first use,
// for a program uses few attributes, and all would take half of its start.
type links struct {
	once     sync.Once
	flat     []Field
	script   map[string]*Field
	variants []*Attribute // the attribute with each of Variants in its place
}

func (a *Attribute) link() *links {
	a.links.once.Do(func() { a.links.fill(a) })
	return a.links
}

func (l *links) fill(a *Attribute) {
	l.flat = flatten(nil, a, 0, 0)
	l.script = make(map[string]*Field, len(l.flat)+len(a.Fields))
	for _, list := range [][]Field{l.flat, a.Fields} {
		for i := range list {
			f := &list[i]
			l.script[f.Script] = f
			if f.Also != "" {
				l.script[f.Also] = f
			}
		}
	}
	for i := range a.Variants {
		l.variants = append(l.variants, a.with(&a.Variants[i]))
	}
}

// flatten appends a's fields to list, those of embedded attributes in their
// place. Of an array of attributes each field becomes an array. component is
// the bit of a's first component, -1 where a is none.
func flatten(list []Field, a *Attribute, offset, component int) []Field {
	for _, f := range a.Fields {
		f.Offset += offset
		if component < 0 {
			f.Component = -1
		} else if f.Component >= 0 {
			f.Component += component
		}
		if f.Kind != KindStruct {
			list = append(list, f)
			continue
		}
		from := len(list)
		list = flatten(list, f.Struct, f.Offset, f.Component)
		if f.Count == 1 {
			continue
		}
		for i := range list[from:] {
			in := &list[from+i]
			in.Count, in.Stride = f.Count, f.Stride
			in.Component, in.Components = f.Component, f.Components
		}
	}
	return list
}
