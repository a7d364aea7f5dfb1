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

// PathType is the type of what routes.trace() returns.
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

// Display writes the ports on the path, or what switches choose from, then why it ends.
func (x *pathValue) Display() string {
	return x.p.String()
}

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

// stepsValue returns what switches on the path choose from.
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

// firstLID returns the LID of an end of a path: the first of a port or node, which a name
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
