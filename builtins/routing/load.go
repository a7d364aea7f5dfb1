package routing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/jobs"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// CongestionType is the type of the result of routes.congestion().
var CongestionType = &lang.ResultType{
	Name: "congestion",
	Doc:  "The load of links under a traffic pattern, if all endpoints send at once. A flow is a load of 1; where links have another rate than ports of hosts, a load is per capacity: a flow on a link of half their rate is a load of 2.",
	Members: []lang.ResultMember{
		{Name: "pattern", Doc: "which"},
		{Name: "endpoints", Doc: "number of endpoints"},
		{Name: "samples", Doc: "number of shifts or permutations; of jobs, number of phases"},
		{Name: "seed", Doc: "seed of the random ones"},
		{Name: "max", Doc: "the largest load of a link in one direction, in any sample: for shifts, 1 means no contention; for a matrix, by its traffic"},
		{Name: "mean", Doc: "mean of the largest loads of the samples"},
		{Name: "bandwidth", Doc: "effective bandwidth: the mean over flows of 1 / (load of the busiest link of the path, at least 1); None for all-to-all without jobs; for a matrix, the mean of the shares that flows have of the traffic on the busiest link of their paths; for jobs, the mean of their phases, as phase_load has it"},
		{Name: "lost", Doc: "flows that do not arrive"},
		{Name: "worst", Doc: "the first sample with the largest load: the distance of a shift, else the number of the sample; None if no link has a flow"},
		{Name: "port", Doc: "a port whose outgoing link has the largest load; None without flows"},
		{Name: "loads", Type: "dict", Doc: "for a matrix, a dict of port name to its outgoing traffic, for ports with traffic (GUID/NUMBER of ports of switches with the same name); else None", Long: true},
		{Name: "slowdown", Type: "float", Doc: "of jobs: how many times longer all phases of a job take than if only the rates of its hosts' ports limited each flow; of the job with the largest, without flows that are lost; else None", Long: true},
		{Name: "phases", Type: "list of phase_load", Doc: "of jobs: the load of each phase; else None", Long: true},
		{Name: "collisions", Type: "list of collision", Doc: "of jobs: the links with a load above 1 in the worst phase, the largest first; else None", Long: true},
		{Name: "missing", Type: "list", Doc: "of jobs: names of hosts that are not in the fabric, or have no port with a LID at a switch; else None", Long: true},
		referenceMember,
		adaptiveMember, adaptiveReasonMember,
	},
}

// referenceMember is the member reference_rate of congestion, balance and job_traffic.
var referenceMember = lang.ResultMember{Name: "reference_rate", Type: "float", Doc: "rate in Gb/s of the links that loads are relative to, where rates of links between switches differ from it; None: they do not, or some are unknown, and loads of these links are counts", Long: true}

// PhaseLoadType is the type of the load of a phase of jobs.
var PhaseLoadType = &lang.ResultType{
	Name: "phase_load",
	Doc:  "The load of links in a phase of a collective operation.",
	Members: []lang.ResultMember{
		{Name: "part", Doc: "part of the time of the operation that the phase takes on links that flows do not share; where jobs have different phases, of the longest, such that all add up to 1"},
		{Name: "max", Doc: "the largest load of a link"},
		{Name: "port", Doc: "a port whose outgoing link has it; None without flows between switches"},
		{Name: "host_max", Doc: "the largest load of a port of a host or of an I/O node, in one direction, per capacity if ports of hosts differ in rate"},
		{Name: "bandwidth", Doc: "effective bandwidth: the share that a flow has of the rate of the slower of its own two ports, in the mean; 0 for a flow that is lost"},
		{Name: "lost", Type: "int", Doc: "flows that do not arrive"},
	},
}

// CollisionType is the type of a link that flows of jobs overload.
var CollisionType = &lang.ResultType{
	Name:      "collision",
	Doc:       "A link with a load above 1, and the flows on it: several, or one that is faster than the link.",
	Important: []string{"port", "to", "traffic", "jobs"},
	Members: []lang.ResultMember{
		{Name: "port", Doc: "the port that sends"},
		{Name: "to", Doc: "the port at the other end"},
		{Name: "traffic", Doc: "the load of all flows"},
		{Name: "jobs", Doc: "ids of their jobs"},
		{Name: "pairs", Doc: "a tuple (id of the job, name of the source, name of the destination, traffic) of each flow, the largest first", Long: true},
	},
}

