package datagrams

import (
	"bytes"
	"context"
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

// CompareSameType is only called for values of one Type.
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

// entriesByKey returns the entries that are not None, by their keys.
func (v *wholeTable) entriesByKey(key func(i int) starlark.Int) *starlark.Dict {
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

// usedKeys returns the keys of the entries that are not None.
func (v *wholeTable) usedKeys(key func(i int) starlark.Int) starlark.Value {
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

// portArgs are the arguments that name a node or port.
type portArgs struct {
	Target starlark.Value
	Port   *int
}

// nodeTableArgs are the arguments of set_lft and other functions for tables without a
// port.
type nodeTableArgs struct{ Target, Table starlark.Value }

// portTableArgs are the arguments of set_pkeys and other functions for tables of ports.
type portTableArgs struct {
	portArgs
	Table starlark.Value
}

// portOfTable is the parameter port for tables of ports.
var portOfTable = lang.Param{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the target is a switch"}

// get implements get_lft and similar functions.
func (k *tableKind) get(c *lang.Call, a *portArgs) (starlark.Value, error) {
	e, err := topology.ReaderOf(c)
	if err != nil {
		return nil, err
	}
	targets, tables, many, err := k.tables(c, a)
	if err != nil {
		return nil, err
	}
	for i, t := range tables {
		useSweptAttributes(c, &targets[i], t)
	}
	open := reachableTables(tables)
	if err := c.Block(func(ctx context.Context) error { return device.ReadTables(ctx, e, open...) }); err != nil {
		return nil, err
	}
	return k.results(c, targets, tables, many, false)
}

// set implements set_lft and similar functions. edit applies the requested change to a
// table.
func (k *tableKind) set(c *lang.Call, a *portArgs, edit func(t *device.Table)) (starlark.Value, error) {
	targets, tables, many, err := k.tables(c, a)
	if err != nil {
		return nil, err
	}
	e, err := topology.MayChange(c, k.table.Attr)
	if err != nil {
		return nil, err
	}
	open := reachableTables(tables)
	for _, t := range open {
		edit(t)
	}
	if err := topology.Change(c, func(ctx context.Context) error { return device.WriteTables(ctx, e, open...) }); err != nil {
		return nil, err
	}
	return k.results(c, targets, tables, many, true)
}

// tables returns the tables of the targets; Err is set for a target that cannot be
// reached.
func (k *tableKind) tables(c *lang.Call, a *portArgs) (targets []topology.Target, tables []*device.Table, many bool, err error) {
	targets, many, err = (&topology.Resolver{Call: c}).Targets(a.Target)
	if err != nil {
		return nil, nil, many, err
	}
	tables = make([]*device.Table, len(targets))
	for i := range targets {
		t := &targets[i]
		x := &device.Table{Kind: k.table, Dest: t.Dest(), GUID: t.GUID()}
		if x.Port, err = k.port(c, a.Port, t); err != nil {
			return nil, nil, many, err
		}
		if x.Err = t.Reachable(); x.Err == nil && t.Node != nil {
			x.Err = k.table.Fits(t.Node.Type())
		}
		tables[i] = x
	}
	return targets, tables, many, nil
}

// useSweptAttributes gives a table that is only read the attributes that an audit's sweep has just read
// from the node, so that they are not read again.
func useSweptAttributes(c *lang.Call, at *topology.Target, t *device.Table) {
	n := at.Node
	if n == nil || n.Route() == nil || !topology.JustSwept(c, n.Fabric()) {
		return
	}
	switch info := n.Info(); {
	case n.IsSwitch() && n.SwitchInfo() != nil:
		t.Known, t.Node, t.Switch = true, *info, *n.SwitchInfo()
	case !n.IsSwitch() && (t.Port == device.NoPortNumber || t.Port == int(info.LocalPortNum)): // otherwise another port answers
		t.Known, t.Node = true, *info
	}
}

// nodeTablePort returns the port of tables that exist once for each node: none.
func nodeTablePort(*lang.Call, *int, *topology.Target) (int, error) { return device.NoPortNumber, nil }

// endPortTablePort returns the port of tables that exist for each end port: a switch is one
// end port, a CA has one for each of its ports.
func endPortTablePort(c *lang.Call, _ *int, t *topology.Target) (int, error) {
	if t.Node != nil && !t.Node.IsSwitch() {
		return t.Port, nil
	}
	return device.NoPortNumber, nil
}

// optionalTablePort returns the named port, if any.
func optionalTablePort(c *lang.Call, port *int, t *topology.Target) (int, error) {
	if port == nil && t.Port == topology.NoPortGiven {
		return device.NoPortNumber, nil
	}
	return portOf(c, nil, port, t)
}

// requiredTablePort returns the named port, which is required for a switch; a CA without one
// means the port that receives the request.
func requiredTablePort(c *lang.Call, port *int, t *topology.Target) (int, error) {
	if t.Node != nil && t.Node.IsSwitch() {
		return portOf(c, nil, port, t)
	}
	return optionalTablePort(c, port, t)
}

// reachableTables returns the tables whose targets can be reached.
func reachableTables(tables []*device.Table) (open []*device.Table) {
	for _, t := range tables {
		if t.Err == nil {
			open = append(open, t)
		}
	}
	return open
}

// results returns the result of the builtin; set: it changes the tables.
func (k *tableKind) results(c *lang.Call, targets []topology.Target, tables []*device.Table, many, set bool) (starlark.Value, error) {
	values := make([]starlark.Value, len(tables))
	for i, t := range tables {
		if t.Err != nil {
			values[i] = topology.Failed(c, &targets[i], t.Err)
		} else {
			values[i] = &wholeTable{kind: k, t: t, of: targets[i].Origin(t.Port), set: set, planned: topology.Planning(c)}
		}
	}
	topology.Observe(c, k.table.Attr, targets, values)
	return topology.Results(values, many)
}

// tableEntries converts the argument table: a dict, whose keys are numbers of what, or all
// entries from the first, which replace the table.
func tableEntries(table starlark.Value, what, want string, first int, add func(key int, value starlark.Value, replace bool) error) (replace bool, err error) {
	switch v := table.(type) {
	case *starlark.Dict:
		for _, kv := range v.Items() {
			key, err := lang.ToInt(kv[0])
			if err != nil {
				return false, lang.ParamError("table", "a %s: %w", what, err)
			}
			if err := add(key, kv[1], false); err != nil {
				return false, lang.ParamError("table", "%w", err)
			}
		}
		return false, nil
	case starlark.Iterable:
		i := first
		for value := range starlark.Elements(v) {
			if err := add(i, value, true); err != nil {
				return false, lang.ParamError("table", "%w", err)
			}
			i++
		}
		return true, nil
	default:
		return false, lang.ParamError("table", "got %s, want %s", v.Type(), want)
	}
}
