package datagrams

import (
	"bytes"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
)

// tableKind is the kind of one of the whole tables, for scripts.
type tableKind struct {
	*lang.Type[*wholeTable]
	table *device.TableKind
	// port returns the port of the table, from the argument port and the target;
	// device.NoPortNumber for tables of nodes.
	port func(c *lang.Call, port *int, t *topology.Target) (int, error)
	// index returns the entry of a key; -1: it is beyond the table.
	index func(v *wholeTable, key starlark.Value) (int, error)
	size  func(t *device.Table) int
	entry func(t *device.Table, i int) starlark.Value // None: an empty entry
	// key returns what iteration yields; nil: the entries.
	key func(t *device.Table, i int) starlark.Value
	// within means that `in` searches for an entry, not for a key.
	within bool
	// bytes returns the data by which tables are compared.
	bytes   func(t *device.Table) []byte
	repr    func(v *wholeTable) string
	display func(v *wholeTable) string
}

// wholeTable is a result of get_lft and similar functions: a table as it was read. It
// never changes.
type wholeTable struct {
	kind *tableKind
	t    *device.Table
	of   records.Origin
	set  bool // it is the result of a function that changes it
	// planned means that the change was recorded, not sent.
	planned bool
}

var (
	_ starlark.Mapping    = (*wholeTable)(nil)
	_ starlark.Sequence   = (*wholeTable)(nil)
	_ starlark.Container  = (*wholeTable)(nil)
	_ starlark.Comparable = (*wholeTable)(nil)
	_ lang.Factual        = (*wholeTable)(nil)
	_ lang.Changed        = (*wholeTable)(nil)
)

func (v *wholeTable) String() string        { return v.kind.Name + "(" + v.kind.repr(v) + ")" }
func (v *wholeTable) Type() string          { return v.kind.Name }
func (v *wholeTable) Freeze()               {}
func (v *wholeTable) Truth() starlark.Bool  { return true }
func (v *wholeTable) Hash() (uint32, error) { return lang.HashBytes(v.kind.bytes(v.t)), nil }
func (v *wholeTable) Len() int              { return v.kind.size(v.t) }
func (v *wholeTable) AttrNames() []string   { return v.kind.Names }
func (v *wholeTable) TypeDoc() lang.TypeDoc { return v.kind.TypeDoc() }
func (v *wholeTable) Schema() string        { return v.kind.Type.Schema() }
func (v *wholeTable) Facts() []lang.Fact    { return v.kind.Type.Facts(v) }
func (v *wholeTable) Display() string       { return v.kind.display(v) }

func (v *wholeTable) Attr(name string) (starlark.Value, error) { return v.kind.Attr(v, name) }

// Changes returns a line for each entry that changed, as many as are described.
func (v *wholeTable) Changes() []string {
	if !v.set {
		return nil
	}
	label := records.ChangeLabel(&v.of, v.planned)
	if v.t.ChangedRows == 0 {
		return []string{label + "unchanged"}
	}
	var lines []string
	for _, c := range v.t.Changed {
		lines = append(lines, label+c.Row+": "+c.Before+" -> "+c.After)
	}
	if n := v.t.ChangedRows - len(lines); n > 0 {
		lines = append(lines, fmt.Sprintf("%s%d more changed", label, n))
	}
	return lines
}

// CompareSameType is only called for values of the same Type.
func (v *wholeTable) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	return records.CompareEqual(op, v, bytes.Equal(v.kind.bytes(v.t), v.kind.bytes(y.(*wholeTable).t)))
}

// Get is table[key]; None also beyond the table.
func (v *wholeTable) Get(key starlark.Value) (starlark.Value, bool, error) {
	i, err := v.kind.index(v, key)
	if err != nil {
		return nil, false, err
	}
	if i < 0 || i >= v.Len() {
		return starlark.None, true, nil
	}
	return v.kind.entry(v.t, i), true, nil
}

// Has is `key in table`: it reports whether the entry is not None, or, for a table
// without keys, whether an entry equals key.
func (v *wholeTable) Has(key starlark.Value) (bool, error) {
	if v.kind.within {
		for i := range v.Len() {
			if equal, err := starlark.Equal(v.kind.entry(v.t, i), key); equal || err != nil {
				return equal && key != starlark.None, err
			}
		}
		return false, nil
	}
	entry, _, err := v.Get(key)
	return err == nil && entry != starlark.None, err
}

func (v *wholeTable) Iterate() starlark.Iterator { return &tableIterator{v: v} }

// tableIterator yields the keys of a table, or its entries if it has no keys.
type tableIterator struct {
	v    *wholeTable
	next int
}

func (it *tableIterator) Next(x *starlark.Value) bool {
	if it.next == it.v.Len() {
		return false
	}
	of := it.v.kind.entry
	if it.v.kind.key != nil {
		of = it.v.kind.key
	}
	*x = of(it.v.t, it.next)
	it.next++
	return true
}

func (it *tableIterator) Done() {}

// placed returns the entries that are not None, by their keys.
func (v *wholeTable) placed(key func(i int) starlark.Int) *starlark.Dict {
	var at []int
	var entries []starlark.Value
	for i := range v.Len() {
		if x := v.kind.entry(v.t, i); x != starlark.None {
			at, entries = append(at, i), append(entries, x)
		}
	}
	d := starlark.NewDict(len(at)) // most tables are long and mostly empty
	for k, i := range at {
		d.SetKey(key(i), entries[k])
	}
	return d
}

// placedKeys returns the keys of the entries that are not None.
func (v *wholeTable) placedKeys(key func(i int) starlark.Int) starlark.Value {
	var keys starlark.Tuple
	for i := range v.Len() {
		if v.kind.entry(v.t, i) != starlark.None {
			keys = append(keys, key(i))
		}
	}
	return keys
}

// position returns the row of a key that counts from 0.
func (v *wholeTable) position(key starlark.Value, what string) (int, error) {
	i, err := lang.ToInt(key)
	switch {
	case err != nil:
		return 0, fmt.Errorf("a table is indexed by %s: %w", what, err)
	case i < 0 || i >= v.Len():
		return 0, fmt.Errorf("index %d is out of range; the table has %s", i, plural.Count(v.Len(), "entry", "entries"))
	}
	return i, nil
}
