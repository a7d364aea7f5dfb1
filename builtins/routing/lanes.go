package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// layerMethod is routes.layer(): virtual lanes for any tables.
var layerMethod = lang.Builtin{
	Name:    "layer",
	Returns: "int",
	Params: []lang.Param{
		{Name: "max_vls", Kind: lang.KindInt, Default: "8", Keyword: true, Doc: "maximum number of virtual lanes, 1..15"},
		{Name: "effort", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "how long to search, as a multiple of the default, which is some seconds, 1..1000"},
	},
	Doc: `Assigns service levels to the paths between CAs and routers, each with a virtual lane of its own, so that there is no credit loop; returns the number of lanes used.
The tables do not change: paths are moved to another lane where they close a cycle of dependencies. Paths from one switch to a LID are on one lane. If one lane is enough, all paths have SL 0. It is an error if max_vls lanes are not enough.`,
	Example: `
> t = discover().graph().route("minhop")
> t.layer()
1
> t.verify().ok, t.lanes
(True, 1)
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct{ MaxVLs, Effort int }) (starlark.Value, error) {
		if a.MaxVLs < 1 || a.MaxVLs > lanes.Max {
			return nil, lang.ParamError("max_vls", "got %d, want 1..%d", a.MaxVLs, lanes.Max)
		}
		if a.Effort < 1 || a.Effort > engines.MaxEffort {
			return nil, lang.ParamError("effort", "got %d, want 1..%d", a.Effort, engines.MaxEffort)
		}
		if err := engines.Layer(c.Fiber().Context, v.Tables, a.MaxVLs, a.Effort); err != nil {
			return nil, computeError(c, err)
		}
		return starlark.MakeInt(v.Tables.Lanes()), nil
	}),
}

// setSLMethod is routes.set_sl(): the service levels of single paths.
var setSLMethod = lang.Builtin{
	Name: "set_sl",
	Params: []lang.Param{
		{Name: "pairs", Kind: lang.KindItems, Doc: "pairs of source and destination: LIDs, ports or nodes, or None for all"},
		{Name: "sl", Kind: lang.KindInt, Doc: "the service level, 0..15"},
	},
	Doc: `Assigns a service level to the paths of pairs.
Without set_sl2vl() or layer() before, service level n is on virtual lane n.`,
	Example: `
> t = discover().graph().route("ftree")
> t.set_sl([("node-0001 HCA-1", 14), (None, 15)], 2)
> t.trace(13, 14).sl, t.trace(20, 15).sl, t.trace(14, 13).sl, t.lanes
(2, 2, 0, 3)
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct {
		Pairs []starlark.Value
		SL    int
	}) (starlark.Value, error) {
		if a.SL < 0 || a.SL > 15 {
			return nil, lang.ParamError("sl", "got %d, want 0..15", a.SL)
		}
		type pair struct {
			from []int
			to   []mad.LID
		}
		var pairs []pair
		for i, item := range a.Pairs {
			two, ok := item.(starlark.Indexable)
			if !ok || two.Len() != 2 {
				return nil, lang.ParamError("pairs", "element %d: got %s, want a pair of LIDs, ports or nodes", i, item.Type())
			}
			from, err := v.endsOf(two.Index(0))
			if err != nil {
				return nil, lang.ParamError("pairs", "element %d: %w", i, err)
			}
			to, err := v.endsOf(two.Index(1))
			if err != nil {
				return nil, lang.ParamError("pairs", "element %d: %w", i, err)
			}
			p := pair{to: to}
			for _, lid := range from {
				p.from = append(p.from, v.graph.g.TerminalByLID(lid))
			}
			pairs = append(pairs, p)
		}
		for _, p := range pairs {
			if err := v.Tables.SetSL(p.from, p.to, uint8(a.SL)); err != nil {
				return nil, lang.Errorf("%w", err)
			}
		}
		return starlark.None, nil
	}),
}

