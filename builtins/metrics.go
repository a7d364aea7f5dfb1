package builtins

import (
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
	"fabsh/mad"
)

var pathType = &resultType{
	name: "path",
	doc:  "Where packets from one LID to another go.",
	members: []resultMember{
		{name: "source", doc: "the port it begins at"},
		{name: "lid", doc: "where to"},
		{name: "ok", doc: "it gets there"},
		{name: "broken", doc: "why it does not, None if it does"},
		{name: "sl", doc: "service level"},
		{name: "vls", doc: "virtual lanes, on the links out of its switches"},
		{name: "ports", doc: "all ports on it, in order", long: true},
	},
}

// pathValue is the value `path`.
type pathValue struct {
	*result
	p *routing.Path
}

// display writes the ports on the path, then why it ends.
func (x *pathValue) display() string {
	var b strings.Builder
	for _, q := range x.p.Ports() {
		b.WriteString(q.Name() + "\n")
	}
	if x.p.Broken != "" {
		b.WriteString(x.p.Broken + "\n")
	}
	return b.String()
}

var traceMethod = Builtin{
	Name: "trace",
	Params: []Param{
		{Name: "source", Kind: KindAny, Doc: "a LID, or a port or node that has one"},
		{Name: "destination", Kind: KindAny, Doc: "another"},
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
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		var at [2]mad.LID
		for i, param := range []string{"source", "destination"} {
			lids, err := c.lids(param, []starlark.Value{c.Value(param)})
			if err != nil {
				return nil, err
			}
			if len(lids) == 0 {
				return nil, c.paramError(param, "%s has no LID", brief(c.Value(param)))
			}
			at[i] = lids[0]
		}
		p, err := v.r.Trace(at[0], at[1])
		if err != nil {
			return nil, c.computed(err)
		}
		var ports, vls []starlark.Value
		for _, q := range p.Ports() {
			ports = append(ports, port{q})
		}
		for _, h := range p.Hops {
			vls = append(vls, starlark.MakeInt(int(h.VL)))
		}
		return &pathValue{p: p, result: newResult(pathType, port{v.graph.g.Terminals()[p.From].Port}, starlark.MakeInt(int(p.LID)), starlark.Bool(p.Broken == ""),
			textOrNone(p.Broken), starlark.MakeInt(int(p.SL)), starlark.NewList(vls), starlark.NewList(ports))}, nil
	},
}

var congestionType = &resultType{
	name: "congestion",
	doc:  "What a traffic pattern does to links, if all endpoints send at once.",
	members: []resultMember{
		{name: "pattern", doc: "which"},
		{name: "endpoints", doc: "how many"},
		{name: "samples", doc: "how many shifts or permutations"},
		{name: "seed", doc: "of the random ones"},
		{name: "max", doc: "the most flows on any link, one way, in any sample: of shifts, 1 is free of contention"},
		{name: "mean", doc: "mean of the samples' largest"},
		{name: "bandwidth", doc: "effective bandwidth: the mean over flows of 1 over the most flows on a link of the path; None of all-to-all"},
		{name: "lost", doc: "flows that do not arrive"},
		{name: "worst", doc: "the first sample with the most: the distance of a shift, else its number; None if no link has a flow"},
		{name: "port", doc: "a port whose way out has the most, None if none has"},
	},
}

