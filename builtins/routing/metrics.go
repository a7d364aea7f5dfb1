package routing

import (
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

var PathType = &lang.ResultType{
	Name: "path",
	Doc:  "Where packets from one LID to another go.",
	Members: []lang.ResultMember{
		{Name: "source", Doc: "the port it begins at"},
		{Name: "lid", Doc: "where to"},
		{Name: "ok", Doc: "it gets there"},
		{Name: "broken", Doc: "why it does not, None if it does"},
		{Name: "sl", Doc: "service level"},
		{Name: "vls", Doc: "virtual lanes, on the links out of its switches"},
		{Name: "ports", Doc: "all ports on it, in order", Long: true},
	},
}

// pathValue is the value `path`.
type pathValue struct {
	*lang.Result
	p *routing.Path
}

// Display writes the ports on the path, then why it ends.
func (x *pathValue) Display() string {
	var b strings.Builder
	for _, q := range x.p.Ports() {
		b.WriteString(q.Name() + "\n")
	}
	if x.p.Broken != "" {
		b.WriteString(x.p.Broken + "\n")
	}
	return b.String()
}

var traceMethod = lang.Builtin{
	Name: "trace",
	Params: []lang.Param{
		{Name: "source", Kind: lang.KindAny, Doc: "a LID, or a port or node that has one"},
		{Name: "destination", Kind: lang.KindAny, Doc: "another"},
	},
	Doc: "Follows packets from one LID to another through the tables: a path.\nOne that does not get there says why.",
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
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		var at [2]mad.LID
		for i, param := range []string{"source", "destination"} {
			lids, err := lidsOf(c, param, []starlark.Value{c.Value(param)})
			if err != nil {
				return nil, err
			}
			if len(lids) == 0 {
				return nil, lang.ParamError(param, "%s has no LID", lang.Brief(c.Value(param)))
			}
			at[i] = lids[0]
		}
		p, err := v.R.Trace(at[0], at[1])
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
			textOrNone(p.Broken), starlark.MakeInt(int(p.SL)), starlark.NewList(vls), starlark.NewList(ports))}, nil
	}),
}

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

var congestionMethod = lang.Builtin{
	Name: "congestion",
	Params: []lang.Param{
		{Name: "pattern", Kind: lang.KindChoice, Default: `"shift"`, Doc: `"shift": each sends to the one k places on, for all k; "permutation": random ones; "bisection": random halves that exchange in pairs; "all-to-all"`},
		{Name: "order", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "LIDs of the endpoints, in their order; else graph.order(), or all CAs and routers where there are no compute nodes"},
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
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		o := routing.CongestionOptions{Pattern: c.Text("pattern"), Samples: c.Int("samples"), Seed: uint64(c.Int("seed"))}
		if c.Has("samples") && o.Samples < 1 {
			return nil, lang.ParamError("samples", "got %d, want at least 1", o.Samples)
		}
		var err error
		if o.Order, err = optionalLIDs(c, "order"); err != nil {
			return nil, err
		}
		r, err := v.R.Congestion(c.Fiber().Context, o)
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

var BalanceType = &lang.ResultType{
	Name: "balance",
	Doc:  "How evenly tables use links, each way counted on its own.",
	Members: []lang.ResultMember{
		{Name: "routes_max", Doc: "the most routes on a link: the edge forwarding index"},
		{Name: "routes_mean", Doc: "the mean"},
		{Name: "routes_min", Doc: "the fewest"},
		{Name: "lids_max", Doc: "the most LIDs that packets take a link to: DLIDs of a port"},
		{Name: "lids_mean", Doc: "the mean"},
		{Name: "lids_min", Doc: "the fewest"},
		{Name: "busiest", Doc: "a port whose way out has the most routes, None without links"},
		{Name: "routes", Doc: "a dict of port name to its routes", Long: true},
		{Name: "lids", Doc: "a dict of port name to its LIDs", Long: true},
	},
}

var balanceMethod = lang.Builtin{
	Name:   "balance",
	Params: []lang.Param{{Name: "endpoints", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: "between which ports: " + classWords + "; else all ports of CAs and routers"}},
	Doc:    "Counts the routes on each link between switches, and the LIDs they lead to.",
	Example: `
> b = discover().graph().route("ftree").balance()
> b.routes_max, b.routes_min
(28, 28)
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		class, err := endpointsOf(c)
		if err != nil {
			return nil, err
		}
		b, err := v.R.Balance(c.Fiber().Context, class)
		if err != nil {
			return nil, computeError(c, err)
		}
		routes, lids := new(starlark.Dict), new(starlark.Dict)
		for ch := range b.PerChannel {
			name := starlark.String(v.graph.g.ChannelPort(ch).Name())
			routes.SetKey(name, starlark.MakeInt64(b.PerChannel[ch]))
			lids.SetKey(name, starlark.MakeInt64(b.DLIDs[ch]))
		}
		busiest := starlark.Value(starlark.None)
		if b.Routes.Busiest >= 0 {
			busiest = topology.PortOf(v.graph.g.ChannelPort(b.Routes.Busiest))
		}
		return lang.NewResult(BalanceType,
			starlark.MakeInt64(b.Routes.Max), starlark.Float(b.Routes.Mean), starlark.MakeInt64(b.Routes.Min),
			starlark.MakeInt64(b.LIDs.Max), starlark.Float(b.LIDs.Mean), starlark.MakeInt64(b.LIDs.Min), busiest, routes, lids), nil
	}),
}

var DiffType = &lang.ResultType{
	Name: "routes_diff",
	Doc:  "What of the tables changes from one routes to another.",
	Members: []lang.ResultMember{
		{Name: "switches", Doc: "how many switches' tables change"},
		{Name: "entries", Doc: "how many entries"},
		{Name: "blocks", Doc: "how many blocks of 64 entries would be written"},
		{Name: "lids", Doc: "LIDs whose paths change somewhere", Long: true},
		{Name: "by_switch", Doc: "of each such switch its name, GUID, entries and the numbers of its blocks", Long: true},
	},
}

var diffMethod = lang.Builtin{
	Name:   "diff",
	Params: []lang.Param{{Name: "other", Kind: lang.KindAny, Doc: "the routes before, as of get_routes()"}},
	Doc: `Compares the tables with those before them: what changes from other to these.
Switches are known again by GUID, so the fabrics may be different snapshots.`,
	Example: `
> f = discover(); t = f.graph().route("ftree"); u = t.clone()
> u[f.switches[0]][20] = None
> u.diff(t)
switches  1
entries   1
blocks    1
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		old, err := routesOf(c, "other")
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, lang.ParamError("other", "got None, want routes")
		}
		return wrapDiff(v.graph.g, v.R.Diff(old)), nil
	}),
}

func wrapDiff(g *routing.Graph, d *routing.Diff) *lang.Result {
	var bySwitch []starlark.Value
	for _, sd := range d.Switches {
		n := g.Switches()[sd.Switch]
		row := starlark.NewDict(4)
		row.SetKey(starlark.String("switch"), starlark.String(n.Name()))
		row.SetKey(starlark.String("guid"), topology.GUIDValue(n.GUID()))
		row.SetKey(starlark.String("entries"), starlark.MakeInt(sd.Entries))
		row.SetKey(starlark.String("blocks"), lang.Integers(sd.Blocks))
		bySwitch = append(bySwitch, row)
	}
	return lang.NewResult(DiffType, starlark.MakeInt(len(d.Switches)), starlark.MakeInt(d.Entries), starlark.MakeInt(d.Blocks), lang.Integers(d.LIDs), starlark.NewList(bySwitch))
}
