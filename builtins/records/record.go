// Package records has the values of attributes, bytes with a layout that are read and
// written by field, and their help.
//
//	record.go    a record: the bytes of an attribute
//	field.go     values of fields, both ways
//	ids.go       GUIDs and GIDs as scripts write them
//	attrkind.go  parameters that name an attribute, or take its fields
//	helpattr.go  help on attributes, fields, classes; helprequest.go, on their requests
//	helpspec.go  help on methods, traps, statuses
//	origin.go    where a record was read; change.go, what a function has changed in it
//	datagram.go  a MAD as a value: decode
//	annotate.go  a whole datagram, explained
//	mask.go      keys kept out of a text
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

// TypeName returns the name of the attribute's type: "port_info".
func TypeName(a *mad.Attribute) string { return mad.SnakeName(a.Name) }

func (r *Record) Type() string         { return TypeName(r.Attribute) }
func (r *Record) Freeze()              {}
func (r *Record) Truth() starlark.Bool { return true }
func (r *Record) Schema() string       { return r.Type() + "/1" }

func (r *Record) Hash() (uint32, error) { return lang.HashBytes(r.Data), nil }

// CompareSameType compares layout and bytes. It is only called for values of the same
// Type.
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
		return each(f, func(i int) starlark.Value { return starlark.MakeUint64(f.UintAt(r.Data, i)) }), nil
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

// AttrNames returns the fields, including those of embedded attributes, and the embedded
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

// Facts returns the origin and the fields, including those of embedded attributes.
func (r *Record) Facts() []lang.Fact { return append(r.originFacts(), r.fieldFacts()...) }

func (r *Record) fieldFacts() []lang.Fact {
	var out []lang.Fact
	for i := range r.Attribute.Flat() {
		f := &r.Attribute.Flat()[i]
		x := lang.Fact{Name: f.Script, Value: FieldValue(f, r.Data)}
		if f.Hex && !f.Key {
			x.Hex = (f.Bits + 3) / 4
		}
		out = append(out, x)
		if f.Words != nil {
			code := each(f, func(i int) starlark.Value { return starlark.MakeUint64(f.UintAt(r.Data, i)) })
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
