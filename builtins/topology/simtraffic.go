package topology

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/sim"
	"fabsh/fabric/sim/spec"
)

// setCountersMethod is sim.set_counters().
var setCountersMethod = lang.Builtin{
	Name: "set_counters",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "**counters", Kind: lang.KindAny, Doc: "counters of performance management, by the names of their fields; a counter of a lane or service level has its number at the end: port_xmit_data_sl3"},
	},
	Doc: `Sets counters of a port.
An attribute whose field is too small for the value shows the maximum of the field.`,
	Example: `
> f = discover()
> sim.set_counters("leaf-1/2", symbol_error_counter=9)
> perf_get("PortCounters", "leaf-1/2").symbol_error_counter
9
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port     starlark.Value
		Counters []starlark.Tuple
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		values := map[string]uint64{}
		for _, kv := range a.Counters {
			name, _ := starlark.AsString(kv[0])
			n, ok := kv[1].(starlark.Int)
			v, fits := n.Uint64()
			if !ok || !fits {
				return nil, lang.ParamError(name, "got %v, want a 64-bit int from 0", kv[1])
			}
			values[name] = v
		}
		return changeSim(c, func() error { return s.Counters.Set(at.Node, at.Num, values) })
	}),
}

// errorsMethod is sim.errors().
var errorsMethod = lang.Builtin{
	Name: "errors",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "**rates", Kind: lang.KindAny, Doc: `counters of performance management, by the names of their fields, and the rate of each: "2/s", "5/m", "1/h", or a number per second; 0 stops it`},
	},
	Doc: `Makes counters of a port increase with time.
This is the session's time: with --virtual-time, and in tests, it advances while the script sleeps.`,
	Example: `
> f = discover()
> sim.errors("leaf-1/2", symbol_error_counter="20/s")
> sleep("100ms")
> perf_get("PortCounters", "leaf-1/2").symbol_error_counter >= 2
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Port  starlark.Value
		Rates []starlark.Tuple
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		at, err := s.portAt(a.Port)
		if err != nil {
			return nil, lang.ParamError("port", "%w", err)
		}
		rates := map[string]float64{}
		for _, kv := range a.Rates {
			name, _ := starlark.AsString(kv[0])
			if rates[name], err = toRate(kv[1]); err != nil {
				return nil, lang.ParamError(name, "%w", err)
			}
		}
		return changeSim(c, func() error { return s.Counters.SetRates(at.Node, at.Num, rates) })
	}),
}

// trafficMethod is sim.traffic().
var trafficMethod = lang.Builtin{
	Name: "traffic",
	Params: []lang.Param{
		{Name: "pairs", Kind: lang.KindItems, Default: "None", Doc: `pairs of senders and receivers: nodes or ports, NAME or NAME/PORT; a third item is a service level, 0 to 15; None: with n CAs, each sends to the CA n/2 positions after it`},
		{Name: "rate", Kind: lang.KindAny, Default: `"1GB/s"`, Keyword: true, Doc: `rate of each sender: "10GB/s" of bytes, "100Gb/s" of bits, or a number of bytes per second`},
	},
	Doc: `Makes ports send to others, instead of all earlier traffic; sim.traffic([]) stops it.
The traffic follows the forwarding tables, also when they change, and increases the counters of the ports on its routes. If a link cannot carry all of it, virtual lanes share the link by VL arbitration, then input ports equally, then the flows of an input port as they arrive; the ports before the link wait (PortXmitWait). Traffic without a route is counted as discarded at the port where its route ends. A receiver that takes no packets (dead= of -F sim:) makes the port before it discard each packet after HOQLife, and flows of the same lane behind such packets wait. sim.flows() shows the rates.`,
	Example: `
> f = discover()
> sim.traffic([("node-0001 HCA-1", "node-0032 HCA-1")], rate="10GB/s")
> sleep("100ms")
> perf_get("PortCountersExtended", "node-0032 HCA-1/1").port_rcv_data > 0
True
> sim.traffic([])
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Pairs *[]starlark.Value
		Rate  starlark.Value
	}) (starlark.Value, error) {
		s := c.Recv.(*Sim).indexed()
		rate := 1e9
		if a.Rate != nil {
			var err error
			if rate, err = toBandwidth(a.Rate); err != nil {
				return nil, lang.ParamError("rate", "%w", err)
			}
		}
		flows := []sim.Flow{}
		var pairs []starlark.Value
		if a.Pairs == nil {
			flows = s.Traffic.HostPairs(rate)
		} else {
			pairs = *a.Pairs
		}
		for _, v := range pairs {
			pair, ok := v.(starlark.Indexable)
			if _, text := v.(starlark.String); !ok || text || pair.Len() < 2 || pair.Len() > 3 {
				return nil, lang.ParamError("pairs", "got %s, want pairs of a sender and a receiver", v.Type())
			}
			sl := 0
			if pair.Len() == 3 {
				if err := starlark.AsInt(pair.Index(2), &sl); err != nil || sl < 0 || sl > 15 {
					return nil, lang.ParamError("pairs", "got service level %v, want 0 to 15", pair.Index(2))
				}
			}
			from, err := s.placeAt(pair.Index(0), 0)
			if err != nil {
				return nil, lang.ParamError("pairs", "%w", err)
			}
			to, err := s.placeAt(pair.Index(1), 0)
			if err != nil {
				return nil, lang.ParamError("pairs", "%w", err)
			}
			flows = append(flows, sim.Flow{From: from, To: to, Rate: rate, SL: uint8(sl)})
		}
		return changeSim(c, func() error { return s.Traffic.Set(flows) })
	}),
}

