package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/routes"
)

// rowValue is the value `row`: the table of one switch, within routes: writing to it
// changes them.
type rowValue struct {
	of *Routes
	s  int // the switch's number in the graph
}

// entries returns the entries by LID from 0, for reading; own, for writing.
func (r *rowValue) entries() routes.Row { return r.of.Tables.Row(r.s) }
func (r *rowValue) own() routes.Row     { return r.of.Tables.EditRow(r.s) }

// Linear returns the entries, for set_lft.
func (r *rowValue) Linear() []uint8 { return r.entries() }

var (
	_ starlark.HasSetIndex = (*rowValue)(nil)
	_ starlark.Sliceable   = (*rowValue)(nil)
	_ starlark.Sequence    = (*rowValue)(nil)
	_ starlark.HasAttrs    = (*rowValue)(nil)
	_ lang.Factual         = (*rowValue)(nil)
	_ lang.Documented      = (*rowValue)(nil)
)

// RowType is the type of rows.
var RowType *lang.Type[*rowValue]

func init() {
	RowType = lang.NewType("row", "The table of one switch, within routes: row[lid] is a port, None if the LID is dropped; row[lid] = port changes it, row[a:b] is a list, and it iterates over the entries from LID 0 on.",
		lang.Member[*rowValue]{Name: "switch", Type: "node", Column: true, Doc: "the switch", Get: func(r *rowValue) starlark.Value { return topology.NodeOf(r.node()) }},
		lang.Member[*rowValue]{Name: "guid", Type: "string", Column: true, Doc: "the switch's GUID", Get: func(r *rowValue) starlark.Value { return topology.GUIDValue(r.node().GUID()) }},
		lang.Member[*rowValue]{Name: "top", Column: true, Doc: "the last LID", Get: func(r *rowValue) starlark.Value { return starlark.MakeInt(len(r.entries()) - 1) }},
		lang.Member[*rowValue]{Name: "ports", Type: "dict", Column: true, Doc: "a dict of LID to port, of the LIDs that have one", Get: func(r *rowValue) starlark.Value { return topology.LFTPorts(r.entries()) }},
		lang.Member[*rowValue]{Name: "lids", Type: "dict", Doc: "the inverse: a dict of port to the list of its LIDs, ports in the order of their first LID", Get: func(r *rowValue) starlark.Value { return topology.LFTLIDs(r.entries()) }},
		lang.Member[*rowValue]{Name: "used_ports", Type: "list", Doc: "the ports in use, in order", Get: func(r *rowValue) starlark.Value { return topology.LFTUsed(r.entries()) }},
		lang.Member[*rowValue]{Method: &fillMethod},
		lang.Member[*rowValue]{Method: &fillModMethod},
		lang.Member[*rowValue]{Method: &copyMethod},
		lang.Member[*rowValue]{Method: &mapMethod},
	)
}

// node returns the switch.
func (r *rowValue) node() *fabric.Node { return r.of.Tables.Graph().Switches()[r.s] }

func (r *rowValue) String() string {
	return fmt.Sprintf("row(%q, %d LIDs)", r.node().Name(), len(r.entries())-1)
}

func (r *rowValue) Type() string                             { return "row" }
func (r *rowValue) Freeze()                                  { r.of.Freeze() }
func (r *rowValue) Truth() starlark.Bool                     { return true }
func (r *rowValue) Hash() (uint32, error)                    { return 0, lang.Unhashable(r) }
func (r *rowValue) Len() int                                 { return len(r.entries()) }
func (r *rowValue) AttrNames() []string                      { return RowType.Names }
func (r *rowValue) TypeDoc() lang.TypeDoc                    { return RowType.TypeDoc() }
func (r *rowValue) Schema() string                           { return RowType.Schema() }
func (r *rowValue) Attr(name string) (starlark.Value, error) { return RowType.Attr(r, name) }
func (r *rowValue) Index(i int) starlark.Value               { return topology.LFTEntry(r.entries()[i]) }
func (r *rowValue) Iterate() starlark.Iterator               { return &rowIterator{entries: r.entries()} }

func (r *rowValue) Slice(start, end, step int) starlark.Value {
	var list []starlark.Value
	for i := start; step > 0 && i < end || step < 0 && i > end; i += step {
		list = append(list, r.Index(i))
	}
	return starlark.NewList(list)
}

func (r *rowValue) SetIndex(i int, v starlark.Value) error {
	if err := r.checkMutable(); err != nil {
		return err
	}
	p, err := r.port(v)
	if err != nil {
		return fmt.Errorf("LID %d: %w", i, err)
	}
	r.own()[i] = p
	return nil
}

func (r *rowValue) checkMutable() error { return r.of.checkMutable() }

// rowIterator goes through the entries, LID by LID.
type rowIterator struct{ entries []byte }

func (it *rowIterator) Next(v *starlark.Value) bool {
	if len(it.entries) == 0 {
		return false
	}
	*v = topology.LFTEntry(it.entries[0])
	it.entries = it.entries[1:]
	return true
}

func (it *rowIterator) Done() {}

func (r *rowValue) Facts() []lang.Fact { return RowType.Facts(r) }

func (r *rowValue) Display() string { return topology.LFTText(r.entries()) }

// port returns the entry for v: a port, the number of a port of the switch (0: itself), or
// None to drop.
func (r *rowValue) port(v starlark.Value) (uint8, error) {
	if v == starlark.None {
		return routes.NoPort, nil
	}
	if p, ok := v.(topology.Port); ok {
		v = starlark.MakeInt(p.Num())
	}
	n, err := lang.ToInt(v)
	if err != nil {
		return 0, fmt.Errorf("a port: %w", err)
	}
	if sw := r.of.Tables.Graph().Switches()[r.s]; n < 0 || n > sw.NumPorts() {
		return 0, topology.NoSuchPort(sw, v.String())
	}
	return uint8(n), nil
}
