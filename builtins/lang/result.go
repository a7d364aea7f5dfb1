package lang

import (
	"slices"

	"go.starlark.net/starlark"
)

// ResultType is the type of the result of a computation, which has only named parts.
type ResultType struct {
	Name    string
	Doc     string
	Version int // of the schema; 0 means 1
	Members []ResultMember
}

// ResultMember is a named part of a result.
type ResultMember struct {
	Name string
	Doc  string
	Type string // for completion; empty: not declared
	Long bool   // shown in JSON, not in text

	Words []string // possible words, if they are fixed
}

// Result is a value of a ResultType.
type Result struct {
	kind   *ResultType
	values []starlark.Value // by member
}

var (
	_ starlark.HasAttrs = (*Result)(nil)
	_ Factual           = (*Result)(nil)
	_ Documented        = (*Result)(nil)
	_ displayed         = (*Result)(nil)
)

// NewResult returns a Result with a value for each member, in their order.
func NewResult(t *ResultType, values ...starlark.Value) *Result {
	r := &Result{kind: t, values: values}
	for _, v := range values {
		v.Freeze()
	}
	return r
}

func (r *Result) String() string {
	text := r.kind.Name + "("
	n := 0
	for i, m := range r.kind.Members {
		if m.Long {
			continue
		}
		if n++; n > 4 {
			text += ", ..."
			break
		}
		if n > 1 {
			text += ", "
		}
		text += m.Name + "=" + Brief(r.values[i])
	}
	return text + ")"
}

func (r *Result) Type() string          { return r.kind.Name }
func (r *Result) Freeze()               {}
func (r *Result) Truth() starlark.Bool  { return true }
func (r *Result) Hash() (uint32, error) { return 0, Unhashable(r) }
func (r *Result) Schema() string        { return schemaName(r.kind.Name, r.kind.Version) }
func (r *Result) TypeDoc() TypeDoc      { return r.kind.TypeDoc() }

func (r *Result) Attr(name string) (starlark.Value, error) {
	for i, m := range r.kind.Members {
		if m.Name == name {
			return r.values[i], nil
		}
	}
	return nil, nil
}

func (r *Result) AttrNames() []string {
	var names []string
	for _, m := range r.kind.Members {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

func (r *Result) Facts() []Fact {
	var out []Fact
	for i, m := range r.kind.Members {
		out = append(out, Fact{Name: m.Name, Value: r.values[i], Code: m.Long})
	}
	return out
}

// Display returns the parts, one in each line. A type with another text embeds Result
// and has its own Display, which uses the Go value.
func (r *Result) Display() string { return Aligned(r.Facts()) }

func (t *ResultType) TypeDoc() TypeDoc {
	d := TypeDoc{Name: t.Name, Doc: t.Doc, Schema: schemaName(t.Name, t.Version)}
	for _, m := range t.Members {
		d.Members = append(d.Members, MemberDoc{Name: m.Name, Doc: m.Doc, Type: m.Type, Column: true, Words: m.Words})
	}
	return d
}

// List returns a list of the results of the function of for each element.
func List[T any](list []T, of func(T) starlark.Value) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, x := range list {
		values[i] = of(x)
	}
	return starlark.NewList(values)
}

// Texts returns a list of strings.
func Texts(list []string) *starlark.List {
	return List(list, func(s string) starlark.Value { return starlark.String(s) })
}

// Integers returns a list of ints.
func Integers[T ~int | ~int64 | ~uint16](list []T) *starlark.List {
	return List(list, func(n T) starlark.Value { return starlark.MakeInt64(int64(n)) })
}

// DictOf returns a dict; pairs are names and values in turn.
func DictOf(pairs ...any) *starlark.Dict {
	d := starlark.NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		d.SetKey(starlark.String(pairs[i].(string)), pairs[i+1].(starlark.Value))
	}
	return d
}

// OrNone returns v if it is known, else None.
func OrNone(known bool, v starlark.Value) starlark.Value {
	if known {
		return v
	}
	return starlark.None
}

// TextOrNone returns a string, or None for an empty one, which means unknown.
func TextOrNone(s string) starlark.Value { return OrNone(s != "", starlark.String(s)) }
