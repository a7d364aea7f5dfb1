package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/graph"
)

// GraphPathType is the type of the elements of what graph.paths() returns.
var GraphPathType = &lang.ResultType{
	Name: "graph_path",
	Doc:  "A path between two switches, independent of the tables.",
	Members: []lang.ResultMember{
		{Name: "cost", Doc: "its links, or the sum of their weights"},
		{Name: "ports", Type: "list of port", Doc: "its outgoing ports, one of each switch but the last"},
	},
}

// pathsMethod is graph.paths(): k shortest paths.
var pathsMethod = lang.Builtin{
	Name:    "paths",
	Returns: "list of graph_path",
	Params: []lang.Param{
		{Name: "s", Kind: lang.KindAny, Doc: "a switch"},
		{Name: "d", Kind: lang.KindAny, Doc: "another"},
		{Name: "k", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "number of paths, 1..10000"},
	},
	Doc: `Returns the k cheapest paths from switch s to switch d that visit no switch twice, cheapest first: a list of graph_path.
The list is shorter if fewer exist. Parallel links make different paths. A link costs its weight (default: 1).`,
	Example: `
> g = discover().graph()
> ways = g.paths("leaf-1", "leaf-2", k=5)
> [w.cost for w in ways]
[2, 2, 2, 2, 4]
> [p.name for p in ways[0].ports]
["leaf-1/5", "spine-1/2"]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		S, D starlark.Value
		K    int
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		s, d, err := v.switchesOf(a.S, a.D)
		if err != nil {
			return nil, err
		}
		if a.K < 1 || a.K > graph.MaxPaths {
			return nil, lang.ParamError("k", "got %d, want 1..%d", a.K, graph.MaxPaths)
		}
		found, err := graph.ShortestPaths(c.Fiber().Context, v.g, s, d, a.K)
		if err != nil {
			return nil, computeError(c, err)
		}
		list := make([]starlark.Value, len(found))
		for i, p := range found {
			ports := make([]starlark.Value, len(p.Channels))
			for j, ch := range p.Channels {
				ports[j] = topology.PortOf(v.g.ChannelPort(int(ch)))
			}
			list[i] = lang.NewResult(GraphPathType, starlark.MakeInt(p.Cost), starlark.NewList(ports))
		}
		return starlark.NewList(list), nil
	}),
}
