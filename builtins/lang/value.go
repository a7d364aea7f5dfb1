package lang

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// Fact is a named part of a value in its encoded and displayed form.
type Fact struct {
	Name  string
	Value starlark.Value
	Hex   int  // number of hexadecimal digits in text; 0: decimal
	Code  bool // the number of a word: in JSON and CSV, not in text
	Rank  int  // a table that is too wide keeps the lowest; 0: neither declared as important nor as minor
}

// Factual is a value that encodes and displays as named facts.
type Factual interface {
	starlark.Value
	// Schema returns name and version of the encoding: "node/1". A change that breaks
	// readers increments the version.
	Schema() string
	Facts() []Fact
}

// Member is an attribute or a method of a type of values.
type Member[T any] struct {
	Name   string
	Doc    string
	Type   string                 // of an attribute's value, for completion: "list of port"; empty: not declared
	Get    func(T) starlark.Value // of an attribute; never does I/O
	Words  []string               // possible words of an attribute, if they are fixed
	Column bool                   // in tables and JSON
	Method *Builtin               // of a method, with its own doc
}

// Type is a type of values: its attributes and methods, with their help.
type Type[T Object] struct {
	Name    string
	doc     string
	version int // of the schema; 0 means 1
	members []Member[T]
	ranks   map[string]int // of the members that Important names
	index   map[string]int
	Names   []string
}

// NewType returns a new type of values.
func NewType[T Object](name, doc string, members ...Member[T]) *Type[T] {
	t := &Type[T]{Name: name, doc: doc, members: members, index: make(map[string]int, len(members))}
	for i := range members {
		m := &members[i]
		if m.Method != nil {
			m.Name, m.Doc = m.Method.Name, m.Method.Summary()
		}
		t.index[m.Name] = i
		t.Names = append(t.Names, m.Name)
	}
	slices.Sort(t.Names)
	return t
}

// AtVersion sets the version of the schema of the type's values.
func (t *Type[T]) AtVersion(version int) *Type[T] {
	t.version = version
	return t
}

// Important declares the columns that a table of such values keeps where it is too wide, the
// most important first. The first column is always kept.
func (t *Type[T]) Important(names ...string) *Type[T] {
	t.ranks = ranksOf(names)
	return t
}

// ranksOf returns the ranks of columns, the most important first: all are below 0.
func ranksOf(names []string) map[string]int {
	ranks := make(map[string]int, len(names))
	for i, name := range names {
		ranks[name] = i - len(names)
	}
	return ranks
}

// Schema returns the name of the schema in the JSON of the type's values: "port/2".
func (t *Type[T]) Schema() string { return schemaName(t.Name, t.version) }

func schemaName(name string, version int) string { return fmt.Sprintf("%s/%d", name, max(version, 1)) }

// AddMethods adds methods of another vocabulary. It is for init functions.
func (t *Type[T]) AddMethods(methods ...*Builtin) {
	for _, b := range methods {
		t.index[b.Name] = len(t.members)
		t.Names = append(t.Names, b.Name)
		t.members = append(t.members, Member[T]{Name: b.Name, Doc: b.Summary(), Method: b})
	}
	slices.Sort(t.Names)
}

// Attr implements Attr of a value; for (nil, nil) the interpreter suggests a name.
func (t *Type[T]) Attr(v T, name string) (starlark.Value, error) {
	i, ok := t.index[name]
	if !ok {
		return nil, nil
	}
	if m := t.members[i].Method; m != nil {
		return &Function{Builtin: m, Recv: v}, nil
	}
	return t.members[i].Get(v), nil
}

// Facts returns the columns of a value, in the order of their declaration.
func (t *Type[T]) Facts(v T) []Fact {
	var out []Fact
	for _, m := range t.members {
		if !m.Column {
			continue
		}
		x := m.Get(v)
		if n, ok := x.(Named); ok {
			x = starlark.String(n.Name())
		}
		out = append(out, Fact{Name: m.Name, Value: x, Rank: t.ranks[m.Name]})
	}
	return out
}

