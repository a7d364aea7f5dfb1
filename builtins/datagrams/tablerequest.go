package datagrams

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
)

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
		know(c, &targets[i], t)
	}
	open := reached(tables)
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
	open := reached(tables)
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

// know gives a table that is only read the attributes that an audit's sweep has just read
// from the node, so that they are not read again.
func know(c *lang.Call, at *topology.Target, t *device.Table) {
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

// nodesTable returns the port of tables that exist once for each node: none.
func nodesTable(*lang.Call, *int, *topology.Target) (int, error) { return device.NoPortNumber, nil }

// endPortsTable returns the port of tables that exist for each end port: a switch is one
// end port, a CA has one for each of its ports.
func endPortsTable(c *lang.Call, _ *int, t *topology.Target) (int, error) {
	if t.Node != nil && !t.Node.IsSwitch() {
		return t.Port, nil
	}
	return device.NoPortNumber, nil
}

// anyPortsTable returns the named port, if any.
func anyPortsTable(c *lang.Call, port *int, t *topology.Target) (int, error) {
	if port == nil && t.Port == topology.NoPortGiven {
		return device.NoPortNumber, nil
	}
	return portOf(c, nil, port, t)
}

// portsTable returns the named port, which is required for a switch; a CA without one
// means the port that receives the request.
func portsTable(c *lang.Call, port *int, t *topology.Target) (int, error) {
	if t.Node != nil && t.Node.IsSwitch() {
		return portOf(c, nil, port, t)
	}
	return anyPortsTable(c, port, t)
}

// reached returns the tables whose targets can be reached.
func reached(tables []*device.Table) (open []*device.Table) {
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
