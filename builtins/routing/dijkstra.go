package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing"
)

var dijkstraMethod = lang.Builtin{
	Name: "dijkstra",
	Params: []lang.Param{
		{Name: "to", Kind: lang.KindAny, Doc: "a switch"},
		{Name: "weights", Kind: lang.KindAny, Default: "None", Doc: "a dict of port to what the way out of it costs, at least 0; 1 where it is not in it"},
	},
	Doc: `Finds the cheapest way from every switch to one.
It returns a dict of switch to what its way costs and the port that it begins with, the lowest of equal ones. Switches that have no way are not in it, nor is the switch itself.`,
	Example: `
> g = discover().graph()
> ways = g.dijkstra(g.switches[0], weights={g.switches[1].ports[5]: 10})
> ways[g.switches[1]]
(2, port("leaf-2/6", 0x0002c90300100010))
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		to, err := v.switchOf(c.Value("to"))
		if err != nil {
			return nil, lang.ParamError("to", "%w", err)
		}
		weight, err := channelWeights(c, v.g, 1)
		if err != nil {
			return nil, err
		}
		cost, via, err := v.g.Dijkstra(to, weight)
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

// channelWeights are those of the parameter weights, by channel; usual where
// it does not say.
func channelWeights(c *lang.Call, g *routing.Graph, usual int64) ([]int64, error) {
	weight := make([]int64, len(g.Channels()))
	for i := range weight {
		weight[i] = usual
	}
	if !c.Has("weights") {
		return weight, nil
	}
	d, ok := c.Value("weights").(*starlark.Dict)
	if !ok {
		return nil, lang.ParamError("weights", "got %s, want a dict of port to number", c.Value("weights").Type())
	}
	for _, kv := range d.Items() {
		p, ok := kv[0].(topology.Port)
		if !ok {
			return nil, lang.ParamError("weights", "got a key of type %s, want port", kv[0].Type())
		}
		w, err := lang.ToInt(kv[1])
		if err != nil {
			return nil, lang.ParamError("weights", "%s: %w", p.Label(), err)
		}
		if ch := g.ChannelOf(p.Port); ch >= 0 {
			weight[ch] = int64(w)
		}
	}
	return weight, nil
}
