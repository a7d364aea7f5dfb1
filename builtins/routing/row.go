package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// rowValue is the value `row`: the table of one switch, within routes. Writing to it
// changes these.
type rowValue struct {
	of      *Routes
	s       int // switch
	entries routing.Row
}

var (
	_ starlark.HasSetIndex = (*rowValue)(nil)
	_ starlark.Sliceable   = (*rowValue)(nil)
	_ starlark.Sequence    = (*rowValue)(nil)
	_ starlark.HasAttrs    = (*rowValue)(nil)
	_ lang.Factual         = (*rowValue)(nil)
	_ lang.Documented      = (*rowValue)(nil)
)

var RowType *lang.Type[*rowValue]

func init() {
	RowType = lang.NewType("row", "The table of one switch, within routes: row[lid] is a port, None if the LID is dropped; row[lid] = port changes it, row[a:b] is a list, and it iterates over the entries from LID 0 on.",
		lang.Member[*rowValue]{Name: "switch", Doc: "whose it is", Get: func(r *rowValue) starlark.Value { return topology.NodeOf(r.of.R.Graph().Switches()[r.s]) }},
		lang.Member[*rowValue]{Method: &fillMethod},
		lang.Member[*rowValue]{Method: &fillModMethod},
		lang.Member[*rowValue]{Method: &copyMethod},
		lang.Member[*rowValue]{Method: &mapMethod},
	)
}

func (r *rowValue) String() string {
	return fmt.Sprintf("row(%q, %d LIDs)", r.of.R.Graph().Switches()[r.s].Name(), len(r.entries)-1)
}
func (r *rowValue) Type() string          { return "row" }
func (r *rowValue) Freeze()               { r.of.Freeze() }
func (r *rowValue) Truth() starlark.Bool  { return true }
func (r *rowValue) Hash() (uint32, error) { return 0, lang.Unhashable(r) }
func (r *rowValue) Len() int              { return len(r.entries) }
func (r *rowValue) AttrNames() []string   { return RowType.Names }
func (r *rowValue) TypeDoc() lang.TypeDoc { return RowType.TypeDoc() }
func (r *rowValue) Schema() string        { return "row/1" }

func (r *rowValue) Attr(name string) (starlark.Value, error) { return RowType.Attr(r, name) }
func (r *rowValue) Index(i int) starlark.Value               { return topology.EntryValue(r.entries[i]) }
func (r *rowValue) Iterate() starlark.Iterator               { return &rowIterator{entries: r.entries} }

func (r *rowValue) Slice(start, end, step int) starlark.Value {
	var list []starlark.Value
	for i := start; step > 0 && i < end || step < 0 && i > end; i += step {
		list = append(list, r.Index(i))
	}
	return starlark.NewList(list)
}

func (r *rowValue) SetIndex(i int, v starlark.Value) error {
	if err := r.of.checkMutable(); err != nil {
		return err
	}
	p, err := r.port(v)
	if err != nil {
		return fmt.Errorf("LID %d: %w", i, err)
	}
	r.entries[i] = p
	return nil
}

type rowIterator struct{ entries []byte }

func (it *rowIterator) Next(v *starlark.Value) bool {
	if len(it.entries) == 0 {
		return false
	}
	*v = topology.EntryValue(it.entries[0])
	it.entries = it.entries[1:]
	return true
}

func (it *rowIterator) Done() {}

func (r *rowValue) Facts() []lang.Fact {
	n := r.of.R.Graph().Switches()[r.s]
	return append([]lang.Fact{{Name: "switch", Value: starlark.String(n.Name())}, {Name: "guid", Value: topology.GUIDValue(n.GUID())}}, topology.LFTFacts(r.entries)...)
}

func (r *rowValue) Display() string { return topology.LFTText(r.entries) }

// Port is a port that the switch has, or None.
func (r *rowValue) port(v starlark.Value) (uint8, error) {
	if v == starlark.None {
		return routing.NoPort, nil
	}
	if p, ok := v.(topology.Port); ok {
		v = starlark.MakeInt(p.Num())
	}
	n, err := lang.ToInt(v)
	if err != nil {
		return 0, fmt.Errorf("a port: %w", err)
	}
	if sw := r.of.R.Graph().Switches()[r.s]; n < 0 || n > sw.NumPorts() {
		return 0, topology.NoPort(sw, v.String())
	}
	return uint8(n), nil
}

// lidsOf are LIDs of a list: as ints, or those of ports and nodes.
func lidsOf(c *lang.Call, param string, items []starlark.Value) ([]mad.LID, error) {
	lids := make([]mad.LID, 0, len(items))
	for i, v := range items {
		switch v := v.(type) {
		case topology.Node:
			if v.LID() != 0 {
				lids = append(lids, v.LID())
			}
		case topology.Port:
			for j := range 1 << v.LMC() {
				if v.LID() != 0 {
					lids = append(lids, v.LID()+mad.LID(j))
				}
			}
		default:
			n, err := lang.ToInt(v)
			if err != nil {
				return nil, lang.ParamError(param, "element %d: got %s, want a LID, a port or a node", i, v.Type())
			}
			if n < 0 || n > int(mad.MaxUnicastLID) {
				return nil, lang.ParamError(param, "element %d: LID %d is out of range, 0..%d", i, n, mad.MaxUnicastLID)
			}
			lids = append(lids, mad.LID(n))
		}
	}
	return lids, nil
}

