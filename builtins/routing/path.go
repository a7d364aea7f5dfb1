package routing

import (
	"fmt"
	"io"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// PathType is the type of the result of routes.trace().
var PathType = &lang.ResultType{
	Name: "path",
	Doc:  "The path of packets from one LID to another. It is a sequence of its ports: p[0], p[-1].",
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

// Index returns a port.
func (x *pathValue) Index(i int) starlark.Value { return x.list().Index(i) }

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
		return PathValue(p), nil
	}),
}

// PathValue returns the value of a path.
func PathValue(p *routes.Path) starlark.Value {
	g := p.Graph()
	var ports, vls []starlark.Value
	for _, q := range p.Ports() {
		ports = append(ports, topology.PortOf(q))
	}
	for _, h := range p.Hops {
		vls = append(vls, starlark.MakeInt(int(h.VL)))
	}
	return &pathValue{p: p, Result: lang.NewResult(PathType, topology.PortOf(g.Terminals()[p.From].Port), starlark.MakeInt(int(p.LID)), starlark.Bool(p.Broken == ""),
		lang.TextOrNone(p.Broken), starlark.MakeInt(int(p.SL)), starlark.NewList(vls), starlark.NewList(ports), stepsValue(g, p))}
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
	Name:      "graph_path",
	Doc:       "A path between two switches, independent of the tables.",
	Important: []string{"ports", "cost"},
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

// hopsValue is the value `hops`: distances between switches, in links or weights.
type hopsValue struct {
	h     *graph.Hops
	graph *graphValue
}

var (
	_ starlark.Mapping  = (*hopsValue)(nil)
	_ starlark.HasAttrs = (*hopsValue)(nil)
	_ lang.Documented   = (*hopsValue)(nil)
)

// HopsType is the type of distances.
var HopsType *lang.Type[*hopsValue]

func init() {
	HopsType = lang.NewType("hops", "The distances of all switches from all others: hops[s, d], None without a path.",
		lang.Member[*hopsValue]{Name: "graph", Type: "graph", Doc: "the graph", Get: func(v *hopsValue) starlark.Value { return v.graph }},
		lang.Member[*hopsValue]{Name: "max", Doc: "the largest distance", Get: func(v *hopsValue) starlark.Value { return starlark.MakeInt(v.h.Max()) }},
		lang.Member[*hopsValue]{Method: &nextMethod},
	)
}

func (v *hopsValue) String() string                           { return fmt.Sprintf("hops(of %s)", v.graph) }
func (v *hopsValue) Type() string                             { return "hops" }
func (v *hopsValue) Freeze()                                  {}
func (v *hopsValue) Truth() starlark.Bool                     { return true }
func (v *hopsValue) Hash() (uint32, error)                    { return 0, lang.Unhashable(v) }
func (v *hopsValue) AttrNames() []string                      { return HopsType.Names }
func (v *hopsValue) TypeDoc() lang.TypeDoc                    { return HopsType.TypeDoc() }
func (v *hopsValue) Attr(name string) (starlark.Value, error) { return HopsType.Attr(v, name) }

// Get is hops[s, d].
func (v *hopsValue) Get(key starlark.Value) (starlark.Value, bool, error) {
	pair, ok := key.(starlark.Tuple)
	if !ok || len(pair) != 2 {
		return nil, false, fmt.Errorf("distances are indexed by two switches: hops[s, d]")
	}
	s, err := v.graph.switchOf(pair[0])
	if err != nil {
		return nil, false, err
	}
	d, err := v.graph.switchOf(pair[1])
	if err != nil {
		return nil, false, err
	}
	if n := v.h.Distance(s, d); n >= 0 {
		return starlark.MakeInt(n), true, nil
	}
	return starlark.None, true, nil
}

// hopsMethod is graph.hops(): the distances between all switches.
var hopsMethod = lang.Builtin{
	Name:    "hops",
	Returns: "hops",
	Doc: `Returns the distances of all switches from all others: hops.
They count links, or, where these have weights, the weights.`,
	Example: `
> g = discover().graph()
> h = g.hops()
> h[g.switches[0], g.switches[1]], h.max
(2, 2)
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		h, err := graph.AllHops(c.Fiber().Context, v.g)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	}),
}

// nextMethod is hops.next(): the next hops of a switch to another.
var nextMethod = lang.Builtin{
	Name: "next",
	Params: []lang.Param{
		{Name: "s", Kind: lang.KindAny, Doc: "a switch"},
		{Name: "d", Kind: lang.KindAny, Doc: "another"},
	},
	Doc: "Returns the ports of switch s that lead one step nearer to switch d, in order of preference.",
	Example: `
> g = discover().graph()
> len(g.hops().next(g.switches[0], g.switches[1]))
4
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ S, D starlark.Value }) (starlark.Value, error) {
		v := c.Recv.(*hopsValue)
		s, d, err := v.graph.switchesOf(a.S, a.D)
		if err != nil {
			return nil, err
		}
		n := v.graph.g.Switches()[s]
		var list []starlark.Value
		for _, p := range v.h.Next(s, d) {
			list = append(list, topology.PortOf(n.Port(int(p))))
		}
		return starlark.NewList(list), nil
	}),
}