// TypeDoc returns the help of the type.
func (t *Type[T]) TypeDoc() TypeDoc {
	d := TypeDoc{Name: t.Name, Doc: t.doc}
	for _, m := range t.members {
		if m.Column {
			d.Schema = t.Schema()
		}
		md := MemberDoc{Name: m.Name, Doc: m.Doc, Type: m.Type, Words: m.Words, Column: m.Column, Method: m.Method}
		if m.Method != nil {
			md.Name = m.Method.Signature()
		}
		d.Members = append(d.Members, md)
	}
	return d
}

// Named is a value with a name, which stands for it within other values.
type Named interface {
	starlark.Value
	Name() string
}

// Object is a value with attributes and methods that help can describe.
type Object interface {
	starlark.HasAttrs
	Documented
}

// Textual is a value that encodes as a string.
type Textual interface {
	starlark.Value
	Text() string
}

// Brief returns the repr of a value, cut if it is long, for messages.
func Brief(v starlark.Value) string {
	text := []rune(v.String())
	if len(text) > 60 {
		return string(text[:57]) + "..."
	}
	return string(text)
}

// Unhashable returns the error of Hash for a value that cannot be a key.
func Unhashable(v starlark.Value) error { return fmt.Errorf("unhashable type: %s", v.Type()) }

// HashBytes returns a hash that does not change between runs.
func HashBytes(data []byte) uint32 {
	h := fnv.New32a()
	h.Write(data)
	return h.Sum32()
}

// ResultType is the type of the result of a computation, which has only named parts.
type ResultType struct {
	Name    string
	Doc     string
	Version int // of the schema; 0 means 1
	Members []ResultMember
	// Important names the columns that a table of such results keeps where it is too wide, the
	// most important first. The first column is always kept.
	Important []string
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
	ranks := ranksOf(r.kind.Important)
	for i, m := range r.kind.Members {
		out = append(out, Fact{Name: m.Name, Value: r.values[i], Code: m.Long, Rank: ranks[m.Name]})
	}
	return out
}

// Display returns the parts, one in each line. A type with another text embeds Result
// and has its own Display, which uses the Go value.
func (r *Result) Display() string { return Aligned(r.Facts()) }

// TypeDoc returns the help of the type.
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

// Elements returns the parts of v that become rows or lines: the elements of a list, or v
// itself.
func Elements(v starlark.Value) []starlark.Value {
	switch v := v.(type) {
	case *tableValue:
		return v.elements()
	case Factual, starlark.IterableMapping:
		return []starlark.Value{v}
	case starlark.Iterable:
		if tooMany(starlark.Len(v)) == nil {
			return Collect(v)
		}
	}
	return []starlark.Value{v}
}

// ColumnsOf returns the names of the facts of all rows, in the order of their first
// occurrence.
func ColumnsOf(rows [][]Fact) []string {
	var names []string
	seen := map[string]bool{}
	for _, row := range rows {
		for _, f := range row {
			if !seen[f.Name] {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// FactsOf returns the facts of a value of fabsh or of a dict; false: v has none.
func FactsOf(v starlark.Value) ([]Fact, bool) {
	switch v := v.(type) {
	case Factual:
		return v.Facts(), true
	case starlark.IterableMapping:
		var out []Fact
		for _, kv := range v.Items() {
			name, ok := keyText(kv[0])
			if !ok {
				return nil, false
			}
			out = append(out, Fact{Name: name, Value: kv[1]})
		}
		return out, true
	}
	return nil, false
}

// findFact returns the fact with a name; its value is None if the row lacks it.
func findFact(row []Fact, name string) Fact {
	if i := slices.IndexFunc(row, func(f Fact) bool { return f.Name == name }); i >= 0 {
		return row[i]
	}
	return Fact{Name: name, Value: starlark.None}
}

// keyText returns a dict's key as a name. LIDs and ports are common keys, but JSON
// and headings have only strings.
func keyText(k starlark.Value) (string, bool) {
	switch k := k.(type) {
	case starlark.String:
		return string(k), true
	case starlark.Int:
		return k.String(), true
	}
	return "", false
}

// joinWords joins a tuple of strings; false: t has other elements.
func joinWords(t starlark.Tuple, sep string) (string, bool) {
	words := make([]string, len(t))
	for i, v := range t {
		s, ok := starlark.AsString(v)
		if !ok {
			return "", false
		}
		words[i] = s
	}
	return strings.Join(words, sep), true
}
