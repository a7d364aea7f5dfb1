package mad

import (
	"slices"
	"sync"
	"sync/atomic"

	"fabsh/mad/internal/snake"
)

// AttributeID names an attribute within a class.
type AttributeID uint16

// Attribute is the description of one attribute, or of a header. The generator
// makes it from a tagged struct, where all of it is declared. It is immutable and
// safe for concurrent use.
type Attribute struct {
	Name     string   // in the specification: "PortInfo"
	Aliases  []string // in older specifications: "SwitchRecord"
	Class    Class    // ClassSubn for both subnet management classes; 0 of a header
	Version  uint8    // of the class
	ID       AttributeID
	OUI      uint32         // of the vendor, in the vendor classes from 0x30 on; otherwise 0
	Methods  []Method       // requests that the specification allows
	Methods1 []Method       // requests of version 1 of SubnAdm
	Modifier []ModifierPart // the fields of the attribute modifier; empty: it is 0
	SMOwned  bool           // a subnet manager sets it and expects no other changes
	// Older is set if a newer attribute has its number: Lookup returns the newer one, and
	// this one is found only by its name. Device is the DeviceID in NodeInfo of the
	// devices that have it; 0: unknown.
	Older   bool
	Device  uint16
	SafeGet bool // a vendor's attribute of which a Get is known only to read
	// Capabilities are the capabilities in GeneralInfo of which a device needs one to have
	// the attribute; empty: none.
	Capabilities []Capability
	// Needs are conditions on other attributes, of which a device has to meet one to have
	// the attribute; empty: none. OnlyRouters is set if only routers have it.
	Needs       []Need
	OnlyRouters bool
	// UnknownModifier is set if no public source has the modifier: only a caller who knows
	// the device can give it. InferredModifier is set if Modifier is an inference.
	UnknownModifier, InferredModifier bool
	Size                              int        // length of the layout in bytes
	Section                           string     // of the specification
	Sources                           []string   // the public sources of the layout: project, file and symbol
	Doc                               string     // one paragraph
	Fields                            []Field    // in wire order, reserved bits left out
	Variants                          []Variant  // the layouts that fields of raw bytes can have
	Variant                           string     // the name of the variant in place, or ""
	Answer                            *Attribute // the attribute of the records in the answer; nil: this one
	Register                          uint16     // of a layout: the number of the device's register; 0: not a register
	Confirmed                         bool       // false: fewer than two sources

	// The content of a record of the subnet administrator, by class version 1:
	// state, which may be queried; configuration, which others than the subnet
	// manager may also edit (IBA 1.0.a; Shanley, InfiniBand Network
	// Architecture, table 33-6).
	State, Configuration bool
	// Required is set if class version 1 requires the attribute of each subnet
	// administrator (Shanley, table 33-4); otherwise it is optional there.
	Required bool

	offset int      // in the MAD, bytes; 0: the class's data offset
	lazy   *derived // filled at first use
}

// Offset returns the offset of the attribute in a MAD of its class version, in bytes.
func (a *Attribute) Offset() int { return a.OffsetIn(a.Version) }

// OffsetIn returns its offset in a MAD of another version of its class.
func (a *Attribute) OffsetIn(version uint8) int {
	if a.offset > 0 {
		return a.offset
	}
	return (&Header{Class: a.Class, ClassVersion: version}).DataOffset()
}

// ModifierPart is a field of an attribute modifier: "port", "block", ...
type ModifierPart struct {
	Name  string
	Shift uint8
	Bits  uint8
}

// Place returns the bits of the attribute modifier that select a port or a block of
// a table. The others are flags or commands; an agent that does not support a flag
// clears it in its answer.
func (a *Attribute) Place() (mask uint32) {
	for _, p := range a.Modifier {
		switch p.Name {
		case "port", "in_port", "out_port", "block", "position":
			mask |= uint32(1<<p.Bits-1) << p.Shift
		}
	}
	return mask
}