var congestionMethod = Builtin{
	Name: "congestion",
	Params: []Param{
		{Name: "pattern", Kind: KindChoice, Default: `"shift"`, Doc: `"shift": each sends to the one k places on, for all k; "permutation": random ones; "bisection": random halves that exchange in pairs; "all-to-all"`},
		{Name: "order", Kind: KindItems, Default: "None", Keyword: true, Doc: "LIDs of the endpoints, in their order; else graph.order(), or all CAs and routers where there are no compute nodes"},
		{Name: "samples", Kind: KindInt, Default: "None", Keyword: true, Doc: "how many; else 1000, or all shifts where those are fewer"},
		{Name: "seed", Kind: KindInt, Default: "1", Keyword: true, Doc: "of the random ones"},
	},
	Doc: "Counts the flows that meet on links under a pattern of traffic.",
	Example: `
> g = discover().graph()
> g.route("ftree").congestion("shift").max
1
> g.route("ftree").congestion("permutation", samples=100).bandwidth > 0.5
True
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		o := routing.CongestionOptions{Pattern: c.Text("pattern"), Samples: c.Int("samples"), Seed: uint64(c.Int("seed"))}
		if c.Has("samples") && o.Samples < 1 {
			return nil, c.paramError("samples", "got %d, want at least 1", o.Samples)
		}
		var err error
		if o.Order, err = c.optionalLIDs("order"); err != nil {
			return nil, err
		}
		r, err := v.r.Congestion(c.fiber().ctx, o)
		if err != nil {
			return nil, c.computed(err)
		}
		var bandwidth, worst, at starlark.Value = starlark.Float(r.Bandwidth), starlark.None, starlark.None
		if r.Pattern == routing.AllToAll {
			bandwidth = starlark.None
		}
		if r.Worst >= 0 {
			worst = starlark.MakeInt(r.Worst)
		}
		if r.At >= 0 {
			at = port{v.graph.g.ChannelPort(r.At)}
		}
		return newResult(congestionType, starlark.String(r.Pattern), starlark.MakeInt(r.Endpoints), starlark.MakeInt(r.Samples),
			starlark.MakeUint64(r.Seed), starlark.MakeInt(r.Max), starlark.Float(r.Mean), bandwidth, starlark.MakeInt64(r.Lost), worst, at), nil
	},
}

var balanceType = &resultType{
	name: "balance",
	doc:  "How evenly tables use links, each way counted on its own.",
	members: []resultMember{
		{name: "routes_max", doc: "the most routes on a link: the edge forwarding index"},
		{name: "routes_mean", doc: "the mean"},
		{name: "routes_min", doc: "the fewest"},
		{name: "lids_max", doc: "the most LIDs that packets take a link to: DLIDs of a port"},
		{name: "lids_mean", doc: "the mean"},
		{name: "lids_min", doc: "the fewest"},
		{name: "busiest", doc: "a port whose way out has the most routes, None without links"},
		{name: "routes", doc: "a dict of port name to its routes", long: true},
		{name: "lids", doc: "a dict of port name to its LIDs", long: true},
	},
}

var balanceMethod = Builtin{
	Name:   "balance",
	Params: []Param{{Name: "endpoints", Kind: KindChoice, Default: "None", Keyword: true, Doc: "between which ports: " + classWords + "; else all ports of CAs and routers"}},
	Doc:    "Counts the routes on each link between switches, and the LIDs they lead to.",
	Example: `
> b = discover().graph().route("ftree").balance()
> b.routes_max, b.routes_min
(28, 28)
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		class, err := c.endpoints()
		if err != nil {
			return nil, err
		}
		b, err := v.r.Balance(c.fiber().ctx, class)
		if err != nil {
			return nil, c.computed(err)
		}
		routes, lids := new(starlark.Dict), new(starlark.Dict)
		for ch := range b.PerChannel {
			name := starlark.String(v.graph.g.ChannelPort(ch).Name())
			routes.SetKey(name, starlark.MakeInt64(b.PerChannel[ch]))
			lids.SetKey(name, starlark.MakeInt64(b.DLIDs[ch]))
		}
		busiest := starlark.Value(starlark.None)
		if b.Routes.Busiest >= 0 {
			busiest = port{v.graph.g.ChannelPort(b.Routes.Busiest)}
		}
		return newResult(balanceType,
			starlark.MakeInt64(b.Routes.Max), starlark.Float(b.Routes.Mean), starlark.MakeInt64(b.Routes.Min),
			starlark.MakeInt64(b.LIDs.Max), starlark.Float(b.LIDs.Mean), starlark.MakeInt64(b.LIDs.Min), busiest, routes, lids), nil
	},
}

var diffType = &resultType{
	name: "routes_diff",
	doc:  "What of the tables changes from one routes to another.",
	members: []resultMember{
		{name: "switches", doc: "how many switches' tables change"},
		{name: "entries", doc: "how many entries"},
		{name: "blocks", doc: "how many blocks of 64 entries would be written"},
		{name: "lids", doc: "LIDs whose paths change somewhere", long: true},
		{name: "by_switch", doc: "of each such switch its name, GUID, entries and the numbers of its blocks", long: true},
	},
}

var diffMethod = Builtin{
	Name:   "diff",
	Params: []Param{{Name: "other", Kind: KindAny, Doc: "the routes before, as of get_routes()"}},
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
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*routesValue)
		old, err := c.routesOf("other")
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, c.paramError("other", "got None, want routes")
		}
		return diffOf(v.graph.g, v.r.Diff(old)), nil
	},
}

func diffOf(g *routing.Graph, d *routing.Diff) *result {
	var bySwitch []starlark.Value
	for _, sd := range d.Switches {
		n := g.Switches()[sd.Switch]
		row := starlark.NewDict(4)
		row.SetKey(starlark.String("switch"), starlark.String(n.Name()))
		row.SetKey(starlark.String("guid"), guidValue(n.GUID()))
		row.SetKey(starlark.String("entries"), starlark.MakeInt(sd.Entries))
		row.SetKey(starlark.String("blocks"), integers(sd.Blocks))
		bySwitch = append(bySwitch, row)
	}
	return newResult(diffType, starlark.MakeInt(len(d.Switches)), starlark.MakeInt(d.Entries), starlark.MakeInt(d.Blocks), integers(d.LIDs), starlark.NewList(bySwitch))
}