// endsOf returns the LIDs of an end of a pair, which is a LID, a port or a node; all LIDs if it is
// None. Each belongs to a terminal.
func (v *Routes) endsOf(x starlark.Value) ([]mad.LID, error) {
	if x == starlark.None {
		return v.graph.g.LIDs(0), nil
	}
	if name, ok := starlark.AsString(x); ok {
		n, err := v.graph.g.Fabric().FindNode(name)
		if err != nil {
			return nil, err
		}
		x = topology.NodeOf(n)
	}
	lids, err := lidsOf([]starlark.Value{x})
	if err != nil {
		return nil, err
	}
	for _, lid := range lids {
		if v.graph.g.TerminalByLID(lid) < 0 {
			return nil, fmt.Errorf("no port has LID %d", lid)
		}
	}
	return lids, nil
}

// setSL2VLMethod is routes.set_sl2vl(): the virtual lanes of service levels.
var setSL2VLMethod = lang.Builtin{
	Name: "set_sl2vl",
	Params: []lang.Param{
		{Name: "vls", Kind: lang.KindItems, Doc: "the virtual lanes of the service levels from 0 up, 0..14, or None for one that is dropped; service levels beyond its end are unchanged"},
		{Name: "switch", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the switch: a node, a GUID or a name (default: all)"},
		{Name: "in_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "for packets that come in through this port, 0: from the switch itself (default: any)"},
		{Name: "out_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "for packets that leave through this port (default: any)"},
	},
	Doc: `Sets the virtual lanes of service levels in these routes. It changes no switch; set_sl2vl(target, ...) does.
Without it service level n is on virtual lane n.`,
	Example: `
> t = discover().graph().route("ftree")
> t.set_sl([(13, 16)], 1)
> t.set_sl2vl([0, 5])
> t.trace(13, 16).vls
[5]
`,
	Run: editing(func(c *lang.Call, v *Routes, a *sl2vlArgs) (starlark.Value, error) {
		vls, err := a.lanes()
		if err != nil {
			return nil, err
		}
		switches := v.graph.g.Switches()
		first, last := 0, len(switches)-1
		if a.Switch != starlark.None && a.Switch != nil {
			if first, err = v.graph.switchOf(a.Switch); err != nil {
				return nil, lang.ParamError("switch", "%w", err)
			}
			last = first
		}
		for s := first; s <= last; s++ {
			for _, p := range []struct {
				name string
				num  *int
				min  int
			}{{"in_port", a.InPort, 0}, {"out_port", a.OutPort, 1}} {
				if n := switches[s].NumPorts(); p.num != nil && (*p.num < p.min || *p.num > n) {
					return nil, lang.ParamError(p.name, "%s has ports from 1 to %d, not %d", switches[s].Label(), n, *p.num)
				}
			}
		}
		if v.Tables.SL2VL == nil {
			v.Tables.SL2VL = routes.NewSL2VL(v.graph.g)
		}
		for s := first; s <= last; s++ {
			n := switches[s].NumPorts()
			for in := 0; in <= n; in++ {
				for out := 1; out <= n; out++ {
					if a.InPort != nil && *a.InPort != in || a.OutPort != nil && *a.OutPort != out {
						continue
					}
					var all [16]uint8
					for sl := range all {
						if all[sl] = v.Tables.SL2VL.VL(s, uint8(in), uint8(out), uint8(sl)); sl < len(vls) {
							all[sl] = vls[sl]
						}
					}
					if err := v.Tables.SL2VL.Set(s, uint8(in), uint8(out), all); err != nil {
						return nil, lang.Errorf("%w", err)
					}
				}
			}
		}
		return starlark.None, nil
	}),
}

// sl2vlArgs are the arguments of set_sl2vl; a nil port was not given.
type sl2vlArgs struct {
	VLs             []starlark.Value
	Switch          starlark.Value
	InPort, OutPort *int
}

// lanes returns the virtual lanes of vls.
func (a *sl2vlArgs) lanes() ([]uint8, error) {
	if len(a.VLs) > 16 {
		return nil, lang.ParamError("vls", "got %d virtual lanes; there are 16 service levels", len(a.VLs))
	}
	vls := make([]uint8, len(a.VLs))
	for sl, item := range a.VLs {
		if item == starlark.None {
			vls[sl] = mad.DropVL
			continue
		}
		vl, err := lang.ToInt(item)
		if err != nil || vl < 0 || vl >= mad.DropVL {
			return nil, lang.ParamError("vls", "element %d: got %s, want a virtual lane, 0..%d, or None", sl, item, mad.DropVL-1)
		}
		vls[sl] = uint8(vl)
	}
	return vls, nil
}
