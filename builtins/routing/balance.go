package routing

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// BalanceType is the type of what routes.balance() returns.
var BalanceType = &lang.ResultType{
	Name: "balance",
	Doc:  "How evenly tables use links; each direction counts separately.",
	Members: []lang.ResultMember{
		{Name: "routes_max", Doc: "the most routes on a link: the edge forwarding index"},
		{Name: "routes_mean", Doc: "the mean"},
		{Name: "routes_min", Doc: "the fewest"},
		{Name: "lids_max", Doc: "the largest number of destination LIDs on a link"},
		{Name: "lids_mean", Doc: "the mean"},
		{Name: "lids_min", Doc: "the fewest"},
		{Name: "busiest", Doc: "a port with the most outgoing routes, None without links"},
		{Name: "routes", Doc: "a dict of port name to its routes; GUID/NUMBER of ports of switches with the same name", Long: true},
		{Name: "lids", Doc: "a dict of port name to its LIDs, likewise", Long: true},
		adaptiveMember, adaptiveReasonMember,
	},
}

// balanceMethod is routes.balance(): routes and destination LIDs per link.
var balanceMethod = lang.Builtin{
	Name:    "balance",
	Returns: "balance",
	Params: []lang.Param{
		endpointsParam,
		{Name: "lids", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "count only the routes to these LIDs, such as those of storage, or one of each port"},
		slParam,
	},
	Doc: `Counts the routes on each link between switches, and the LIDs they lead to.
All figures are of static ports. Where switches choose among ports, as with adaptive routing, adaptive has the most routes on a link with the best and the worst choices beside them.`,
	Example: `
> b = discover().graph().route("ftree").balance()
> b.routes_max, b.routes_min
(28, 28)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		endpointsArg
		LIDs []mad.LID
		slArg
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		class, err := a.class(v.graph.g)
		if err != nil {
			return nil, err
		}
		sl, err := a.level()
		if err != nil {
			return nil, err
		}
		b, err := traffic.MeasureBalance(c.Fiber().Context, v.Tables, class, a.LIDs)
		if err != nil {
			return nil, computeError(c, err)
		}
		routes, lids := new(starlark.Dict), new(starlark.Dict)
		for ch := range b.PerChannel {
			name := PortKey(v.graph.g.ChannelPort(ch))
			routes.SetKey(name, starlark.MakeInt64(b.PerChannel[ch]))
			lids.SetKey(name, starlark.MakeInt64(b.DLIDs[ch]))
		}
		busiest := starlark.Value(starlark.None)
		if b.Routes.Busiest >= 0 {
			busiest = topology.PortOf(v.graph.g.ChannelPort(b.Routes.Busiest))
		}
		adaptive, reason, err := adaptiveLoad(c, v, func(ctx context.Context) (*traffic.AdaptiveLoad, error) {
			return traffic.MeasureAdaptiveBalance(ctx, v.Tables, class, a.LIDs, sl)
		})
		if err != nil {
			return nil, err
		}
		return &loadValue{lang.NewResult(BalanceType,
			starlark.MakeInt64(b.Routes.Max), starlark.Float(b.Routes.Mean), starlark.MakeInt64(b.Routes.Min),
			starlark.MakeInt64(b.LIDs.Max), starlark.Float(b.LIDs.Mean), starlark.MakeInt64(b.LIDs.Min), busiest, routes, lids, adaptive, reason)}, nil
	}),
}
