package builtins

import (
	"fmt"
	"hash/fnv"
	"slices"

	"go.starlark.net/starlark"
)

// fact is one named part of a value as it is encoded and displayed.
type fact struct {
	name  string
	value starlark.Value
	hex   int  // digits, where people write the number in hexadecimal; 0: decimal
	code  bool // the number beside a word: in JSON and CSV, not in text
}

// factual is a value that encodes and displays as named facts.
type factual interface {
	starlark.Value
	// schema is name and version of the encoding: "node/1". A change that
	// breaks readers raises the version.
	schema() string
	facts() []fact
}

// member is an attribute or a method of a type of values.
type member[T any] struct {
	name   string
	doc    string
	get    func(T) starlark.Value // an attribute: no I/O, ever
	method *Builtin               // or a method; doc is its own
}

// valueType is a type of values: its attributes and methods, with what help
// says of them.
type valueType[T starlark.Value] struct {
	name    string
	doc     string
	members []member[T]
	index   map[string]int
	names   []string
}

func newType[T starlark.Value](name, doc string, members ...member[T]) *valueType[T] {
	t := &valueType[T]{name: name, doc: doc, members: members, index: make(map[string]int, len(members))}
	for i := range members {
		m := &members[i]
		if m.method != nil {
			m.name, m.doc = m.method.Name, m.method.Summary()
		}
		t.index[m.name] = i
		t.names = append(t.names, m.name)
	}
	slices.Sort(t.names)
	return t
}

// add gives the type methods of another vocabulary. It is for init functions.
func (t *valueType[T]) add(methods ...*Builtin) {
	for _, b := range methods {
		t.index[b.Name] = len(t.members)
		t.names = append(t.names, b.Name)
		t.members = append(t.members, member[T]{name: b.Name, doc: b.Summary(), method: b})
	}
	slices.Sort(t.names)
}

// attr implements Attr; (nil, nil) makes the interpreter say what was meant.
func (t *valueType[T]) attr(v T, name string) (starlark.Value, error) {
	i, ok := t.index[name]
	if !ok {
		return nil, nil
	}
	if m := t.members[i].method; m != nil {
		return &function{Builtin: m, recv: v}, nil
	}
	return t.members[i].get(v), nil
}

// documented is a value that help can describe.
type documented interface{ typeDoc() typeDoc }

// typeDoc is what help says of a type.
type typeDoc struct {
	name    string
	doc     string
	members []memberDoc
}

type memberDoc struct {
	name   string // of a method: its signature
	doc    string
	method *Builtin
}

func (m *memberDoc) shortName() string {
	if m.method != nil {
		return m.method.Name
	}
	return m.name
}

func (t *valueType[T]) typeDoc() typeDoc {
	d := typeDoc{name: t.name, doc: t.doc}
	for _, m := range t.members {
		md := memberDoc{name: m.name, doc: m.doc, method: m.method}
		if m.method != nil {
			md.name = m.method.Signature()
		}
		d.members = append(d.members, md)
	}
	return d
}

// brief is a value in a message: its repr, cut where it is long.
func brief(v starlark.Value) string {
	text := []rune(v.String())
	if len(text) > 60 {
		return string(text[:57]) + "..."
	}
	return string(text)
}

// unhashable is the error of Hash where a value may not be a key.
func unhashable(v starlark.Value) error { return fmt.Errorf("unhashable type: %s", v.Type()) }

// hashBytes is the same in every run.
func hashBytes(data []byte) uint32 {
	h := fnv.New32a()
	h.Write(data)
	return h.Sum32()
}