// congestionMethod is routes.congestion(): flows per link under a traffic pattern.
var congestionMethod = lang.Builtin{
	Name:    "congestion",
	Returns: "congestion",
	Params: []lang.Param{
		{Name: "pattern", Kind: kindTraffic, Default: `"shift"`, Doc: `a traffic matrix: a dict of (source, destination), LIDs, ports, nodes or names, to how much is sent, or a list of (source, destination, how much); or a pattern: "shift": each endpoint sends to the one k places after it, for all k; "permutation": random ones; "bisection": random halves that exchange in pairs; "ring": each endpoint sends to the next one; "all-to-all"; with jobs, a pattern of job_traffic()`},
		{Name: "order", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "LIDs of the endpoints, in their order (default: graph.order(), or all CAs and routers without compute nodes)"},
		{Name: "samples", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "number of samples (default: 1000, or all shifts where those are fewer)"},
		{Name: "seed", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "seed of the random ones"},
		{Name: "jobs", Kind: kindSomeJobs, Default: "None", Keyword: true, Doc: `jobs of load_jobs(), or a dict of id to hosts: pattern is one of job_traffic's then, and its phases are the samples`},
		groupParam,
		slParam,
	},
	Doc: `Counts the flows on links under a pattern of traffic, or adds up the traffic of a matrix on them.
A matrix can have any unit; order, samples and seed do not apply to it, nor to jobs. Jobs run their phases in step; one with fewer phases begins again.
All figures are of static ports. Where switches choose among ports, as with adaptive routing, adaptive has the largest loads with the best and the worst choices beside them.`,
	Example: `
> g = discover().graph()
> g.route("ftree").congestion("shift").max
1
> g.route("ftree").congestion("permutation", samples=100).bandwidth > 0.5
True
> t = g.route("ftree"); a, b, c = g.order()[0], g.order()[4], g.order()[8]
> m = t.congestion({(a, b): 2.5, (c, b): 1})
> m.max, m.lost, len(m.loads)
(3.5, 0, 3)
> j = t.congestion("halving-doubling", jobs={"a": "node-[0001-0008]"})
> j.samples, j.max, j.slowdown, len(j.collisions)
(6, 1, 1.0, 0)
> j = t.congestion("ring", jobs={"b": "node-[0001-0002],gone"})
> j.worst, j.missing
(None, ["gone"])
> a = g.route("updn", adaptive=True).congestion("permutation", samples=5).adaptive
> a.ideal_max <= a.static_max, a.worst_max >= a.static_max
(True, True)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Pattern starlark.Value
		Order   []mad.LID
		Samples *int
		Seed    int
		Jobs    *[]jobs.Job
		Group   *int
		slArg
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		sl, err := a.level()
		if err != nil {
			return nil, err
		}
		pattern, ok := starlark.AsString(a.Pattern)
		if a.Jobs != nil {
			switch {
			case !ok:
				return nil, lang.ParamError("jobs", "not supported for a traffic matrix")
			case a.Order != nil || a.Samples != nil:
				return nil, lang.ParamError("jobs", "not supported with order or samples")
			}
			group, err := groupOf(a.Group)
			if err != nil {
				return nil, err
			}
			return jobCongestion(c, v, *a.Jobs, pattern, group, sl)
		}
		if a.Group != nil {
			return nil, lang.ParamError("group", "requires jobs")
		}
		if ok && slices.Contains(jobs.Patterns(), pattern) && !slices.Contains(traffic.Patterns(), pattern) {
			return nil, lang.ParamError("pattern", "%q is a pattern of jobs; give jobs", pattern)
		}
		if !ok {
			if a.Order != nil || a.Samples != nil {
				return nil, lang.ParamError("pattern", "not supported for a traffic matrix")
			}
			flows, err := flowsOf(v.graph.g.Fabric(), a.Pattern)
			if err != nil {
				return nil, lang.ParamError("pattern", "%w", err)
			}
			m, err := traffic.MeasureFlows(c.Fiber().Context, v.Tables, flows)
			if err != nil {
				return nil, computeError(c, err)
			}
			defer progress(c, "splitting the traffic over choices")()
			return wrapCongestion(v, &m.Congestion, m, func(ctx context.Context) (*traffic.AdaptiveLoad, error) {
				return traffic.MeasureAdaptiveFlows(ctx, v.Tables, flows, sl)
			}, c)
		}
		o := traffic.CongestionOptions{Pattern: pattern, Order: a.Order, Seed: uint64(a.Seed)}
		if a.Samples != nil {
			if o.Samples = *a.Samples; o.Samples < 1 {
				return nil, lang.ParamError("samples", "got %d, want at least 1", o.Samples)
			}
		}
		defer progress(c, "counting the loads of links")()
		r, err := traffic.MeasureCongestion(c.Fiber().Context, v.Tables, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		return wrapCongestion(v, r, nil, func(ctx context.Context) (*traffic.AdaptiveLoad, error) {
			return traffic.MeasureAdaptive(ctx, v.Tables, o, sl)
		}, c)
	}),
}

// wrapCongestion returns r as a value for scripts; m, if not nil, has the loads of a
// matrix. measure measures the loads with adaptive routing.
func wrapCongestion(v *Routes, r *traffic.Congestion, m *traffic.MatrixCongestion, measure measureAdaptive, c *lang.Call) (starlark.Value, error) {
	adaptive, reason, err := adaptiveLoad(c, v, measure)
	if err != nil {
		return nil, err
	}
	var bandwidth, worst, at, loads starlark.Value = starlark.Float(r.Bandwidth), starlark.None, starlark.None, starlark.None
	most := loadOf(r.Max)
	if r.Pattern == traffic.AllToAll {
		bandwidth = starlark.None
	}
	if r.Worst >= 0 {
		worst = starlark.MakeInt(r.Worst)
	}
	if r.At >= 0 {
		at = topology.PortOf(v.graph.g.ChannelPort(r.At))
	}
	if m != nil {
		most, loads = starlark.Float(m.MaxLoad), v.loadsByPort(m.Traffic)
	}
	return &loadValue{lang.NewResult(CongestionType, starlark.String(r.Pattern), starlark.MakeInt(r.Endpoints), starlark.MakeInt(r.Samples),
		starlark.MakeInt64(int64(r.Seed)), most, starlark.Float(r.Mean), bandwidth, starlark.MakeInt64(r.Lost), worst, at, loads,
		starlark.None, starlark.None, starlark.None, starlark.None, v.reference(), adaptive, reason)}, nil
}

// loadOf returns a load as a value: as an int where it is whole, as counts of flows are.
func loadOf(x float64) starlark.Value {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return starlark.MakeInt64(int64(x))
	}
	return starlark.Float(x)
}

// reference returns referenceMember for loads per capacity of hosts' ports.
func (v *Routes) reference() starlark.Value {
	c := v.Tables.Graph().Capacity()
	return lang.OrNone(c.Differs(), starlark.Float(c.Reference))
}

// jobCongestion is congestion() of jobs.
func jobCongestion(c *lang.Call, v *Routes, list []jobs.Job, pattern string, group int, sl uint8) (starlark.Value, error) {
	defer progress(c, "counting the loads of links")()
	t, err := jobs.MeasurePhases(c.Fiber().Context, v.Tables, list, pattern, group)
	if err != nil {
		return nil, computeError(c, err)
	}
	adaptive, reason, err := adaptiveLoad(c, v, func(ctx context.Context) (*traffic.AdaptiveLoad, error) {
		return traffic.MeasureAdaptiveFlows(ctx, v.Tables, t.Flows, sl)
	})
	if err != nil {
		return nil, err
	}
	g := v.Tables.Graph()
	port := func(channel int) starlark.Value {
		if channel < 0 {
			return starlark.None
		}
		return topology.PortOf(g.ChannelPort(channel))
	}
	var most, sum, bandwidth float64
	lost, worst, at := int64(0), starlark.Value(starlark.None), starlark.Value(starlark.None)
	phases := lang.List(t.Phases, func(p jobs.PhaseLoad) starlark.Value {
		sum, lost, bandwidth = sum+p.Load, lost+p.Lost, bandwidth+p.Bandwidth
		return lang.NewResult(PhaseLoadType, starlark.Float(p.Part), loadOf(p.Load), port(p.At), loadOf(p.Hosts), starlark.Float(p.Bandwidth), starlark.MakeInt64(p.Lost))
	})
	share := starlark.Value(starlark.None)
	if n := float64(len(t.Phases)); n > 0 {
		sum, share = sum/n, starlark.Float(bandwidth/n)
	}
	if t.Worst >= 0 && t.Phases[t.Worst].At >= 0 {
		most, worst, at = t.Phases[t.Worst].Load, starlark.MakeInt(t.Worst), port(t.Phases[t.Worst].At)
	}
	name := func(lid mad.LID) starlark.Value {
		return starlark.String(g.Terminals()[g.TerminalByLID(lid)].Port.Name())
	}
	collisions := lang.List(t.Collisions, func(x jobs.Collision) starlark.Value {
		var ids []string
		pairs := lang.List(x.Flows, func(f jobs.JobFlow) starlark.Value {
			if id := list[f.Job].ID; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			return starlark.Tuple{starlark.String(list[f.Job].ID), name(f.From), name(f.To), starlark.Float(f.Traffic)}
		})
		p := g.ChannelPort(int(x.Channel))
		return lang.NewResult(CollisionType, topology.PortOf(p), topology.PortOf(p.Peer()), loadOf(x.Load), lang.Texts(ids), pairs)
	})
	return &loadValue{lang.NewResult(CongestionType, starlark.String(pattern), starlark.MakeInt(t.Ports), starlark.MakeInt(len(t.Phases)),
		starlark.None, loadOf(most), starlark.Float(sum), share, starlark.MakeInt64(lost), worst, at, starlark.None,
		starlark.Float(t.Slowdown), phases, collisions, lang.Texts(t.Missing), v.reference(), adaptive, reason)}, nil
}

// flowsOf returns the flows of a traffic matrix.
func flowsOf(f *fabric.Fabric, v starlark.Value) ([]traffic.Flow, error) {
	var rows []starlark.Tuple
	switch v := v.(type) {
	case *starlark.Dict:
		for _, kv := range v.Items() {
			pair, ok := kv[0].(starlark.Tuple)
			if !ok || len(pair) != 2 {
				return nil, fmt.Errorf("got the key %s, want (source, destination)", lang.Brief(kv[0]))
			}
			rows = append(rows, append(slices.Clone(pair), kv[1]))
		}
	case starlark.Iterable:
		for i, x := range lang.Collect(v) {
			row, ok := x.(starlark.Tuple)
			if !ok || len(row) != 3 {
				return nil, fmt.Errorf("element %d: got %s, want (source, destination, how much)", i, lang.Brief(x))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, errors.New("the matrix is empty")
	}
	flows := make([]traffic.Flow, len(rows))
	for i, row := range rows {
		ends, err := flowEnds(f, row[:2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lang.Brief(row), err)
		}
		amount, ok := starlark.AsFloat(row[2])
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want a number", lang.Brief(row), row[2].Type())
		}
		flows[i] = traffic.Flow{From: ends[0], To: ends[1], Traffic: amount}
	}
	return flows, nil
}

// flowEnds returns the LIDs of a source and a destination; of a port, the first LID.
func flowEnds(f *fabric.Fabric, pair []starlark.Value) (ends [2]mad.LID, err error) {
	for i, x := range pair {
		if ends[i], err = firstLID(f, x); err != nil {
			return ends, err
		}
	}
	return ends, nil
}

// BalanceType is the type of the result of routes.balance().
var BalanceType = &lang.ResultType{
	Name: "balance",
	Doc:  "How evenly tables use links; each direction counts separately. Where links between switches differ in rate, routes_max, routes_mean, routes_min and busiest are per capacity: a route on a link of half the rate of the fastest counts twice.",
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
		referenceMember,
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
			name := portKey(v.graph.g.ChannelPort(ch))
			routes.SetKey(name, starlark.MakeInt64(b.PerChannel[ch]))
			lids.SetKey(name, starlark.MakeInt64(b.DLIDs[ch]))
		}
		busiest, reference := starlark.Value(starlark.None), starlark.Value(starlark.None)
		most, mean, least, at := starlark.Value(starlark.MakeInt64(b.Routes.Max)), b.Routes.Mean, starlark.Value(starlark.MakeInt64(b.Routes.Min)), b.Routes.Busiest
		if w := b.Weighed; w != nil {
			most, mean, least, at = loadOf(w.Max), w.Mean, loadOf(w.Min), w.Busiest
			reference = starlark.Float(v.graph.g.Capacity().Fastest)
		}
		if at >= 0 {
			busiest = topology.PortOf(v.graph.g.ChannelPort(at))
		}
		adaptive, reason, err := adaptiveLoad(c, v, func(ctx context.Context) (*traffic.AdaptiveLoad, error) {
			return traffic.MeasureAdaptiveBalance(ctx, v.Tables, class, a.LIDs, sl)
		})
		if err != nil {
			return nil, err
		}
		return &loadValue{lang.NewResult(BalanceType,
			most, starlark.Float(mean), least,
			starlark.MakeInt64(b.LIDs.Max), starlark.Float(b.LIDs.Mean), starlark.MakeInt64(b.LIDs.Min), busiest, routes, lids, reference, adaptive, reason)}, nil
	}),
}

// AdaptiveLoadType is the type of `adaptive` of congestion and balance.
var AdaptiveLoadType = &lang.ResultType{
	Name: "adaptive_load",
	Doc:  "The largest load of a link where switches choose among ports, for flows of reliable connections (RC). Ideal: the traffic to a LID can be divided at each switch in any parts among its ports, such that the largest load is the smallest possible. Worst: all flows that may take a link do, for each link by itself.",
	Members: []lang.ResultMember{
		{Name: "samples", Doc: "number of samples, at most 5; of more, evenly spread ones. The other figures are of these"},
		{Name: "static_max", Type: "float", Doc: "the largest load of all samples, by static ports"},
		{Name: "static_mean", Type: "float", Doc: "mean of the largest loads of the samples, by static ports"},
		{Name: "ideal_max", Type: "float", Doc: "the same as static_max, by an ideal split of the flows"},
		{Name: "ideal_mean", Type: "float", Doc: "the same as static_mean, by an ideal split"},
		{Name: "bound_max", Type: "float", Doc: "a lower bound on ideal_max: no split has less. The split that was found is within 1 % of the bound, or as near as a limited number of steps comes"},
		{Name: "bound_mean", Type: "float", Doc: "a lower bound on ideal_mean"},
		{Name: "worst_max", Type: "float", Doc: "the same as static_max, by the worst choices"},
		{Name: "worst_mean", Type: "float", Doc: "the same as static_mean, by the worst choices"},
		{Name: "lost", Type: "int", Doc: "flows that some choice loses or may send in a circle; ideal and worst are without them"},
		{Name: "ideal_port", Type: "port", Doc: "a port whose outgoing link has ideal_max, None without flows"},
		{Name: "worst_port", Type: "port", Doc: "a port whose outgoing link has worst_max, None without flows"},
		{Name: "ideal_loads", Type: "dict", Doc: "for one sample, a dict of port name to its outgoing load by the ideal split, for ports with load; else None", Long: true},
		{Name: "worst_loads", Type: "dict", Doc: "for one sample, the same by the worst choices; else None", Long: true},
	},
}

var (
	adaptiveMember       = lang.ResultMember{Name: "adaptive", Type: "adaptive_load", Doc: "the loads with the best and the worst choices; None: switches have no choices, or these are unknown"}
	adaptiveReasonMember = lang.ResultMember{Name: "adaptive_reason", Type: "string", Doc: "why the choices of switches that route adaptively are unknown; else None", Long: true}
)

// slParam is the parameter sl of congestion and balance, which slArg binds.
var slParam = lang.Param{Name: "sl", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "service level of the flows, on which choices depend; where routes have service levels of paths, those apply"}

// slArg is the argument for slParam.
type slArg struct{ SL int }

// level returns the service level.
func (a *slArg) level() (uint8, error) {
	if a.SL < 0 || a.SL > 15 {
		return 0, lang.ParamError("sl", "got %d, want 0..15", a.SL)
	}
	return uint8(a.SL), nil
}

// measureAdaptive measures loads; nil: there are no choices.
type measureAdaptive func(ctx context.Context) (*traffic.AdaptiveLoad, error)

// adaptiveLoad returns the values of adaptiveMember and adaptiveReasonMember.
func adaptiveLoad(c *lang.Call, v *Routes, measure measureAdaptive) (load, reason starlark.Value, err error) {
	if state, why := verify.AdaptiveOf(v.Tables); state == verify.AdaptiveUnknown {
		return starlark.None, starlark.String(why), nil
	}
	l, err := measure(c.Fiber().Context)
	if err != nil {
		return nil, nil, computeError(c, err)
	}
	if l == nil || l.Samples == 0 {
		return starlark.None, starlark.None, nil
	}
	port := func(ch int) starlark.Value {
		if ch < 0 {
			return starlark.None
		}
		return topology.PortOf(v.graph.g.ChannelPort(ch))
	}
	return lang.NewResult(AdaptiveLoadType, starlark.MakeInt(l.Samples),
		starlark.Float(l.Static.Max), starlark.Float(l.Static.Mean), starlark.Float(l.Ideal.Max), starlark.Float(l.Ideal.Mean),
		starlark.Float(l.Bound.Max), starlark.Float(l.Bound.Mean), starlark.Float(l.Worst.Max), starlark.Float(l.Worst.Mean),
		starlark.MakeInt64(l.Lost), port(l.Ideal.At), port(l.Worst.At), v.loadsByPort(l.IdealLoads), v.loadsByPort(l.WorstLoads)), starlark.None, nil
}

// portKey returns the key of a port in a dict of loads: its name, or its GUID and number where
// several nodes have the name, as unnamed switches do.
func portKey(p *fabric.Port) starlark.String {
	n := p.Node()
	if len(n.Fabric().NodeByName(n.Name())) > 1 {
		return starlark.String(fmt.Sprintf("%v/%d", n.GUID(), p.Num()))
	}
	return starlark.String(p.Name())
}

// loadsByPort returns a dict of [portKey] to load, for ports with load; None: loads is nil.
func (v *Routes) loadsByPort(loads []float64) starlark.Value {
	if loads == nil {
		return starlark.None
	}
	d := new(starlark.Dict)
	for ch, load := range loads {
		if load > 0 {
			d.SetKey(portKey(v.graph.g.ChannelPort(ch)), starlark.Float(load))
		}
	}
	return d
}

// loadValue is a congestion, balance or job_traffic, with a text of its own.
type loadValue struct{ *lang.Result }

// Display writes the figures of static ports, then the figures with choices, if any.
func (v *loadValue) Display() string {
	var rows []lang.Fact
	var adaptive *lang.Result
	reason, rate, collisions := "", starlark.Float(0), (*starlark.List)(nil)
	for _, f := range v.Facts() {
		switch f.Name {
		case "adaptive":
			load, ok := f.Value.(*lang.Result)
			if adaptive = load; !ok && f.Value != starlark.None { // of job_traffic, whether switches choose
				rows = append(rows, f)
			}
		case "adaptive_reason":
			reason, _ = starlark.AsString(f.Value)
		case "reference_rate":
			rate, _ = f.Value.(starlark.Float)
		case "collisions":
			collisions, _ = f.Value.(*starlark.List)
		case "slowdown":
			if f.Value != starlark.None {
				f.Code = false
				rows = append(rows, f)
			}
		default:
			rows = append(rows, f)
		}
	}
	var b strings.Builder
	b.WriteString(lang.Aligned(rows))
	if collisions != nil {
		fmt.Fprintf(&b, "links that flows overload: %d\n", collisions.Len())
	}
	if rate > 0 {
		fmt.Fprintf(&b, "note: rates of links differ; loads are per capacity, and 1 is a flow on a link of %g Gb/s\n", float64(rate))
	}
	if adaptive != nil {
		b.WriteString("with adaptive routing:\n")
		for line := range strings.Lines(adaptive.Display()) {
			b.WriteString("  " + line)
		}
	}
	if reason != "" {
		fmt.Fprintf(&b, "note: all figures are of static ports; adaptive routing is unknown: %s\n", lang.OneLine(reason))
	}
	return b.String()
}
