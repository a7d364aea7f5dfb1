package topology

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/sim"
)

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
	return starlark.String(place(s.NodeName(at.Node), at.Num))
}

// rounded returns a rate in whole bytes per second.
func rounded(rate float64) starlark.Value { return starlark.MakeUint64(uint64(rate + 0.5)) }
