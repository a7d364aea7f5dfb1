package lang

import (
	"fmt"
	"hash/fnv"
	"slices"

	"go.starlark.net/starlark"
)

// Fact is a named part of a value in its encoded and displayed form.
type Fact struct {
	Name  string
	Value starlark.Value
	Hex   int  // number of hexadecimal digits in text; 0: decimal
	Code  bool // the number of a word: in JSON and CSV, not in text
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

// Object is a value with attributes and methods that help can describe.
type Object interface {
	starlark.HasAttrs
	Documented
}

// Type is a type of values: its attributes and methods, with their help.
type Type[T Object] struct {
	Name    string
	doc     string
	version int // of the schema; 0 means 1
	members []Member[T]
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

// Named is a value with a name, which stands for it within other values.
type Named interface {
	starlark.Value
	Name() string
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
		out = append(out, Fact{Name: m.Name, Value: x})
	}
	return out
}

// Documented is a value that help can describe.
type Documented interface{ TypeDoc() TypeDoc }

// TypeDoc is the help of a type.
type TypeDoc struct {
	Name    string
	Doc     string
	Schema  string // of the JSON of its values; "": none
	Members []MemberDoc
}

// MemberDoc is the help of an attribute or a method.
type MemberDoc struct {
	Name   string // of a method, its signature
	Doc    string
	Type   string   // of an attribute, if declared
	Words  []string // possible words of an attribute, if they are fixed
	Column bool     // in tables and JSON
	Method *Builtin
}

// ShortName returns the name without the signature.
func (m *MemberDoc) ShortName() string {
	if m.Method != nil {
		return m.Method.Name
	}
	return m.Name
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

// HashBytes returns a hash that is the same in every run.
func HashBytes(data []byte) uint32 {
	h := fnv.New32a()
	h.Write(data)
	return h.Sum32()
}
