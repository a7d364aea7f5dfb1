package builtins

import (
	"bytes"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// WrapDatagram is MAD m as a value that can be shown: what it asks or answers, the
// fields of its header, its other parts, what is wrong with it, and the bytes
// that have no layout. As text it is what Annotate writes.
func WrapDatagram(m []byte) starlark.Value { return &datagramValue{m} }

type datagramValue struct{ m []byte }

var _ factual = (*datagramValue)(nil)

func (v *datagramValue) Type() string          { return "datagram" }
func (v *datagramValue) Freeze()               {}
func (v *datagramValue) Truth() starlark.Bool  { return true }
func (v *datagramValue) Hash() (uint32, error) { return hashBytes(v.m), nil }
func (v *datagramValue) schema() string        { return "datagram/1" }
func (v *datagramValue) display() string       { return Annotate(v.m) }

// String is "" where there is no whole header.
func (v *datagramValue) String() string {
	if len(v.m) < mad.HeaderSize {
		return ""
	}
	return headline(v.m)
}

func (v *datagramValue) facts() []fact {
	layouts := mad.Parts(v.m)
	out := []fact{{name: "summary", value: starlark.String(v.String())}}
	var parts []starlark.Value
	for i, p := range layouts {
		x := &partValue{newRecord(p.Layout, p.Data), p, asked(v.m, p)}
		if i == 0 { // the header
			out = append(out, x.facts()...)
			continue
		}
		parts = append(parts, x)
	}
	return append(out,
		fact{name: "parts", value: starlark.NewList(parts)},
		fact{name: "problems", value: texts(mad.Validate(v.m))},
		fact{name: "without_layout", value: bare(v.m, withLayout(v.m, layouts))})
}

// partValue is a part of a datagram: a record without the fields that the
// datagram is too short for, and without components that do not count.
type partValue struct {
	*record
	part mad.Part
	mask uint64
}

func (p *partValue) facts() []fact {
	var out []fact
	for _, x := range p.record.facts() {
		name := x.name
		if x.code {
			name = strings.TrimSuffix(name, "_code")
		}
		if isShown(p.part, p.part.Layout.Field(name), p.mask) {
			out = append(out, x)
		}
	}
	return out
}

// bare are the stretches of m that no field covers, without zeros at their ends.
func bare(m []byte, covered []bool) *starlark.List {
	var list []starlark.Value
	for first, end := 0, 0; first < len(m); first = end + 1 {
		for end = first; end < len(m) && !covered[end]; {
			end++
		}
		left := bytes.TrimLeft(m[first:end], "\x00")
		if len(left) > 0 {
			stretch := starlark.NewDict(2)
			stretch.SetKey(starlark.String("offset"), starlark.MakeInt(end-len(left)))
			stretch.SetKey(starlark.String("data"), starlark.Bytes(bytes.TrimRight(left, "\x00")))
			list = append(list, stretch)
		}
	}
	return starlark.NewList(list)
}
