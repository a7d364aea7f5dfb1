package datagrams

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// smpModifiers say what goes into the attribute modifier, beside the port.
var smpModifiers = []lang.Param{
	{Name: "block", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "block of a table, from 0 (of VLArbitrationTable, from 1)"},
	{Name: "position", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "16 ports of MulticastForwardingTable, from 0"},
	{Name: "in_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "input port of SLtoVLMappingTable"},
	{Name: "out_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "output port of SLtoVLMappingTable"},
	{Name: "modifier", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "the whole attribute modifier, instead of its parts"},
}

// smpParts are the parameters of which modifiers are made up.
var smpParts = [...]string{"port", "block", "position", "in_port", "out_port"}

var SMPGet = lang.Builtin{
	Name:  "smp_get",
	Group: GroupMAD,
	Params: append([]lang.Param{
		{Name: "attr", Kind: records.KindSMPAttribute, Doc: `name of an attribute: "PortInfo"`},
		{Name: "target", Kind: topology.KindTarget, Doc: "one target or an iterable of them"},
		{Name: "port", Kind: topology.KindPort, Default: "None", Doc: "port number, where the attribute is a port's and the target names none"},
	}, smpModifiers...),
	Doc: `Reads an attribute of subnet management.
It returns a record, or a list of them for a list of targets. A target is a LID, a GUID or GID, a node name or NAME/PORT, dr(...), a node or a port. Nodes and ports are asked along their directed routes. In a list, a target that fails is an error value in its place; a single target that fails stops the script (see catch).`,
	Example: `
> smp_get("NodeInfo", dr("0,1")).node_type
"switch"
> sw = discover().switches[0]
> smp_get("PortInfo", sw, 1).port_state
"active"
> [i.num_ports for i in smp_get("NodeInfo", discover().switches[:2])]
[8, 8]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		attr, err := attributeOf(c, mad.ClassSubn)
		if err != nil {
			return nil, err
		}
		if err := mad.Allowed(attr.Class, attr.Version, mad.MethodGet, attr.ID); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		r := &topology.Resolver{C: c}
		targets, many, err := r.Targets(c.Value("target"))
		if err != nil {
			return nil, err
		}
		values := make([]starlark.Value, len(targets))
		calls := make([]engine.Call, len(targets))
		var open []*engine.Call
		for i := range targets {
			t := &targets[i]
			modifier, err := smpModifier(c, attr, t)
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
				values[i] = records.NewAnswer(attr, calls[i].Header().Modifier, calls[i].Data())
			}
		}
		return topology.Results(values, many)
	}),
}

// attributeOf is the argument `attr` as an attribute of a class.
func attributeOf(c *lang.Call, class mad.Class) (*mad.Attribute, error) {
	if r, ok := c.Arg("attr").(*records.Record); ok {
		return nil, lang.ParamError("attr", "got %s, want the name of an attribute", r.Type())
	}
	a, err := attributeNamed(class, c.Text("attr"))
	if err != nil {
		return nil, lang.ParamError("attr", "%w", err)
	}
	return a, nil
}

// attributeNamed finds an attribute of a class by its exact name.
func attributeNamed(class mad.Class, name string) (*mad.Attribute, error) {
	if a := mad.LookupName(class, name); a != nil {
		return a, nil
	}
	if other := mad.ByName(name); other != nil {
		return nil, fmt.Errorf("%s is an attribute of class %v, not %v: use %s", name, other.Class, class, getterOf(other.Class))
	}
	return nil, fmt.Errorf("unknown attribute %q%s", name, fabric.DidYouMean(name, AttributeNames(class)))
}

func getterOf(class mad.Class) string {
	switch class.Family() {
	case mad.ClassSubn:
		return "smp_get"
	case mad.ClassPerf:
		return "perf_get"
	case mad.ClassSubnAdm:
		return "sa_get or sa_gettable"
	}
	return "mad_get"
}

// AttributeNames lists the attributes of a class, as its current version has
// them, in the order of their numbers.
func AttributeNames(class mad.Class) []string {
	var names []string
	for _, a := range mad.Attributes() {
		if a.Class.Family() == class.Family() && a.Version == class.Version() {
			names = append(names, a.Name)
		}
	}
	return names
}

// smpModifier makes the attribute modifier of what the call and the target say.
func smpModifier(c *lang.Call, attr *mad.Attribute, t *topology.Target) (uint32, error) {
	if c.Has("modifier") {
		for _, name := range smpParts {
			if c.Has(name) {
				return 0, fmt.Errorf("%s: modifier is the whole attribute modifier: give it or %s, not both", c.Name, name)
			}
		}
		n := c.Int("modifier")
		if n < 0 || int64(n) > 0xffffffff {
			return 0, lang.ParamError("modifier", "got %d, want 0..0xffffffff", n)
		}
		return uint32(n), nil
	}
	known := map[string]bool{}
	var modifier uint32
	for _, part := range attr.Modifier {
		known[part.Name] = true
		n, err := modifierPart(c, attr, part, t)
		if err != nil {
			return 0, err
		}
		if most := 1<<part.Bits - 1; n < 0 || n > most {
			return 0, lang.ParamError(part.Name, "got %d, want 0..%d", n, most)
		}
		modifier |= uint32(n) << part.Shift
	}
	for _, name := range smpParts {
		if c.Has(name) && !known[name] {
			return 0, fmt.Errorf("%s: %s has no %s: its modifier says %s", c.Name, attr.Name, name, records.ModifierWords(attr))
		}
	}
	return modifier, nil
}

// modifierPart is one part of the modifier. A port must be given, by the
// target or by a parameter, for 0 is a port too; blocks begin with the first.
func modifierPart(c *lang.Call, attr *mad.Attribute, part mad.ModifierPart, t *topology.Target) (int, error) {
	isCA := t.Node != nil && !t.Node.IsSwitch()
	switch part.Name {
	case "port":
		return portOf(c, attr, t, attr == mad.AttrPKeyTable && isCA)
	case "in_port", "out_port":
		if c.Has(part.Name) {
			return c.Int(part.Name), checkPort(c, part.Name, c.Int(part.Name), t)
		}
		if isCA { // it has no mapping but its own
			return 0, nil
		}
		if part.Name == "out_port" && t.Port != topology.NoPortGiven {
			return t.Port, nil
		}
		return 0, fmt.Errorf("%s: %s needs %s: %s(%q, target, in_port=0, out_port=1)", c.Name, attr.Name, part.Name, c.Name, attr.Name)
	case "position":
		if c.Has("position") {
			return c.Int("position"), nil
		}
	case "block":
		n := c.Int("block")
		switch {
		case attr != mad.AttrVLArbitrationTable:
			return n, nil
		case !c.Has("block"):
			return 1, nil
		case n < 1 || n > 4:
			return 0, lang.ParamError("block", "got %d, want 1 or 2 (low priority), 3 or 4 (high priority)", n)
		}
		return n, nil
	}
	return 0, nil
}

// portOf is the port that an attribute is asked for. ignored: the node takes
// no notice of it.
func portOf(c *lang.Call, attr *mad.Attribute, t *topology.Target, ignored bool) (int, error) {
	if ignored {
		return 0, nil
	}
	if c.Has("port") {
		n := c.Int("port")
		if t.Port != topology.NoPortGiven && t.Port != n {
			return 0, fmt.Errorf("%s: the target is %s, but port says %d", c.Name, t.Label, n)
		}
		return n, checkPort(c, "port", n, t)
	}
	if t.Port != topology.NoPortGiven || t.Err != nil {
		return max(t.Port, 0), nil
	}
	if !c.HasParam("attr") { // port_disable, get_pkeys
		return 0, fmt.Errorf("%s: neither the target (%s) nor a parameter names a port: %s(target, 1)", c.Name, t.Label, c.Name)
	}
	return 0, fmt.Errorf("%s: %s is a port's, and neither the target (%s) nor a parameter names one: %s(%q, target, 1)", c.Name, attr.Name, t.Label, c.Name, attr.Name)
}

// checkPort checks a port number where it is known how many there are. Port 0
// of a CA is the one that the request comes in through.
func checkPort(c *lang.Call, param string, n int, t *topology.Target) error {
	switch {
	case n < 0 || n > 255:
		return lang.ParamError(param, "got %d, want 0..255", n)
	case t.Node != nil && n != 0 && t.Node.Port(n) == nil:
		return lang.ParamError(param, "%w", topology.NoPort(t.Node, fmt.Sprint(n)))
	}
	return nil
}