// toRate converts a rate to a number per second.
func toRate(v starlark.Value) (float64, error) {
	rate, ok := rateNumber(v)
	if text, is := v.(starlark.String); is {
		rate, ok = spec.ParseRate(string(text))
	}
	if !ok {
		return 0, fmt.Errorf(`got %v, want a rate: "2/s", "5/m", "1/h", or a number per second`, v)
	}
	return rate, nil
}

// toBandwidth converts a rate to bytes per second.
func toBandwidth(v starlark.Value) (float64, error) {
	rate, ok := rateNumber(v)
	if text, is := v.(starlark.String); is {
		rate, ok = spec.ParseBandwidth(string(text))
	}
	if !ok {
		return 0, fmt.Errorf(`got %v, want a rate: "10GB/s" of bytes, "100Gb/s" of bits, or a number of bytes per second`, v)
	}
	return rate, nil
}

// rateNumber converts a number that can be a rate.
func rateNumber(v starlark.Value) (float64, bool) {
	f, ok := starlark.AsFloat(v)
	if _, text := v.(starlark.String); text {
		return 0, false
	}
	return f, ok && spec.ValidRate(f)
}

// FlowType is the type of the flows of sim.flows().
var FlowType = &lang.ResultType{
	Name: "flow",
	Doc:  "A flow of the traffic of a simulated fabric.",
	Members: []lang.ResultMember{
		{Name: "sender", Doc: "the port that sends"},
		{Name: "receiver", Doc: "the port that it sends to"},
		{Name: "sl", Doc: "service level"},
		{Name: "rate", Doc: "requested rate, in bytes per second"},
		{Name: "carried", Doc: "rate that arrives, in bytes per second; 0: there is no route, or the receiver takes no packets"},
		{Name: "limit", Doc: "the port whose link limits the flow; None: no link does"},
	},
}

// flowsMethod is sim.flows().
var flowsMethod = lang.Builtin{
	Name:    "flows",
	Returns: "list of flow",
	Doc: `Returns the flows of sim.traffic(), with the rates that the links carry at present.
Ports are named NAME/PORT.`,
	Example: `
> sim.traffic([("node-0001 HCA-1", "node-0032 HCA-1"), ("node-0002 HCA-1", "node-0032 HCA-1")], rate="25GB/s")
> sim.flows()
sender             receiver           sl         rate      carried  limit
node-0001 HCA-1/1  node-0032 HCA-1/1   0  25000000000  12500000000  leaf-1/8
node-0002 HCA-1/1  node-0032 HCA-1/1   0  25000000000  12500000000  leaf-1/8
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		s := c.Recv.(*Sim)
		flows := s.Traffic.Flows()
		return lang.List(flows, func(f sim.FlowRate) starlark.Value {
			return lang.NewResult(FlowType, s.portName(f.From), s.portName(f.To), starlark.MakeInt(int(f.SL)), rounded(f.Rate), rounded(f.Carried), lang.OrNone(f.Limit.Node != 0, s.portName(f.Limit)))
		}), nil
	}),
}

// decodeFlows returns the flows of another process, which are dicts, as results.
func decodeFlows(v starlark.Value) (starlark.Value, error) {
	list, ok := v.(*starlark.List)
	if !ok {
		return nil, lang.Errorf("invalid reply: got %s, want a list of flows", v.Type())
	}
	flows := make([]starlark.Value, 0, list.Len())
	for item := range list.Elements() {
		fields, ok := item.(*starlark.Dict)
		if !ok {
			return nil, lang.Errorf("invalid reply: got %s, want a flow", item.Type())
		}
		var values []starlark.Value
		for _, m := range FlowType.Members {
			value, found, err := fields.Get(starlark.String(m.Name))
			if err != nil || !found {
				return nil, lang.Errorf("invalid reply: a flow without %s", m.Name)
			}
			values = append(values, value)
		}
		flows = append(flows, lang.NewResult(FlowType, values...))
	}
	return starlark.NewList(flows), nil
}

func (s *Sim) portName(at sim.Cable) starlark.Value {
	return starlark.String(placeName(s.NodeName(at.Node), at.Num))
}

// rounded returns a rate in whole bytes per second.
func rounded(rate float64) starlark.Value { return starlark.MakeUint64(uint64(rate + 0.5)) }
