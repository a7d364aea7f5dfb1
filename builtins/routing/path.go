package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// PathType is the type of the result of routes.trace().
var PathType = &lang.ResultType{
	Name: "path",
	Doc:  "The path of packets from one LID to another. It iterates over its ports.",
	Members: []lang.ResultMember{
		{Name: "source", Type: "port", Doc: "the first port"},
		{Name: "lid", Type: "int", Doc: "destination"},
		{Name: "ok", Doc: "True if packets arrive, whatever switches choose"},
		{Name: "broken", Type: "string", Doc: "the reason why they do not arrive, or None"},
		{Name: "sl", Type: "int", Doc: "service level"},
		{Name: "vls", Doc: "virtual lanes, on the links out of its switches"},
		{Name: "ports", Type: "list of port", Doc: "all ports on it, in order; where switches choose, those by static ports", Long: true},
		{Name: "steps", Type: "list", Doc: "where switches choose, all switches that packets may pass, a list for each number of links crossed: dicts of switch, in_port, ports, state and static; else empty", Long: true},
	},
}

// pathValue is the value `path`; its text has one port in each line.
type pathValue struct {
	*lang.Result
	p *routes.Path
}

// Len returns the number of its ports.
func (x *pathValue) Len() int { return x.list().Len() }

func (x *pathValue) Iterate() starlark.Iterator { return x.list().Iterate() }

func (x *pathValue) list() *starlark.List {
	ports, _ := x.Attr("ports")
	return ports.(*starlark.List)
}

// Display writes the ports on the path, or the ports that switches choose from, then why it ends.
func (x *pathValue) Display() string { return x.p.String() }

// traceMethod is routes.trace(): one path, hop by hop.
var traceMethod = lang.Builtin{
	Name:    "trace",
	Returns: "path",
	Params: []lang.Param{
		{Name: "source", Kind: topology.KindTarget, Doc: "a LID, a port or node with a LID, or a name or GUID of one"},
		{Name: "destination", Kind: topology.KindTarget, Doc: "another"},
	},
	Doc: "Follows packets from one LID to another through the tables: a path.\nIf packets do not arrive, it has the reason. Where switches choose among ports, it shows all switches that packets may pass, with their ports, and marks static parts.",
	Example: `
> discover().graph().route("ftree").trace(13, 20)
node-0001 HCA-1/1
leaf-1/1
leaf-1/8
spine-4/1
spine-4/2
leaf-2/8
leaf-2/4
node-0008 HCA-1/1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Source, Destination starlark.Value }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		source, err := firstLID(v.graph.g.Fabric(), a.Source)
		if err != nil {
			return nil, lang.ParamError("source", "%w", err)
		}
		destination, err := firstLID(v.graph.g.Fabric(), a.Destination)
		if err != nil {
			return nil, lang.ParamError("destination", "%w", err)
		}
		p, err := v.Tables.Trace(source, destination)
		if err != nil {
			return nil, computeError(c, err)
		}
		var ports, vls []starlark.Value
		for _, q := range p.Ports() {
			ports = append(ports, topology.PortOf(q))
		}
		for _, h := range p.Hops {
			vls = append(vls, starlark.MakeInt(int(h.VL)))
		}
		return &pathValue{p: p, Result: lang.NewResult(PathType, topology.PortOf(v.graph.g.Terminals()[p.From].Port), starlark.MakeInt(int(p.LID)), starlark.Bool(p.Broken == ""),
			lang.TextOrNone(p.Broken), starlark.MakeInt(int(p.SL)), starlark.NewList(vls), starlark.NewList(ports), stepsValue(v.graph.g, p))}, nil
	}),
}

// stepsValue returns the switches that packets may pass, step by step, with the ports that each
// chooses from.
func stepsValue(g *graph.Graph, p *routes.Path) *starlark.List {
	var steps []starlark.Value
	for _, step := range p.Steps {
		var list []starlark.Value
		for i := range step {
			s := &step[i]
			var static starlark.Value = starlark.None
			if s.Port != routes.NoPort {
				static = starlark.MakeInt(int(s.Port))
			}
			list = append(list, lang.DictOf("switch", starlark.String(g.Switches()[s.Switch].Name()), "in_port", starlark.MakeInt(int(s.In)), "ports", portNumbers(s.Ports), "state", starlark.String(s.State.String()), "static", static))
		}
		steps = append(steps, starlark.NewList(list))
	}
	return starlark.NewList(steps)
}

// firstLID returns the LID of an end of a path: the first LID of a port or node, which a name
// in f may stand for.
func firstLID(f *fabric.Fabric, v starlark.Value) (mad.LID, error) {
	if name, ok := starlark.AsString(v); ok {
		t := topology.FindIn(f, name)
		if t.Err == nil {
			t.Err = t.NeedsLID()
		}
		return t.LID, t.Err
	}
	return lidOf(v)
}

// GraphPathType is the type of the elements of the result of graph.paths().
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
