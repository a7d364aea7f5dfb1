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
		{Name: "**counters", Kind: lang.KindAny, Doc: "counters of performance management, by the names of their fields; of one for each lane or service level with its number behind: port_xmit_data_sl3"},
	},
	Doc: `Sets counters of a port.
Where an attribute has no room for a value, it shows its largest.`,
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
				return nil, lang.ParamError(name, "got %v, want an int from 0 on of 64 bits", kv[1])
			}
			values[name] = v
		}
		return alter(c, func() error { return s.Counters.Set(at.Node, at.Num, values) })
	}),
}

// errorsMethod is sim.errors().
var errorsMethod = lang.Builtin{
	Name: "errors",
	Params: []lang.Param{
		{Name: "port", Kind: KindTarget, Doc: `a port of a fabric, or "NAME/PORT"`},
		{Name: "**rates", Kind: lang.KindAny, Doc: `counters of performance management, by the names of their fields, and how fast each grows: "2/s", "5/m", "1/h", or a number a second; 0 ends it`},
	},
	Doc: `Makes counters of a port grow with time.
That is the session's time: with --virtual-time, and in tests, it passes while the script sleeps.`,
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
		return alter(c, func() error { return s.Counters.SetRates(at.Node, at.Num, rates) })
	}),
}

// trafficMethod is sim.traffic().
var trafficMethod = lang.Builtin{
	Name: "traffic",
	Params: []lang.Param{
		{Name: "pairs", Kind: lang.KindItems, Default: "None", Doc: `pairs of senders and receivers: nodes or ports, NAME or NAME/PORT; None: each CA sends to the one that is half of all further on`},
		{Name: "rate", Kind: lang.KindAny, Default: `"1GB/s"`, Keyword: true, Doc: `what each sends: "10GB/s" of bytes, "100Gb/s" of bits, or a number of bytes a second`},
	},
	Doc: `Has ports send to others, in place of all traffic before; sim.traffic([]) ends it.
It goes the way that the forwarding tables say, also when they change, and moves the counters of the ports on it. A link carries no more than its rate: what goes through it gets the same share less, and the ports before it wait (PortXmitWait). What has no way is counted where it is lost.`,
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
			if _, text := v.(starlark.String); !ok || text || pair.Len() != 2 {
				return nil, lang.ParamError("pairs", "got %s, want pairs of a sender and a receiver", v.Type())
			}
			from, err := s.placeAt(pair.Index(0), 0)
			if err != nil {
				return nil, lang.ParamError("pairs", "%w", err)
			}
			to, err := s.placeAt(pair.Index(1), 0)
			if err != nil {
				return nil, lang.ParamError("pairs", "%w", err)
			}
			flows = append(flows, sim.Flow{From: from, To: to, Rate: rate})
		}
		return alter(c, func() error { return s.Traffic.Set(flows) })
	}),
}

// toRate is a number a second.
func toRate(v starlark.Value) (float64, error) {
	rate, ok := number(v)
	if text, is := v.(starlark.String); is {
		rate, ok = spec.ParseRate(string(text))
	}
	if !ok {
		return 0, fmt.Errorf(`got %v, want a rate: "2/s", "5/m", "1/h", or a number a second`, v)
	}
	return rate, nil
}

// toBandwidth is a number of bytes a second.
func toBandwidth(v starlark.Value) (float64, error) {
	rate, ok := number(v)
	if text, is := v.(starlark.String); is {
		rate, ok = spec.ParseBandwidth(string(text))
	}
	if !ok {
		return 0, fmt.Errorf(`got %v, want a rate: "10GB/s" of bytes, "100Gb/s" of bits, or a number of bytes a second`, v)
	}
	return rate, nil
}

// number is a number that may be a rate.
func number(v starlark.Value) (float64, bool) {
	f, ok := starlark.AsFloat(v)
	if _, text := v.(starlark.String); text {
		return 0, false
	}
	return f, ok && spec.ValidRate(f)
}
