package builtins

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/mad"
)

// record is an attribute as it came over the wire, read field by field on
// demand. The bytes never change.
type record struct {
	attr *mad.Attribute
	data []byte // attr.Size bytes
	// named are the fields that replace changed: smp_set(record, target)
	// writes these.
	named []string
}

var (
	_ starlark.HasAttrs   = (*record)(nil)
	_ starlark.Comparable = (*record)(nil)
	_ factual             = (*record)(nil)
	_ documented          = (*record)(nil)
)

// newRecord keeps a copy of data, cut or padded to the attribute's size.
func newRecord(a *mad.Attribute, data []byte) *record {
	r := &record{attr: a, data: make([]byte, a.Size)}
	copy(r.data, data)
	return r
}

// answered makes a record of what an answer to a request with that modifier
// holds: of the attribute's variants, the one that it is.
func answered(a *mad.Attribute, modifier uint32, data []byte) *record {
	return newRecord(a.Of(data, modifier), data)
}

// typeName is the attribute's name as a type's: "port_info".
func typeName(a *mad.Attribute) string { return mad.SnakeName(a.Name) }

func (r *record) Type() string         { return typeName(r.attr) }
func (r *record) Freeze()              {}
func (r *record) Truth() starlark.Bool { return true }
func (r *record) schema() string       { return r.Type() + "/1" }

func (r *record) Hash() (uint32, error) { return hashBytes(r.data), nil }

// CompareSameType is only asked about values of one Type.
func (r *record) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	o := y.(*record)
	return compareEqual(op, r, r.attr == o.attr && bytes.Equal(r.data, o.data))
}

// String shows the first few fields.
func (r *record) String() string {
	const few = 3
	var b strings.Builder
	b.WriteString(r.Type() + "(")
	n := 0
	for _, f := range r.facts() {
		if f.code {
			continue
		}
		if n++; n > few {
			b.WriteString(", ...")
			break
		}
		if n > 1 {
			b.WriteString(", ")
		}
		value := brief(f.value)
		if f.hex > 0 {
			value = f.cell()
		}
		b.WriteString(f.name + "=" + value)
	}
	b.WriteByte(')')
	return b.String()
}

func (r *record) Attr(name string) (starlark.Value, error) {
	if f := r.attr.Field(name); f != nil {
		return fieldValue(f, r.data), nil
	}
	if f := r.codeField(name); f != nil {
		return each(f, func(i int) starlark.Value { return starlark.MakeUint64(f.UintAt(r.data, i)) }), nil
	}
	if name == "replace" {
		return &function{Builtin: &replaceMethod, recv: r}, nil
	}
	return nil, nil
}

// codeField finds the field of the words for the number beside them.
func (r *record) codeField(name string) *mad.Field { return codeField(r.attr, name) }

func codeField(a *mad.Attribute, name string) *mad.Field {
	base, ok := strings.CutSuffix(name, "_code")
	if !ok {
		return nil
	}
	if f := a.Field(base); f != nil && f.Words != nil {
		return f
	}
	return nil
}

func (r *record) AttrNames() []string {
	names := append(fieldNames(r.attr), "replace")
	for i := range r.attr.Fields {
		if f := &r.attr.Fields[i]; f.Kind == mad.KindStruct {
			names = append(names, f.Script)
		}
	}
	slices.Sort(names)
	return names
}

// fieldNames are the names of an attribute's fields, with the numbers beside
// words, and without embedded attributes.
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

func (r *record) facts() []fact {
	var out []fact
	for i := range r.attr.Flat() {
		f := &r.attr.Flat()[i]
		x := fact{name: f.Script, value: fieldValue(f, r.data)}
		if f.Hex && !f.Key {
			x.hex = (f.Bits + 3) / 4
		}
		out = append(out, x)
		if f.Words != nil {
			code := each(f, func(i int) starlark.Value { return starlark.MakeUint64(f.UintAt(r.data, i)) })
			out = append(out, fact{name: f.Script + "_code", value: code, code: true})
		}
	}
	return out
}

func (r *record) typeDoc() typeDoc { return attributeDoc(r.attr) }

// attributeDoc describes the records of an attribute.
func attributeDoc(a *mad.Attribute) typeDoc {
	d := typeDoc{name: typeName(a), doc: a.Doc}
	for i := range a.Flat() {
		f := &a.Flat()[i]
		d.members = append(d.members, memberDoc{name: f.Script, doc: f.Doc})
	}
	d.members = append(d.members, memberDoc{name: replaceMethod.Signature(), doc: replaceMethod.Summary(), method: &replaceMethod})
	return d
}

var replaceMethod = Builtin{
	Name:   "replace",
	Params: []Param{{Name: "**fields", Kind: KindFields, Doc: "fields and their new values, as words or numbers"}},
	Doc: `Returns a copy of the record with some fields changed.
smp_set(record, target) writes the fields that replace named. It sends nothing itself.`,
	Example: `
> r = smp_get("SwitchInfo", dr("0,1"))
> r.replace(life_time_value=20).life_time_value
20
`,
	fn: func(c *call) (starlark.Value, error) {
		r := c.recv.(*record)
		out := newRecord(r.attr, r.data)
		out.named = slices.Clone(r.named)
		for _, kv := range c.fields {
			f, err := setNamed(out.attr, out.data, string(kv[0].(starlark.String)), kv[1])
			if err != nil {
				return nil, fmt.Errorf("replace: %w", err)
			}
			if !slices.Contains(out.named, f.Script) {
				out.named = append(out.named, f.Script)
			}
		}
		return out, nil
	},
}

func (r *record) get(name string) starlark.Value {
	v, err := r.Attr(name)
	if v == nil || err != nil {
		return starlark.None
	}
	return v
}

// uint reads a field by the name that scripts use.
func (r *record) uint(name string) uint64 {
	if f := r.attr.Field(name); f != nil {
		return f.Uint(r.data)
	}
	return 0
}
