package records

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
)

// Origin is the target that a record was read from. It does not count for equality.
type Origin struct {
	Of   starlark.Value // a node, a route, a name; None if only the LID is known
	LID  starlark.Value // None if unknown
	Port starlark.Value // None if the record is not about a port
}

// AskedOf returns r with its origin.
func (r *Record) AskedOf(o Origin) *Record {
	r.origin = &o
	return r
}

// OriginMembers is the help of the origin.
var OriginMembers = []lang.MemberDoc{
	{Name: "of", Doc: "the target that it was read from: its node if known, else the route or name that was given; None for a LID"},
	{Name: "lid", Type: "int", Doc: "the LID of the target, unless the attribute has such a field; None if unknown"},
	{Name: "port", Type: "int", Doc: "number of the port that it describes; None if it is not about a port"},
}

// originFacts returns the columns of the origin, which come first. Text leaves out those
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
