package records

import (
	"bytes"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

// Datagram returns MAD m as a value that can be shown: the request or answer, the
// fields of its header, its other parts, its errors, and the bytes without a layout. Its
// text is the result of Annotate. notes are errors of the headers before it.
func Datagram(m []byte, notes ...string) starlark.Value { return &datagramValue{m, notes} }

type datagramValue struct {
	m     []byte
	notes []string
}

var _ lang.Factual = (*datagramValue)(nil)

func (v *datagramValue) Type() string          { return "datagram" }
func (v *datagramValue) Freeze()               {}
func (v *datagramValue) Truth() starlark.Bool  { return true }
func (v *datagramValue) Hash() (uint32, error) { return lang.HashBytes(v.m), nil }
func (v *datagramValue) Schema() string        { return "datagram/1" }
func (v *datagramValue) Display() string       { return explain(v.m, v.notes) }

// String returns "" if the header is incomplete.
func (v *datagramValue) String() string {
	if len(v.m) < mad.HeaderSize {
		return ""
	}
	return headline(v.m)
}

func (v *datagramValue) Facts() []lang.Fact {
	layouts := mad.Dissect(v.m)
	out := []lang.Fact{{Name: "summary", Value: starlark.String(v.String())}}
	var parts []starlark.Value
	for i, p := range layouts {
		x := &partValue{New(p.Layout, p.Data), p, asked(v.m, p)}
		if i == 0 { // the header
			out = append(out, x.Facts()...)
			continue
		}
		parts = append(parts, x)
	}
	return append(out,
		lang.Fact{Name: "parts", Value: starlark.NewList(parts)},
		lang.Fact{Name: "problems", Value: lang.Texts(append(slices.Clone(v.notes), mad.Validate(v.m)...))},
		lang.Fact{Name: "without_layout", Value: bare(v.m, withLayout(v.m, layouts))})
}

// partValue is a part of a datagram: a record without the fields beyond the end of the
// datagram, and without components that do not count.
type partValue struct {
	*Record
	part mad.Part
	mask uint64
}

func (p *partValue) Facts() []lang.Fact {
	var out []lang.Fact
	for _, x := range p.Record.Facts() {
		name := x.Name
		if x.Code {
			name = strings.TrimSuffix(name, "_code")
		}
		if isShown(p.part, p.part.Layout.Field(name), p.mask) {
			out = append(out, x)
		}
	}
	return out
}

// bare returns the ranges of m that no field covers, without zeros at their ends.
func bare(m []byte, covered []bool) *starlark.List {
	var list []starlark.Value
	for first, end := 0, 0; first < len(m); first = end + 1 {
		for end = first; end < len(m) && !covered[end]; {
			end++
		}
		left := bytes.TrimLeft(m[first:end], "\x00")
		if len(left) > 0 {
			list = append(list, lang.DictOf("offset", starlark.MakeInt(end-len(left)), "data", starlark.Bytes(bytes.TrimRight(left, "\x00"))))
		}
	}
	return starlark.NewList(list)
}