// dijkstraMethod is graph.dijkstra(): least-cost paths to one switch.
var dijkstraMethod = lang.Builtin{
	Name:    "dijkstra",
	Returns: "hops",
	Params: []lang.Param{
		{Name: "to", Kind: lang.KindAny, Doc: "a switch"},
		{Name: "weights", Kind: kindDict("a dict of port to number"), Default: "None", Doc: "a dict of port to the cost of its outgoing link, at least 0 (default: 1)"},
	},
	Doc: `Finds the cheapest path from every switch to one.
It returns a dict of switch to the cost of its path and the first port of the path, the lowest of equal ones. The dict omits switches without a path, and the switch itself.`,
	Example: `
> g = discover().graph()
> ways = g.dijkstra(g.switches[0], weights={g.switches[1].ports[5]: 10})
> ways[g.switches[1]]
(2, port("leaf-2/6", 0x0002c90300100010))
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		To      starlark.Value
		Weights *starlark.Dict
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		to, err := v.switchOf(a.To)
		if err != nil {
			return nil, lang.ParamError("to", "%w", err)
		}
		weight, err := channelWeights(v.g, a.Weights, 1)
		if err != nil {
			return nil, lang.ParamError("weights", "%w", err)
		}
		cost, via, err := graph.Dijkstra(v.g, to, weight)
		if err != nil {
			return nil, computeError(c, err)
		}
		ways := starlark.NewDict(len(cost))
		for s, ch := range via {
			if ch >= 0 {
				ways.SetKey(topology.NodeOf(v.g.Switches()[s]), starlark.Tuple{starlark.MakeInt64(cost[s]), topology.PortOf(v.g.ChannelPort(int(ch)))})
			}
		}
		return ways, nil
	}),
}

// channelWeights returns the weights of all channels, by number, from a dict of port to
// weight: the channel is the one out of the port. Channels that are not in it, and all if
// d is nil, have the weight usual. Ports without a link in the graph are ignored.
func channelWeights(g *graph.Graph, d *starlark.Dict, usual int64) ([]int64, error) {
	weight := slices.Repeat([]int64{usual}, len(g.Channels()))
	if d == nil {
		return weight, nil
	}
	for _, kv := range d.Items() {
		p, ok := kv[0].(topology.Port)
		if !ok {
			return nil, fmt.Errorf("got a key of type %s, want port", kv[0].Type())
		}
		w, err := lang.ToInt(kv[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Label(), err)
		}
		if ch := g.ChannelOf(p.Port); ch >= 0 {
			weight[ch] = int64(w)
		}
	}
	return weight, nil
}

// ReadHopsMethod is fabric.read_hops(). Rows of one switch are side by side in the
// file.
var ReadHopsMethod = lang.Builtin{
	Name:   "read_hops",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file: opensm-lid-matrix.dump"}},
	Doc: `Reads the distances of LIDs from switches: a dict of switch to a dict of LID to hops.
The hops are a tuple by port number, None if a port does not lead there; element 0 is the smallest number.`,
	Example: `
> f = load_fabric("net.topo")
> f.read_hops("opensm-lid-matrix.dump")[f.switches[0]][2]
(1, None, 1)
`,
	Run: lang.Do(func(c *lang.Call, a *pathArg) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric).Fabric
		out := new(starlark.Dict)
		err := a.read(c, func(r io.Reader) error {
			var of mad.GUID
			var rows *starlark.Dict
			for row, err := range format.HopRows(&format.Capture{Reader: r, Note: func(text string) { c.Fiber().Warn("%s", text) }}, a.Path) {
				if err != nil {
					return err
				}
				if rows == nil || row.GUID != of {
					n, err := row.Find(f)
					if err != nil {
						return err
					}
					of, rows = row.GUID, new(starlark.Dict)
					out.SetKey(topology.NodeOf(n), rows)
				}
				rows.SetKey(starlark.MakeInt(int(row.LID)), hopsByPort(row.Hops))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	}),
}

// hopsByPort returns numbers of hops by port of a switch, None without a path. Element 0
// is the smallest number.
func hopsByPort(row []byte) starlark.Tuple {
	hops := make(starlark.Tuple, len(row))
	for i, h := range row {
		if hops[i] = starlark.MakeInt(int(h)); h == format.NoPath {
			hops[i] = starlark.None
		}
	}
	return hops
}
