package mad

import (
	"slices"
	"sync"

	"fabsh/mad/internal/snake"
)

// SnakeName returns the script name of a component: "m_key" of "M_Key",
// "master_sm_lid" of "MasterSMLID".
func SnakeName(spec string) string { return snake.Name(spec) }

// Attributes lists all attributes by class and ID.
func Attributes() []*Attribute { return slices.Clone(attributes) }

// Headers lists the layouts that are not attributes: headers of MADs, and parts
// of attributes, such as elements of arrays and variants.
func Headers() []*Attribute { return append([]*Attribute(nil), headers...) }

// Lookup returns the attribute with a number; nil if it is unknown. Both classes
// of subnet management have the same attributes. An attribute of the current
// class version takes precedence over one of an older version.
func Lookup(c Class, id AttributeID) *Attribute {
	if a := LookupVersion(c, c.Version(), id); a != nil || c != ClassSubnAdm {
		return a
	}
	return LookupVersion(c, 1, id)
}

// LookupVersion returns the attribute of one version of a class with a number; nil
// if it is unknown.
func LookupVersion(c Class, version uint8, id AttributeID) *Attribute {
	return index[attributeNumber{c.Family(), version, id}]
}

// LookupName returns the attribute with a class and an exact name or alias; nil if
// it is unknown.
func LookupName(c Class, name string) *Attribute {
	return byName()[attributeName{c.Family(), name}]
}

// ByName returns the attribute with an exact name or alias; nil if it is unknown.
// If several classes share a name, it is the attribute of the first class.
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

// index is all attributes by number, made once from the generated tables.
var index = makeIndex(attributes, headers)

func makeIndex(attributes, headers []*Attribute) map[attributeNumber]*Attribute {
	x := make(map[attributeNumber]*Attribute, len(attributes))
	lazy := make([]derived, len(headers)+len(attributes))
	for i, a := range headers {
		a.lazy = &lazy[i]
	}
	for i, a := range attributes {
		if !a.Older {
			x[attributeNumber{a.Class, a.Version, a.ID}] = a
		}
		a.lazy = &lazy[len(headers)+i]
	}
	return x
}

// byName is all attributes by name; of several versions the current one. Many runs
// name none.
var byName = sync.OnceValue(func() map[attributeName]*Attribute {
	x := make(map[attributeName]*Attribute, 2*len(attributes))
	add := func(name string, a *Attribute) {
		if n := (attributeName{a.Class, name}); x[n] == nil {
			x[n] = a
		}
	}
	for _, a := range attributes {
		add(a.Name, a)
		for _, alias := range a.Aliases {
			add(alias, a)
		}
	}
	return x
})

// derived is computed from an attribute's fields. It is made at first use: a run
// uses few attributes, and making it for all would take half of the start time of
// the program.
type derived struct {
	once     sync.Once
	flat     []Field
	script   map[string]*Field
	variants []*Attribute // the attribute with each of Variants in its place
	vendor   *Attribute   // the attribute where IsGeneric is 0; nil: the same

	mu     sync.Mutex
	nested map[*Attribute]*Attribute // with a variant that has a variant itself, by that
}

func (a *Attribute) derived() *derived {
	a.lazy.once.Do(func() { a.lazy.fill(a) })
	return a.lazy
}

func (d *derived) fill(a *Attribute) {
	d.flat = flatten(nil, a, 0, 0)
	d.script = make(map[string]*Field, len(d.flat)+len(a.Fields))
	for _, list := range [][]Field{d.flat, a.Fields} {
		for i := range list {
			f := &list[i]
			d.script[f.Script] = f
			for _, name := range f.Also {
				d.script[name] = f
			}
			if f.Vendor != "" {
				number := f.ofVendor()
				d.script[number.Script] = number
			}
		}
	}
	for i := range a.Variants {
		d.variants = append(d.variants, a.with(&a.Variants[i]))
	}
	d.vendor = a.asVendors()
}

// flatten appends a's fields to list, with each embedded attribute replaced by
// its fields; of an array of attributes, each field becomes an array. component
// is the bit of a's first component, -1 if a has none.
func flatten(list []Field, a *Attribute, offset, component int) []Field {
	for _, f := range a.Fields {
		f.Offset += offset
		if component < 0 {
			f.Component = -1
		} else if f.Component >= 0 {
			f.Component += component
		}
		if f.Type != FieldTypeStruct {
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
