// Package records has the values of attributes, bytes with a layout that are read and
// written by field, and their help.
//
// A Record is an attribute in its wire format; its fields are decoded when they are read,
// and its bytes never change. FieldValue and SetNamed convert fields to values of scripts and
// back. Datagram shows a whole MAD. AttributesHelp, FieldHelp, ClassHelp and similar
// functions return help, from the layouts of package mad. Keys are never shown.
package records

import (
	"bytes"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// Record is an attribute in its wire format. Fields are decoded when they are read. The
// bytes never change.
type Record struct {
	Attribute *mad.Attribute
	Data      []byte // Attribute.Size bytes
	// Named are the fields that replace() has changed, by their names in scripts;
	// smp_set(record, target) writes them.
	Named []string
	// Source is the LID that sent a notice; 0: the record is an answer to a
	// request.
	Source mad.LID
	origin *Origin // nil: it is not an answer of a target
	change *Change // nil: no function has changed it
}

var (
	_ starlark.HasAttrs   = (*Record)(nil)
	_ starlark.Comparable = (*Record)(nil)
	_ lang.Factual        = (*Record)(nil)
	_ lang.Documented     = (*Record)(nil)
)

// New returns a record of a copy of data, cut or padded with zeros to the attribute's
// size.
func New(a *mad.Attribute, data []byte) *Record {
	r := &Record{Attribute: a, Data: make([]byte, a.Size)}
	copy(r.Data, data)
	return r
}

// NewAnswer returns a record of the data in an answer to a request with that modifier,
// with the matching variant of the attribute.
func NewAnswer(a *mad.Attribute, modifier uint32, data []byte) *Record {
	return New(a.Resolve(data, modifier), data)
}

// Encoded returns a record of a decoded attribute, which x encodes.
func Encoded(a *mad.Attribute, x interface{ Encode([]byte) }) *Record {
	data := make([]byte, max(a.Size, mad.AttrPortInfo.Size)) // some encode more than their size
	x.Encode(data)
	return New(a, data)
}

// TypeName returns the name of the attribute's type: "port_info".
func TypeName(a *mad.Attribute) string { return mad.SnakeName(a.Name) }

func (r *Record) Type() string         { return TypeName(r.Attribute) }
func (r *Record) Freeze()              {}
func (r *Record) Truth() starlark.Bool { return true }
func (r *Record) Schema() string       { return r.Type() + "/1" }

func (r *Record) Hash() (uint32, error) { return lang.HashBytes(r.Data), nil }

// CompareSameType compares layout and bytes. It is only called for values of one Type.
func (r *Record) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	o := y.(*Record)
	return CompareEqual(op, r, r.Attribute == o.Attribute && bytes.Equal(r.Data, o.Data))
}

// String returns the type and the first few fields: port_info(lid=3, ...); for a notice
// its event first.
func (r *Record) String() string {
	const few = 3
	var b strings.Builder
	b.WriteString(r.Type() + "(")
	n := 0
	if event := eventOf(r.Attribute, r.Data); event != "" {
		b.WriteString(event)
		n++
	}
	for _, f := range r.fieldFacts() {
		if f.Code {
			continue
		}
		if n++; n > few {
			b.WriteString(", ...")
			break
		}
		if n > 1 {
			b.WriteString(", ")
		}
		value := lang.Brief(f.Value)
		if f.Hex > 0 {
			value = f.Cell()
		}
		b.WriteString(f.Name + "=" + value)
	}
	b.WriteByte(')')
	return b.String()
}

// eventOf returns the name of the event of a notice; "" for another attribute.
func eventOf(a *mad.Attribute, data []byte) string {
	if a.Name != mad.AttrSubnNotice.Name {
		return ""
	}
	var n mad.Notice
	whole := make([]byte, mad.AttrSubnAdmNotice.Size) // a notice in an SMP lacks the last field
	copy(whole, data)
	n.Decode(whole)
	return n.Event(a.Class)
}

// Attr returns a field, the number of a word, or replace.
func (r *Record) Attr(name string) (starlark.Value, error) {
	if f := r.Attribute.Field(name); f != nil {
		return FieldValue(f, r.Data), nil
	}
	if f := CodeField(r.Attribute, name); f != nil {
		return eachElement(f, func(i int) starlark.Value { return starlark.MakeUint64(f.UintAt(r.Data, i)) }), nil
	}
	if name == "data" {
		return r.Bytes(), nil
	}
	if name == "source" && r.Source != 0 {
		return starlark.MakeInt(int(r.Source)), nil
	}
	if v := r.origin.value(name); v != nil {
		return v, nil
	}
	if name == "replace" {
		return &lang.Function{Builtin: &ReplaceMethod, Recv: r}, nil
	}
	return nil, nil
}

// Bytes returns the bytes of r, including reserved bits, with zeros in place of keys. The
// language's bytes() calls it.
func (r *Record) Bytes() starlark.Bytes {
	b := slices.Clone(r.Data)
	for i := range r.Attribute.Flat() {
		if f := &r.Attribute.Flat()[i]; f.Key {
			clear(b[f.Offset/8 : fieldEnd(f)])
		}
	}
	return starlark.Bytes(b)
}

