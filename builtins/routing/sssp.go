package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/engines"
	"fabsh/mad"
)

// ssspMethod is routes.sssp(): single-source shortest paths, destination by
// destination, with weights that grow by the routes on a channel.
var ssspMethod = lang.Builtin{
	Name: "sssp",
	Params: []lang.Param{
		{Name: "weights", Kind: kindDict("a dict of port to number"), Default: "None", Doc: "a dict of port to the initial cost of its outgoing link (default: 1); None: shortest paths have priority"},
		{Name: "lids", Kind: kindLIDs, Default: "None", Doc: "the LIDs, in this order (default: all)"},
	},
	Doc: `Gives each LID in turn the cheapest paths; their cost then rises by the routes on them.
It returns a dict of port to the cost of its outgoing link afterwards, for the next call.`,
	Example: `
> g = discover().graph(); t = g.routes()
> used = t.sssp({}, g.lids("cn"))
> t.verify().unreachable
0
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct {
		Weights *starlark.Dict
		LIDs    []mad.LID
	}) (starlark.Value, error) {
		g := v.graph.g
		usual := int64(1)
		if a.Weights == nil {
			// A hop costs more than all routes together could add, so that paths
			// stay shortest; 2^40 leaves room for the sum over a path in an int64.
			routes := int64(len(g.LIDs(0))) * int64(len(g.Terminals()))
			usual = min(routes*int64(len(g.Switches())+1), 1<<40)
		}
		weight, err := channelWeights(g, a.Weights, usual)
		if err != nil {
			return nil, lang.ParamError("weights", "%w", err)
		}
		if err := engines.SSSP(c.Fiber().Context, v.Tables, weight, a.LIDs); err != nil {
			return nil, computeError(c, err)
		}
		used := starlark.NewDict(len(weight))
		for ch, w := range weight {
			used.SetKey(topology.PortOf(g.ChannelPort(ch)), starlark.MakeInt64(w))
		}
		return used, nil
	}),
}
