package routing

import (
	"fmt"
	"io"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

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
