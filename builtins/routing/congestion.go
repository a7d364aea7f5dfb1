package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// CongestionType is the type of what routes.congestion() returns.
var CongestionType = &lang.ResultType{
	Name: "congestion",
	Doc:  "The load of links under a traffic pattern, if all endpoints send at once.",
	Members: []lang.ResultMember{
		{Name: "pattern", Doc: "which"},
		{Name: "endpoints", Doc: "number of endpoints"},
		{Name: "samples", Doc: "number of shifts or permutations"},
		{Name: "seed", Doc: "seed of the random ones"},
		{Name: "max", Doc: "the largest number of flows on a link in one direction, in any sample: for shifts, 1 means no contention; for a matrix, the largest traffic on a link"},
		{Name: "mean", Doc: "mean of the largest numbers of the samples"},
		{Name: "bandwidth", Doc: "effective bandwidth: the mean over flows of 1 / (number of flows on the busiest link of the path); None for all-to-all; for a matrix, the mean of the shares that flows have of the traffic on the busiest link of their paths"},
		{Name: "lost", Doc: "flows that do not arrive"},
		{Name: "worst", Doc: "the first sample with the largest number: the distance of a shift, else the number of the sample; None if no link has a flow"},
		{Name: "port", Doc: "a port whose outgoing link has the largest number of flows, or the largest traffic; None without flows"},
		{Name: "loads", Type: "dict", Doc: "for a matrix, a dict of port name to its outgoing traffic, for ports with traffic (GUID/NUMBER of ports of switches with the same name); else None", Long: true},
		adaptiveMember, adaptiveReasonMember,
	},
}

// congestionMethod is routes.congestion(): flows per link under a traffic pattern.
var congestionMethod = lang.Builtin{
	Name:    "congestion",
	Returns: "congestion",
	Params: []lang.Param{
		{Name: "pattern", Kind: kindTraffic, Default: `"shift"`, Doc: `a traffic matrix: a dict of (source, destination), LIDs, ports or nodes, to how much is sent, or a list of (source, destination, how much); or a pattern: "shift": each endpoint sends to the one k places after it, for all k; "permutation": random ones; "bisection": random halves that exchange in pairs; "ring": each endpoint sends to the next one; "all-to-all"`},
		{Name: "order", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "LIDs of the endpoints, in their order (default: graph.order(), or all CAs and routers without compute nodes)"},
		{Name: "samples", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "number of samples (default: 1000, or all shifts where those are fewer)"},
		{Name: "seed", Kind: lang.KindInt, Default: "1", Keyword: true, Doc: "seed of the random ones"},
		slParam,
	},
	Doc: `Counts the flows on links under a pattern of traffic, or adds up the traffic of a matrix on them.
A matrix can have any unit; order, samples and seed do not apply to it.
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
> a = g.route("updn", adaptive=True).congestion("permutation", samples=5).adaptive
> a.ideal_max <= a.static_max, a.worst_max >= a.static_max
(True, True)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Pattern starlark.Value
		Order   []mad.LID
		Samples *int
		Seed    int
		slArg
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		sl, err := a.level()
		if err != nil {
			return nil, err
		}
		pattern, ok := starlark.AsString(a.Pattern)
		if !ok {
			if a.Order != nil || a.Samples != nil {
				return nil, lang.ParamError("pattern", "not supported for a traffic matrix")
			}
			flows, err := flowsOf(a.Pattern)
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
	most := starlark.Value(starlark.MakeInt(r.Max))
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
		most, loads = starlark.Float(m.MaxLoad), v.loadsByPort(m.Loads)
	}
	return &loadValue{lang.NewResult(CongestionType, starlark.String(r.Pattern), starlark.MakeInt(r.Endpoints), starlark.MakeInt(r.Samples),
		starlark.MakeUint64(r.Seed), most, starlark.Float(r.Mean), bandwidth, starlark.MakeInt64(r.Lost), worst, at, loads, adaptive, reason)}, nil
}

// flowsOf returns the flows of a traffic matrix.
func flowsOf(v starlark.Value) ([]traffic.Flow, error) {
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
		ends, err := endsOf(row[:2])
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

// endsOf returns the LIDs of a source and a destination; of a port, the first LID.
func endsOf(pair []starlark.Value) (ends [2]mad.LID, err error) {
	for i, x := range pair {
		if ends[i], err = lidOf(x); err != nil {
			return ends, err
		}
	}
	return ends, nil
}