// CodeField returns the field whose number is x_code; nil: no such field.
func CodeField(a *mad.Attribute, name string) *mad.Field {
	base, ok := strings.CutSuffix(name, "_code")
	if !ok {
		return nil
	}
	if f := a.Field(base); f != nil && f.Words != nil {
		return f
	}
	return nil
}

// AttrNames returns the names of all fields, also of embedded attributes, and of the embedded
// attributes.
func (r *Record) AttrNames() []string {
	names := append(fieldNames(r.Attribute), "replace")
	if r.Attribute.Field("data") == nil {
		names = append(names, "data")
	}
	for i := range r.Attribute.Fields {
		if f := &r.Attribute.Fields[i]; f.Type == mad.FieldTypeStruct {
			names = append(names, f.Script)
		}
	}
	if r.Source != 0 {
		names = append(names, "source")
	}
	if r.origin != nil {
		for _, m := range OriginMembers {
			if r.Attribute.Field(m.Name) == nil {
				names = append(names, m.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// fieldNames returns the names of an attribute's fields, with the numbers of words and
// without embedded attributes.
func fieldNames(a *mad.Attribute) []string {
	var names []string
	for i := range a.Flat() {
		f := &a.Flat()[i]
		names = append(names, f.Script)
		if f.Words != nil {
			names = append(names, f.Script+"_code")
		}
	}
	return names
}

// Facts returns the origin and the fields, also of embedded attributes.
func (r *Record) Facts() []lang.Fact { return append(r.originFacts(), r.fieldFacts()...) }

func (r *Record) fieldFacts() []lang.Fact {
	var out []lang.Fact
	for i := range r.Attribute.Flat() {
		f := &r.Attribute.Flat()[i]
		x := lang.Fact{Name: f.Script, Value: FieldValue(f, r.Data)}
		if f.Hex && !f.Key {
			x.Hex = (f.Bits + 3) / 4
		}
		if f.Minor {
			x.Rank = 1
		}
		out = append(out, x)
		if f.Words != nil {
			code := eachElement(f, func(i int) starlark.Value { return starlark.MakeUint64(f.UintAt(r.Data, i)) })
			out = append(out, lang.Fact{Name: f.Script + "_code", Value: code, Code: true})
		}
	}
	if r.Source != 0 {
		out = append(out, lang.Fact{Name: "source", Value: starlark.MakeInt(int(r.Source))})
	}
	return out
}

func (r *Record) TypeDoc() lang.TypeDoc {
	d := attributeDoc(r.Attribute)
	if r.Source != 0 {
		d.Members = append(d.Members, lang.MemberDoc{Name: "source", Doc: "the LID that sent it"})
	}
	if r.origin != nil {
		d.Members = append(d.Members, OriginMembers...)
	}
	return d
}

// From returns r as a notice sent by a LID.
func (r *Record) From(source mad.LID) *Record {
	r.Source = source
	return r
}

// attributeDoc describes the records of an attribute.
func attributeDoc(a *mad.Attribute) lang.TypeDoc {
	d := lang.TypeDoc{Name: TypeName(a), Doc: a.Doc}
	for i := range a.Flat() {
		f := &a.Flat()[i]
		d.Members = append(d.Members, lang.MemberDoc{Name: f.Script, Doc: f.Doc})
	}
	if a.Field("data") == nil {
		d.Members = append(d.Members, lang.MemberDoc{Name: "data", Doc: "its bytes, including reserved bits; keys are replaced by zeros"})
	}
	d.Members = append(d.Members, lang.MemberDoc{Name: ReplaceMethod.Signature(), Doc: ReplaceMethod.Summary(), Method: &ReplaceMethod})
	return d
}

// ReplaceMethod is replace(), which all records have.
var ReplaceMethod = lang.Builtin{
	Name:   "replace",
	Params: []lang.Param{{Name: "**fields", Kind: KindFields, Doc: "fields and their new values, as words or numbers"}},
	Doc: `Returns a copy of the record with some fields changed.
smp_set(record, target) writes the changed fields. replace itself sends nothing.`,
	Example: `
> r = smp_get("SwitchInfo", dr("0,1"))
> r.replace(life_time_value=20).life_time_value
20
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Fields []starlark.Tuple }) (starlark.Value, error) {
		r := c.Recv.(*Record)
		out := New(r.Attribute, r.Data)
		out.Named = slices.Clone(r.Named)
		out.origin = r.origin
		for _, kv := range a.Fields {
			f, err := SetNamed(out.Attribute, out.Data, string(kv[0].(starlark.String)), kv[1])
			if err != nil {
				return nil, lang.Errorf("%w", err)
			}
			if !slices.Contains(out.Named, f.Script) {
				out.Named = append(out.Named, f.Script)
			}
		}
		return out, nil
	}),
}

// Origin is the target that a record was read from. It does not count for equality.
type Origin struct {
	Of   starlark.Value // a node, a route, a name; None if only the LID is known
	LID  starlark.Value // None if unknown
	Port starlark.Value // None if the record is not about a port
}

// WithOrigin returns r with its origin.
func (r *Record) WithOrigin(o Origin) *Record {
	r.origin = &o
	return r
}

// OriginMembers is the help of the origin.
var OriginMembers = []lang.MemberDoc{
	{Name: "of", Doc: "the target that it was read from: its node if known, else the route or name that was given; None for a LID"},
	{Name: "lid", Type: "int", Doc: "the LID of the target, unless the attribute has such a field; None if unknown"},
	{Name: "port", Type: "int", Doc: "number of the port that it describes; None if it is not about a port"},
}

// originFacts returns the columns of the origin, which come first. Text leaves out columns
// that are None.
func (r *Record) originFacts() []lang.Fact {
	if r.origin == nil {
		return nil
	}
	var out []lang.Fact
	for _, m := range OriginMembers {
		if r.Attribute.Field(m.Name) != nil {
			continue
		}
		v := r.origin.value(m.Name)
		if n, ok := v.(lang.Named); ok {
			v = starlark.String(n.Name())
		}
		out = append(out, lang.Fact{Name: m.Name, Value: v, Code: v == starlark.None})
	}
	return out
}

// value returns a part of the origin by name; nil: no such part.
func (o *Origin) value(name string) starlark.Value {
	if o == nil {
		return nil
	}
	switch name {
	case "of":
		return o.Of
	case "lid":
		return o.LID
	case "port":
		return o.Port
	}
	return nil
}

// Change is what a function has changed in an attribute.
type Change struct {
	Before []byte   // the attribute as it was read before
	Fields []string // fields to compare, by their names in scripts; nil: all
	Named  []string // fields that were written: devices do not show keys
	Link   bool     // the state of the link is what changed, so it needs no name
	Reset  bool     // the link trained again, even if its state is as before
	// Planned means that the change was recorded, not sent.
	Planned bool
}

var _ lang.Changed = (*Record)(nil)

// ChangedBy returns r, the attribute after a change.
func (r *Record) ChangedBy(c Change) *Record {
	if c.Before != nil {
		c.Before = New(r.Attribute, c.Before).Data
		r.change = &c
	}
	return r
}

// Changes returns a line with the fields that changed, before and after.
func (r *Record) Changes() []string {
	if r.change == nil {
		return nil
	}
	before := &Record{Attribute: r.Attribute, Data: r.change.Before}
	var parts []string
	show := func(name string, f *mad.Field) {
		was, is := lang.Fact{Value: FieldValue(f, before.Data)}, lang.Fact{Value: FieldValue(f, r.Data)}
		if f.Hex && !f.Key {
			was.Hex = (f.Bits + 3) / 4
			is.Hex = was.Hex
		}
		parts = append(parts, name+was.Cell()+" -> "+is.Cell())
	}
	if r.change.Link {
		state := r.Attribute.Field("port_physical_state")
		if sameField(state, before.Data, r.Data) && !r.change.Reset {
			word := lang.Fact{Value: FieldValue(state, r.Data)}
			parts = append(parts, word.Cell()+" (unchanged)")
		} else {
			show("", state)
		}
	}
	for i := range r.Attribute.Flat() {
		f := &r.Attribute.Flat()[i]
		switch {
		case f.Key && slices.Contains(r.change.Named, f.Script):
			parts = append(parts, f.Script+" written")
		case r.change.Fields != nil && !slices.Contains(r.change.Fields, f.Script), sameField(f, before.Data, r.Data):
		case r.change.Link && (f.Script == "port_physical_state" || f.Script == "port_state"):
		default:
			show(f.Script+" ", f)
		}
	}
	if len(parts) == 0 {
		parts = []string{"unchanged"}
	}
	return []string{ChangeLabel(r.origin, r.change.Planned) + strings.Join(parts, "; ")}
}

// ChangeLabel returns the begin of a line of a change.
func ChangeLabel(o *Origin, planned bool) string {
	if planned {
		return "planned: " + o.Label() + ": "
	}
	return o.Label() + ": "
}

// sameField reports whether a field is equal in a and b.
func sameField(f *mad.Field, a, b []byte) bool {
	if f.Bits > 64 {
		first := f.Offset / 8
		end := fieldEnd(f)
		return end > min(len(a), len(b)) || bytes.Equal(a[first:end], b[first:end])
	}
	for i := range f.Count {
		if f.UintAt(a, i) != f.UintAt(b, i) {
			return false
		}
	}
	return true
}

// Label returns the target in a few words: leaf-1/3, LID 5 port 3.
func (o *Origin) Label() string {
	if o == nil {
		return "record"
	}
	label, sep := "", "/"
	switch of := o.Of.(type) {
	case lang.Named:
		label = of.Name()
	case starlark.String:
		label = string(of)
	case lang.Textual:
		label, sep = "route "+of.Text(), " port "
	}
	if label == "" {
		label, sep = "LID "+o.LID.String(), " port "
	}
	if o.Port != starlark.None {
		label += sep + o.Port.String()
	}
	return lang.OneLine(label)
}
