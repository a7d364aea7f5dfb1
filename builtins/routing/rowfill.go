package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad"
)

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
		r.own().Fill(a.LIDs, p)
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
		r.own().FillMod(a.LIDs, ports, a.Div)
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
		r.own().Copy(a.Other.entries(), a.LIDs)
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
		r.own().Map(ports, a.LIDs)
		return starlark.None, nil
	}),
}
