package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// HostsDiffType is the type of what routes.diff() returns.
var DiffType = &lang.ResultType{
	Name: "routes_diff",
	Doc:  "The changes of tables from one routes to another.",
	Members: []lang.ResultMember{
		{Name: "switches", Doc: "number of switches whose tables change"},
		{Name: "entries", Doc: "number of entries, with another static port or other choices of adaptive routing"},
		{Name: "blocks", Doc: "number of blocks of 64 entries to write"},
		{Name: "lids", Doc: "LIDs whose entries change on some switch", Long: true},
		{Name: "by_switch", Doc: "for each of these switches its name, GUID, entries and the numbers of its blocks", Long: true},
		{Name: "choices", Doc: "number of entries with other choices of adaptive routing", Long: true},
	},
}

// diffMethod is routes.diff(): the entries and blocks that differ from other tables.
var diffMethod = lang.Builtin{
	Name:    "diff",
	Returns: "routes_diff",
	Params:  []lang.Param{{Name: "other", Kind: kindRoutes, Doc: "the earlier routes, for example from get_routes()"}},
	Doc: `Compares the tables with earlier ones: the changes from other to these.
Switches are matched by GUID, so the fabrics may be different snapshots.`,
	Example: `
> f = discover(); t = f.graph().route("ftree"); u = t.clone()
> u[f.switches[0]][20] = None
> u.diff(t)
switches  1
entries   1
blocks    1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Other *routes.Routes }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		return wrapDiff(v.graph.g, v.Tables.Diff(a.Other)), nil
	}),
}

// wrapDiff returns d as a value for scripts; g is the graph of the newer tables.
func wrapDiff(g *graph.Graph, d *routes.Diff) *lang.Result {
	var bySwitch []starlark.Value
	for _, sd := range d.Switches {
		n := g.Switches()[sd.Switch]
		row := starlark.NewDict(4)
		row.SetKey(starlark.String("switch"), starlark.String(n.Name()))
		row.SetKey(starlark.String("guid"), topology.GUIDValue(n.GUID()))
		row.SetKey(starlark.String("entries"), starlark.MakeInt(sd.Entries))
		row.SetKey(starlark.String("blocks"), lang.Integers(sd.Blocks))
		bySwitch = append(bySwitch, row)
	}
	return lang.NewResult(DiffType, starlark.MakeInt(len(d.Switches)), starlark.MakeInt(d.Entries), starlark.MakeInt(d.Blocks), lang.Integers(d.LIDs), starlark.NewList(bySwitch), starlark.MakeInt(d.Choices))
}
