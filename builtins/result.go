package builtins

import (
	"slices"

	"go.starlark.net/starlark"
)

// resultType is a type of values that a computation gives: named parts and
// nothing else.
type resultType struct {
	name    string
	doc     string
	members []resultMember
}

type resultMember struct {
	name string
	doc  string
	long bool // shown in JSON, not in text
}

// result is a value of a resultType.
type result struct {
	kind   *resultType
	values []starlark.Value // by member
}

var (
	_ starlark.HasAttrs = (*result)(nil)
	_ factual           = (*result)(nil)
	_ documented        = (*result)(nil)
	_ displayed         = (*result)(nil)
)

// newResult takes a value for each member, in their order.
func newResult(t *resultType, values ...starlark.Value) *result {
	r := &result{kind: t, values: values}
	for _, v := range values {
		v.Freeze()
	}
	return r
}

func (r *result) String() string {
	text := r.kind.name + "("
	n := 0
	for i, m := range r.kind.members {
		if m.long {
			continue
		}
		if n++; n > 4 {
			text += ", ..."
			break
		}
		if n > 1 {
			text += ", "
		}
		text += m.name + "=" + brief(r.values[i])
	}
	return text + ")"
}

func (r *result) Type() string          { return r.kind.name }
func (r *result) Freeze()               {}
func (r *result) Truth() starlark.Bool  { return true }
func (r *result) Hash() (uint32, error) { return 0, unhashable(r) }
func (r *result) schema() string        { return r.kind.name + "/1" }
func (r *result) typeDoc() typeDoc      { return r.kind.typeDoc() }

func (r *result) Attr(name string) (starlark.Value, error) {
	for i, m := range r.kind.members {
		if m.name == name {
			return r.values[i], nil
		}
	}
	return nil, nil
}

func (r *result) AttrNames() []string {
	var names []string
	for _, m := range r.kind.members {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return names
}

func (r *result) facts() []fact {
	var out []fact
	for i, m := range r.kind.members {
		out = append(out, fact{name: m.name, value: r.values[i], code: m.long})
	}
	return out
}

func (r *result) display() string { return aligned(r.facts()) }

func (t *resultType) typeDoc() typeDoc {
	d := typeDoc{name: t.name, doc: t.doc}
	for _, m := range t.members {
		d.members = append(d.members, memberDoc{name: m.name, doc: m.doc})
	}
	return d
}

// texts is a list of texts.
func texts(list []string) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, s := range list {
		values[i] = starlark.String(s)
	}
	return starlark.NewList(values)
}

func integers[T ~int | ~int64 | ~uint16](list []T) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, n := range list {
		values[i] = starlark.MakeInt64(int64(n))
	}
	return starlark.NewList(values)
}
