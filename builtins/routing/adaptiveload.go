package routing

import (
	"context"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
)

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

type slArg struct{ SL int }

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

// PortKey returns the key of a port in a dict of loads: its name, or its GUID and number where
// several nodes have the name, as those of unnamed switches.
func PortKey(p *fabric.Port) starlark.String {
	n := p.Node()
	if len(n.Fabric().NodeByName(n.Name())) > 1 {
		return starlark.String(fmt.Sprintf("%v/%d", n.GUID(), p.Num()))
	}
	return starlark.String(p.Name())
}

// loadsByPort returns a dict of [PortKey] to load, for ports with load; None: loads is nil.
func (v *Routes) loadsByPort(loads []float64) starlark.Value {
	if loads == nil {
		return starlark.None
	}
	d := new(starlark.Dict)
	for ch, load := range loads {
		if load > 0 {
			d.SetKey(PortKey(v.graph.g.ChannelPort(ch)), starlark.Float(load))
		}
	}
	return d
}

// loadValue is a congestion or balance, with a text of its own.
type loadValue struct{ *lang.Result }

// Display writes the figures of static ports, then those with choices, if any.
func (v *loadValue) Display() string {
	var rows []lang.Fact
	var adaptive *lang.Result
	reason := ""
	for _, f := range v.Facts() {
		switch f.Name {
		case "adaptive":
			adaptive, _ = f.Value.(*lang.Result)
		case "adaptive_reason":
			reason, _ = starlark.AsString(f.Value)
		default:
			rows = append(rows, f)
		}
	}
	var b strings.Builder
	b.WriteString(lang.Aligned(rows))
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
