package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// CongestionType is the type of what routes.congestion() returns.
var CongestionType = &lang.ResultType{
	Name: "congestion",
	Doc:  "What a traffic pattern does to links, if all endpoints send at once.",
	Members: []lang.ResultMember{
		{Name: "pattern", Doc: "which"},
		{Name: "endpoints", Doc: "how many"},
		{Name: "samples", Doc: "how many shifts or permutations"},
		{Name: "seed", Doc: "of the random ones"},
		{Name: "max", Doc: "the most flows on any link, one way, in any sample: of shifts, 1 is free of contention"},
		{Name: "mean", Doc: "mean of the samples' largest"},
		{Name: "bandwidth", Doc: "effective bandwidth: the mean over flows of 1 over the most flows on a link of the path; None of all-to-all"},
		{Name: "lost", Doc: "flows that do not arrive"},
		{Name: "worst", Doc: "the first sample with the most: the distance of a shift, else its number; None if no link has a flow"},
		{Name: "port", Doc: "a port whose way out has the most, None if none has"},
	},
}

// congestionMethod is routes.congestion(): flows per link under a traffic pattern.
var congestionMethod = lang.Builtin{
	Name:    "congestion",
	Returns: "congestion",
	Params: []lang.Param{
		{Name: "pattern", Kind: lang.KindChoice, Default: `"shift"`, Doc: `"shift": each sends to the one k places on, for all k; "permutation": random ones; "bisection": random halves that exchange in pairs; "all-to-all"`},
		{Name: "order", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "LIDs of the endpoints, in their order; else graph.order(), or all CAs and routers where there are no compute nodes"},
		{Name: "samples", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "how many; else 1000, or all shifts where those are fewer"},
		{Name: "seed", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "of the random ones"},
	},
	Doc: "Counts the flows that meet on links under a pattern of traffic.",
	Example: `
> g = discover().graph()
> g.route("ftree").congestion("shift").max
1
> g.route("ftree").congestion("permutation", samples=100).bandwidth > 0.5
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Pattern string
		Order   []mad.LID
		Samples *int
		Seed    int
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		o := routing.CongestionOptions{Pattern: a.Pattern, Order: a.Order, Seed: uint64(a.Seed)}
		if a.Samples != nil {
			if o.Samples = *a.Samples; o.Samples < 1 {
				return nil, lang.ParamError("samples", "got %d, want at least 1", o.Samples)
			}
		}
		r, err := v.Tables.Congestion(c.Fiber().Context, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		var bandwidth, worst, at starlark.Value = starlark.Float(r.Bandwidth), starlark.None, starlark.None
		if r.Pattern == routing.AllToAll {
			bandwidth = starlark.None
		}
		if r.Worst >= 0 {
			worst = starlark.MakeInt(r.Worst)
		}
		if r.At >= 0 {
			at = topology.PortOf(v.graph.g.ChannelPort(r.At))
		}
		return lang.NewResult(CongestionType, starlark.String(r.Pattern), starlark.MakeInt(r.Endpoints), starlark.MakeInt(r.Samples),
			starlark.MakeUint64(r.Seed), starlark.MakeInt(r.Max), starlark.Float(r.Mean), bandwidth, starlark.MakeInt64(r.Lost), worst, at), nil
	}),
}