// optionalLIDs is lids, nil where the parameter was not given.
func optionalLIDs(c *lang.Call, param string) ([]mad.LID, error) {
	if !c.Has(param) {
		return nil, nil
	}
	return lidsOf(c, param, c.Items(param))
}

var fillMethod = lang.Builtin{
	Name: "fill",
	Params: []lang.Param{
		{Name: "lids", Kind: lang.KindItems, Doc: "LIDs, or ports or nodes, whose LIDs are meant"},
		{Name: "port", Kind: lang.KindAny, Doc: "a port number, a port, or None to drop"},
	},
	Doc: "Gives many LIDs one port.\nLIDs beyond the table's end are left out.",
	Example: `
> g = discover().graph(); r = g.routes()[g.switches[0]]
> r.fill([20, 21], 3)
> r[19:22]
[None, 3, 3]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		r := c.Recv.(*rowValue)
		if err := r.of.checkMutable(); err != nil {
			return nil, fmt.Errorf("fill: %w", err)
		}
		lids, err := lidsOf(c, "lids", c.Items("lids"))
		if err != nil {
			return nil, err
		}
		p, err := r.port(c.Value("port"))
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		r.entries.Fill(lids, p)
		return starlark.None, nil
	}),
}

var fillModMethod = lang.Builtin{
	Name: "fill_mod",
	Params: []lang.Param{
		{Name: "lids", Kind: lang.KindItems, Doc: "LIDs, or ports or nodes, whose LIDs are meant; their order counts"},
		{Name: "ports", Kind: lang.KindItems, Doc: "port numbers, or ports"},
		{Name: "div", Kind: lang.KindInt, Default: "1", Doc: "how many LIDs in a row get the same port"},
	},
	Doc: "Deals ports to LIDs by their places: the i-th gets ports[i // div % len(ports)].\nThat is d-mod-k: div is the weight of the digit that the switch goes by.",
	Example: `
> g = discover().graph(); r = g.routes()[g.switches[0]]
> r.fill_mod([20, 21, 22, 23], [5, 6], div=2)
> r[20:24]
[5, 5, 6, 6]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		r := c.Recv.(*rowValue)
		if err := r.of.checkMutable(); err != nil {
			return nil, fmt.Errorf("fill_mod: %w", err)
		}
		lids, err := lidsOf(c, "lids", c.Items("lids"))
		if err != nil {
			return nil, err
		}
		var ports []uint8
		for _, v := range c.Items("ports") {
			p, err := r.port(v)
			if err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
			ports = append(ports, p)
		}
		if len(ports) == 0 {
			return nil, lang.ParamError("ports", "it is empty")
		}
		if c.Int("div") < 1 {
			return nil, lang.ParamError("div", "got %d, want at least 1", c.Int("div"))
		}
		r.entries.FillMod(lids, ports, c.Int("div"))
		return starlark.None, nil
	}),
}

var copyMethod = lang.Builtin{
	Name: "copy",
	Params: []lang.Param{
		{Name: "other", Kind: lang.KindAny, Doc: "a row"},
		{Name: "lids", Kind: lang.KindItems, Default: "None", Doc: "only these; else all"},
	},
	Doc: "Takes over the entries of another row.",
	Example: `
> g = discover().graph(); t = g.routes(); s = g.switches[0]
> t[s].copy(g.route("minhop")[s], [20])
> t.entries
1
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		r := c.Recv.(*rowValue)
		if err := r.of.checkMutable(); err != nil {
			return nil, fmt.Errorf("copy: %w", err)
		}
		from, ok := c.Value("other").(*rowValue)
		if !ok {
			return nil, lang.ParamError("other", "got %s, want row", c.Value("other").Type())
		}
		lids, err := optionalLIDs(c, "lids")
		if err != nil {
			return nil, err
		}
		r.entries.Copy(from.entries, lids)
		return starlark.None, nil
	}),
}

var mapMethod = lang.Builtin{
	Name: "map",
	Params: []lang.Param{
		{Name: "ports", Kind: lang.KindAny, Doc: "a dict of port to the port that takes its place"},
		{Name: "lids", Kind: lang.KindItems, Default: "None", Doc: "only these; else all"},
	},
	Doc: "Puts one port in place of another, in many entries.",
	Example: `
> g = discover().graph(); r = g.route("minhop")[g.switches[0]]
> before = r[20]
> r.map({before: 8})
> r[20]
8
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		r := c.Recv.(*rowValue)
		if err := r.of.checkMutable(); err != nil {
			return nil, fmt.Errorf("map: %w", err)
		}
		d, ok := c.Value("ports").(*starlark.Dict)
		if !ok {
			return nil, lang.ParamError("ports", "got %s, want dict", c.Value("ports").Type())
		}
		ports := map[uint8]uint8{}
		for _, kv := range d.Items() {
			from, err := r.port(kv[0])
			if err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
			if ports[from], err = r.port(kv[1]); err != nil {
				return nil, lang.ParamError("ports", "%w", err)
			}
		}
		lids, err := optionalLIDs(c, "lids")
		if err != nil {
			return nil, err
		}
		r.entries.Map(ports, lids)
		return starlark.None, nil
	}),
}
