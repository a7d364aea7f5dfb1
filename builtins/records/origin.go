package records

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Origin says of whom a record was asked. It does not count for equality.
type Origin struct {
	Of   starlark.Value // a node, a route, a name; None where only the LID is known
	LID  starlark.Value // None where it is not known
	Port starlark.Value // None where no port is meant
}

// AskedOf is r with its origin.
func (r *Record) AskedOf(o Origin) *Record {
	r.origin = &o
	return r
}

// OriginMembers are what help says of the origin.
var OriginMembers = []lang.MemberDoc{
	{Name: "of", Doc: "of whom it was asked: a node where the target is known as one, else the route or name that was given; None of a LID"},
	{Name: "lid", Doc: "the LID of whom was asked, unless the attribute has such a field; None where it is not known"},
	{Name: "port", Doc: "the port that is meant; None where none is"},
}

// originFacts are the columns of the origin, the first of all. What is None is
// not in text.
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

// value is a part of the origin by its name; nil: there is none of that name.
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
