package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// rowValue is the value `row`: the table of one switch of routes. Writing to it changes the
// routes.
type rowValue struct {
	of *Routes
	s  int // the switch's number in the graph
}

// entries returns the entries by LID from 0, for reading.
func (r *rowValue) entries() routes.Row { return r.of.Tables.Row(r.s) }

// writable returns the entries by LID from 0, for writing.
func (r *rowValue) writable() routes.Row { return r.of.Tables.EditRow(r.s) }

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
	r.writable()[i] = p
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

// fillMethod is row.fill(): one port for many LIDs.
var fillMethod = lang.Builtin{
	Name: "fill",
	Params: []lang.Param{
		{Name: "lids", Kind: kindLIDs, Doc: "LIDs, or ports or nodes, which stand for their LIDs"},
		{Name: "port", Kind: lang.KindAny, Doc: "a port number, a port, or None to drop"},
	},
	Doc: "Assigns one port to many LIDs.\nLIDs after the end of the table are ignored.",
	Example: `
> g = discover().graph(); r = g.routes()[g.switches[0]]
> r.fill([20, 21], 3)
> r[19:22]
[None, 3, 3]
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		LIDs []mad.LID
		Port starlark.Value
	}) (starlark.Value, error) {
		p, err := r.port(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		r.writable().Fill(a.LIDs, p)
		return starlark.None, nil
	}),
}

// fillModMethod is row.fill_mod(): ports in turn, as in d-mod-k.
var fillModMethod = lang.Builtin{
	Name: "fill_mod",
	Params: []lang.Param{
		{Name: "lids", Kind: kindLIDs, Doc: "LIDs, or ports or nodes, which stand for their LIDs; their order counts"},
		{Name: "ports", Kind: lang.KindItems, Doc: "port numbers, or ports"},
		{Name: "div", Kind: lang.KindInt, Default: "1", Doc: "how many LIDs in a row get the same port"},
	},
	Doc: "Assigns ports to LIDs in turn: the i-th gets ports[i // div % len(ports)].\nThat is d-mod-k: div is the weight of the switch's digit.",
	Example: `
> g = discover().graph(); r = g.routes()[g.switches[0]]
> r.fill_mod([20, 21, 22, 23], [5, 6], div=2)
> r[20:24]
[5, 5, 6, 6]
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		LIDs  []mad.LID
		Ports []starlark.Value
		Div   int
	}) (starlark.Value, error) {
		ports := make([]uint8, len(a.Ports))
		for i, v := range a.Ports {
			var err error
			if ports[i], err = r.port(v); err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
		}
		if len(ports) == 0 {
			return nil, lang.ParamError("ports", "must not be empty")
		}
		if a.Div < 1 {
			return nil, lang.ParamError("div", "got %d, want at least 1", a.Div)
		}
		r.writable().FillMod(a.LIDs, ports, a.Div)
		return starlark.None, nil
	}),
}

// copyMethod is row.copy(): the entries of another row.
var copyMethod = lang.Builtin{
	Name: "copy",
	Params: []lang.Param{
		{Name: "other", Kind: kindRow, Doc: "a row"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Doc: "only these (default: all)"},
	},
	Doc: "Copies the entries of another row.",
	Example: `
> g = discover().graph(); t = g.routes(); s = g.switches[0]
> t[s].copy(g.route("minhop")[s], [20])
> t.entries
1
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		Other *rowValue
		LIDs  []mad.LID
	}) (starlark.Value, error) {
		r.writable().Copy(a.Other.entries(), a.LIDs)
		return starlark.None, nil
	}),
}

// mapMethod is row.map(): ports replaced by others.
var mapMethod = lang.Builtin{
	Name: "map",
	Params: []lang.Param{
		{Name: "ports", Kind: kindDict("dict"), Doc: "a dict of port to its replacement"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Doc: "only these (default: all)"},
	},
	Doc: "Replaces ports by others, in many entries.",
	Example: `
> g = discover().graph(); r = g.route("minhop")[g.switches[0]]
> before = r[20]
> r.map({before: 8})
> r[20]
8
`,
	Run: editing(func(c *lang.Call, r *rowValue, a *struct {
		Ports *starlark.Dict
		LIDs  []mad.LID
	}) (starlark.Value, error) {
		ports := map[uint8]uint8{}
		for _, kv := range a.Ports.Items() {
			from, err := r.port(kv[0])
			if err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
			if ports[from], err = r.port(kv[1]); err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
		}
		r.writable().Map(ports, a.LIDs)
		return starlark.None, nil
	}),
}
