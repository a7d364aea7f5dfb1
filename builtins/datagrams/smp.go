package datagrams

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// smpModifiers are the parts of the attribute modifier other than the port.
var smpModifiers = []lang.Param{
	{Name: "block", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "block of a table, from 0 (of VLArbitrationTable, from 1)"},
	{Name: "position", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "group of 16 ports of MulticastForwardingTable, from 0"},
	{Name: "in_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "input port of SLtoVLMappingTable"},
	{Name: "out_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "output port of SLtoVLMappingTable"},
	{Name: "modifier", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "the whole attribute modifier, instead of its parts"},
}

// smpArgs are the arguments that smp_get and smp_set share.
type smpArgs struct {
	Attr                                             records.AttributeArg
	Target                                           starlark.Value
	Port, Block, Position, InPort, OutPort, Modifier *int
}

// SMPGet is smp_get, which reads records of an attribute of subnet management.
var SMPGet = lang.Builtin{
	Name:    "smp_get",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params: append([]lang.Param{
		{Name: "attr", Kind: records.KindSMPAttribute, Doc: `name of an attribute: "PortInfo"`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the attribute belongs to a port and the target names none"},
	}, smpModifiers...),
	Doc: `Reads an attribute of subnet management.
It returns a record, or a list of them for a list of targets. A target is a LID, a GUID or GID, a node name or NAME/PORT, dr(...), a node or a port. Requests to nodes and ports use their directed routes. In a list, the result of a target that fails is an error value; a single target that fails stops the script (see catch).`,
	Example: `
> smp_get("NodeInfo", dr("0,1")).node_type
"switch"
> sw = discover().switches[0]
> smp_get("PortInfo", sw, 1).port_state
"active"
> [i.num_ports for i in smp_get("NodeInfo", discover().switches[:2])]
[8, 8]
`,
	Run: lang.Do(func(c *lang.Call, a *smpArgs) (starlark.Value, error) {
		if r := a.Attr.Record; r != nil {
			return nil, lang.ParamError("attr", "got %s, want the name of an attribute", r.Type())
		}
		attr, err := attributeOf(mad.ClassSubn, a.Attr.Name)
		if err != nil {
			return nil, err
		}
		if err := mad.Allowed(attr.Class, attr.Version, mad.MethodGet, attr.ID); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		r := &topology.Resolver{Call: c}
		targets, many, err := r.Targets(a.Target)
		if err != nil {
			return nil, err
		}
		values := make([]starlark.Value, len(targets))
		calls := make([]engine.Call, len(targets))
		var open []*engine.Call
		for i := range targets {
			t := &targets[i]
			modifier, err := a.modifier(c, attr, t)
			if err != nil {
				return nil, err
			}
			calls[i].PutSMP(mad.MethodGet, attr.ID, modifier, nil)
			if err := t.AddressSMP(&calls[i]); err != nil {
				values[i] = lang.NewFailure(topology.FailedRequest(c, t, err))
				continue
			}
			open = append(open, &calls[i])
		}
		if err := topology.Transact(c, open); err != nil {
			return nil, err
		}
		for i := range targets {
			switch {
			case values[i] != nil:
			case calls[i].Err != nil:
				values[i] = lang.NewFailure(topology.FailedRequest(c, &targets[i], calls[i].Err))
			default:
				modifier := calls[i].Header().Modifier
				values[i] = targets[i].Answer(records.NewAnswer(attr, modifier, calls[i].Data()), modifierPort(attr, modifier))
			}
		}
		topology.Observe(c, attr, targets, values)
		return topology.Results(values, many)
	}),
}
