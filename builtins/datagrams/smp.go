package datagrams

import (
	"context"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
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

// smpTarget are the parameters of the target, between those of the attribute and of the modifier.
var smpTarget = []lang.Param{
	{Name: "target", Kind: topology.KindTarget, Default: "None", Doc: "one target or an iterable of them"},
	{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, if the attribute belongs to a port and the target names none"},
}

// smpCombined are the parameters of a combined route. smp_set has none: lid is a field of PortInfo.
var smpCombined = []lang.Param{
	{Name: "lid", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "with route=, instead of target: the LID, or a target with a LID, to which the request is routed by LID"},
	{Name: "route", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: `the directed route that it takes from there: "0,1" leaves that switch through port 1 (smpquery -c)`},
}

// smpArgs are the arguments that smp_get and smp_set share.
type smpArgs struct {
	Attr                                             records.AttributeArg
	Target                                           starlark.Value
	Port, Block, Position, InPort, OutPort, Modifier *int
}

// smpGetArgs are the arguments of smp_get.
type smpGetArgs struct {
	smpArgs
	Lid, Route starlark.Value
}

// targets resolves the targets; see topology.Resolver.Targets.
func (a *smpArgs) targets(c *lang.Call) (list []topology.Target, many bool, err error) {
	if a.Target == nil {
		return nil, false, lang.Errorf("missing argument for target: %s", c.Signature())
	}
	r := &topology.Resolver{Call: c}
	return r.Targets(a.Target)
}

// targets resolves the targets, or the combined route.
func (a *smpGetArgs) targets(c *lang.Call) (list []topology.Target, many bool, err error) {
	switch combined := a.Lid != nil || a.Route != nil; {
	case !combined:
		return a.smpArgs.targets(c)
	case a.Target != nil:
		return nil, false, lang.Errorf("target= and lid=, route= exclude each other")
	}
	r := &topology.Resolver{Call: c}
	t, err := r.Combined(a.Lid, a.Route)
	return []topology.Target{t}, false, err
}

// SMPGet is smp_get, which reads records of an attribute of subnet management.
var SMPGet = lang.Builtin{
	Name:    "smp_get",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params: slices.Concat([]lang.Param{
		{Name: "attr", Kind: records.KindSMPAttribute, Doc: `name of an attribute: "PortInfo"`},
	}, smpTarget, smpModifiers, smpCombined),
	Doc: `Reads an attribute of subnet management.
It returns a record, or a list of them for a list of targets. A target is a LID, a GUID or GID, a node name or NAME/PORT, dr(...), a node or a port. Requests to nodes and ports use their directed routes. In a list, the result of a target that fails is an error value; a single target that fails stops the script (see catch).
With lid= and route= instead of a target, the request goes to a LID, and from there along a directed route: a combined route, for a port without a LID behind a switch that has one. Only switches forward it.`,
	Example: `
> smp_get("NodeInfo", dr("0,1")).node_type
"switch"
> smp_get("NodeInfo", lid=1, route="0,1").node_type
"ca"
> sw = discover().switches[0]
> smp_get("PortInfo", sw, 1).port_state
"active"
> [i.num_ports for i in smp_get("NodeInfo", discover().switches[:2])]
[8, 8]
`,
	Run: lang.Do(func(c *lang.Call, a *smpGetArgs) (starlark.Value, error) {
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
		targets, many, err := a.targets(c)
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

// smpSetArgs are the arguments of smp_set.
type smpSetArgs struct {
	smpArgs
	Known  []starlark.Value
	Fields []starlark.Tuple
}

// SMPSet is smp_set, which changes fields of an attribute of subnet management.
var SMPSet = lang.Builtin{
	Name:    "smp_set",
	Returns: "record of attr",
	Group:   GroupMAD,
	Params: slices.Concat([]lang.Param{
		{Name: "attr", Kind: records.KindSMPAttribute, Doc: `name of an attribute: "PortInfo"; or a record from replace(), whose changed fields are written`},
	}, smpTarget, smpModifiers, []lang.Param{
		{Name: "known", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "records of the attribute, one for each target, from the latest discover() or a later answer: neither the attribute nor node GUIDs are then read again"},
		{Name: "**fields", Kind: records.KindFields, Doc: "fields to change and their new values, as words or numbers"},
	}),
	Doc: `Changes fields of an attribute of subnet management.
It reads the attribute, changes the named fields, writes it, checks the response, and returns it.
Fields whose writing has an effect (states, enabled widths and speeds, bits that 1 clears) are sent as "no change" unless they are named. For a node or port of a fabric, the node GUID is first read and checked. It requires --write, and --override-sm if a subnet manager owns the attribute; a refusal ends the script with status 2.`,
	Example: `
> sw = discover().switches[0]
> smp_set("SwitchInfo", sw, life_time_value=20).life_time_value
20
> p = smp_get("PortInfo", sw, 1)
> smp_set(p.replace(hoq_life=16), sw.ports[1]).hoq_life
16
`,
	Run: lang.Do(func(c *lang.Call, a *smpSetArgs) (starlark.Value, error) {
		attr, given, named, err := a.fieldsToSet()
		if err != nil {
			return nil, err
		}
		targets, many, err := a.targets(c)
		if err != nil {
			return nil, err
		}
		if a.Known != nil && len(a.Known) != len(targets) {
			return nil, lang.ParamError("known", "got %s for %s", plural.Count(len(a.Known), "record", "records"), plural.Count(len(targets), "target", "targets"))
		}
		values := make([]starlark.Value, len(targets))
		changes := make([]*device.Set, len(targets))
		var open []*device.Set
		for i := range targets {
			t := &targets[i]
			modifier, err := a.modifier(c, attr, t)
			if err != nil {
				return nil, err
			}
			if err := t.Reachable(); err != nil {
				values[i] = lang.NewFailure(topology.FailedRequest(c, t, err))
				continue
			}
			changes[i] = &device.Set{Dest: t.Dest(), GUID: t.GUID(), Attr: attr, Modifier: modifier, Named: named, Edit: func(data []byte) {
				for _, name := range named {
					copyField(attr.Field(name), data, given)
				}
			}}
			if a.Known != nil {
				r, ok := a.Known[i].(*records.Record)
				if !ok || r.Attribute != attr || len(r.Named) > 0 || !t.Read(c, r, modifierPort(attr, modifier)) {
					return nil, lang.ParamError("known", "element %d: got %s, want the %s of %s from the latest discover() or a later answer", i, a.Known[i].Type(), attr.Name, t.Label)
				}
				changes[i].Before = r.Data
			}
			open = append(open, changes[i])
		}
		e, err := topology.MayChange(c, attr)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(named, func(name string) bool { return attr.Field(name).Key }) {
			if err := topology.MayNotPlan(c); err != nil {
				return nil, err
			}
		}
		if err := topology.Change(c, func(ctx context.Context) error { return device.SetAttributes(ctx, e, open...) }); err != nil {
			return nil, err
		}
		for i, set := range changes {
			switch {
			case set == nil:
			case set.Err != nil:
				values[i] = topology.Failed(c, &targets[i], set.Err)
			default:
				values[i] = targets[i].Answer(records.New(attr, set.After), modifierPort(attr, set.Modifier)).ChangedBy(records.Change{Before: set.Before, Named: set.Named, Planned: topology.Planning(c)})
			}
		}
		return topology.Results(values, many)
	}),
}

// fieldsToSet returns the fields that the call names, with their values in an otherwise
// empty attribute.
func (a *smpSetArgs) fieldsToSet() (attr *mad.Attribute, given []byte, named []string, err error) {
	if r := a.Attr.Record; r != nil {
		attr, given, named = r.Attribute, slices.Clone(r.Data), slices.Clone(r.Named)
		if attr.Class.Family() != mad.ClassSubn {
			return nil, nil, nil, lang.ParamError("attr", "got %s, want a record of subnet management", r.Type())
		}
	} else {
		if attr, err = attributeOf(mad.ClassSubn, a.Attr.Name); err != nil {
			return nil, nil, nil, err
		}
		given = make([]byte, attr.Size)
	}
	if !slices.Contains(attr.Methods, mad.MethodSet) {
		return nil, nil, nil, lang.Errorf("%s cannot be set", attr.Name)
	}
	for _, kv := range a.Fields {
		f, err := records.SetNamed(attr, given, string(kv[0].(starlark.String)), kv[1])
		if err != nil {
			return nil, nil, nil, lang.Errorf("%w", err)
		}
		if !slices.Contains(named, f.Script) {
			named = append(named, f.Script)
		}
	}
	if len(named) == 0 && !(attr == mad.AttrSMInfo && a.Modifier != nil) { // its modifier is the request
		return nil, nil, nil, lang.Errorf("nothing to change; name fields, smp_set(%q, target, field=value), or give a record.replace(field=value)", attr.Name)
	}
	for _, name := range named {
		if attr.Field(name).ReadOnly {
			return nil, nil, nil, lang.Errorf("%s.%s is read-only; agents ignore it", attr.Name, name)
		}
	}
	return attr, given, named, nil
}

// copyField copies all elements of a field.
func copyField(f *mad.Field, to, from []byte) {
	if f.Bits > 64 {
		f.SetBytes(to, f.Bytes(from))
		return
	}
	for i := range f.Count {
		f.SetUintAt(to, i, f.UintAt(from, i))
	}
}