// FieldType is the type of a field's bits.
type FieldType uint8

const (
	FieldTypeUint   FieldType = iota // an unsigned number
	FieldTypeLID                     // LID
	FieldTypeGUID                    // GUID, 64 bits
	FieldTypeGID                     // GID, 128 bits
	FieldTypeEnum                    // one of Words
	FieldTypeMask                    // a set of Words, by bit
	FieldTypeText                    // NUL-padded UTF-8
	FieldTypeBytes                   // raw
	FieldTypeStruct                  // an attribute inside a record
)

// Field is one field of an attribute. Offsets count bits from the attribute's
// first; bit 0 is the most significant bit of byte 0, as in the specification.
type Field struct {
	Name       string   // the component name in the specification: "LinkWidthActive"
	Script     string   // SnakeName(Name): "link_width_active"
	Also       []string // other script names; usually none
	Vendor     string   // its name if IsGeneric is 0; a vendor then defines it, as a number: "DeviceID"; usually ""
	Offset     int      // bits
	Bits       int      // bits of one element
	Count      int      // elements; 1 unless an array
	Stride     int      // bits from one element to the next; Bits if they are adjacent
	Type       FieldType
	Words      *Words     // of KindEnum and KindMask
	Struct     *Attribute // of KindStruct
	Component  int        // first bit in the SA ComponentMask; -1: none
	Components int        // number of bits there: 1, more for fields that the specification splits
	ReadOnly   bool       // "ro": the agent ignores it in a Set
	NoChange   bool       // "nochange=0": in a Set, 0 means no change
	W1C        bool       // "w1c": in a Set, 1 clears (or triggers), 0 means no change
	Key        bool       // "key": shown only on request
	Hex        bool       // "hex": shown in hexadecimal
	Signed     bool       // "signed": a number in two's complement
	Minor      bool       // "minor": a table that is too wide leaves it out first
	Scale      int        // "scale=8": the number is 8 times the value; 0: it is the value
	Select2    int        // "select2=N": N+1, for a counter that bit N of CounterSelect2 selects; otherwise 0
	Doc        string     // one sentence or two
}

// Words are the names of an enumeration's values or of a mask's bits, in
// lower snake case.
//
// It is safe for concurrent use.
type Words struct {
	Name string // the Go type: "PortState"

	list []wordCode
	once sync.Once // fills the maps: a run uses few of them
	word map[uint64]string
	code map[string]uint64
}

type wordCode struct {
	code uint64 // a value of an enumeration, or a bit, 1<<n, of a mask
	word string
}

// Word returns the words by value of an enumeration, or by bit, 1<<n, of a mask. The caller
// must not change the map.
func (w *Words) Word() map[uint64]string { w.once.Do(w.fill); return w.word }

// Code returns the values, or bits, by word. The caller must not change the map.
func (w *Words) Code() map[string]uint64 { w.once.Do(w.fill); return w.code }

func (w *Words) fill() {
	w.word, w.code = make(map[uint64]string, len(w.list)), make(map[string]uint64, len(w.list))
	for _, c := range w.list {
		w.word[c.code], w.code[c.word] = c.word, c.code
	}
}

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
	return byNumber()[attributeNumber{c.Family(), version, id}]
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

// byNumber is all attributes by number. Many runs request none.
var byNumber = sync.OnceValue(func() map[attributeNumber]*Attribute {
	x := make(map[attributeNumber]*Attribute, len(attributes))
	for _, a := range attributes {
		if !a.Older {
			x[attributeNumber{a.Class, a.Version, a.ID}] = a
		}
	}
	return x
})

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
	filled   atomic.Bool
	flat     []Field
	script   map[string]*Field
	variants []*Attribute // the attribute with each of Variants in its place
	vendor   *Attribute   // the attribute where IsGeneric is 0; nil: no other layout

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
	d.filled.Store(true)
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
