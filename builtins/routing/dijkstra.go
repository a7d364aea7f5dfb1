package routing

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/graph"
)

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
