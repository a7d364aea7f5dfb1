package routing

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// ChoicesType is the type of the result of routes.choices().
var ChoicesType = &lang.ResultType{
	Name:      "choices",
	Doc:       "The ports that a switch may send packets to a LID by. It iterates over their numbers.",
	Important: []string{"lid", "ports", "state", "static"},
	Members: []lang.ResultMember{
		{Name: "lid", Type: "int", Doc: "destination"},
		{Name: "ports", Type: "list of int", Doc: "all ports that a packet of any transport may take, static port included; empty: packets are dropped"},
		{Name: "state", Type: "string", Words: records.WordsOf(mad.WordsARState), Doc: `"bounded" or "free": adaptive, a port for a flow or for each packet; "hbf": by a hash; "static"`},
		{Name: "static", Type: "int", Doc: "the static port; None where the LID has no port"},
		{Name: "group", Type: "int", Doc: "the number of the port group; None where no packet uses it"},
		{Name: "sub_groups", Type: "list", Doc: "lists of the ports of its sub-groups, the primary one first"},
		{Name: "ways", Type: "list of string", Doc: `how packets find their port, depending on transport and SL: "adaptive" (by load), "hashed", "static"; "recovers": another port of the group if the link of their port is down`},
		{Name: "plft", Type: "int", Doc: "the private LFT that they follow"},
	},
}

// choicesValue is the value `choices`.
type choicesValue struct{ *lang.Result }

// Len returns the number of ports.
func (x *choicesValue) Len() int { return x.ports().Len() }

func (x *choicesValue) Iterate() starlark.Iterator { return x.ports().Iterate() }

// Index returns a port.
func (x *choicesValue) Index(i int) starlark.Value { return x.ports().Index(i) }

func (x *choicesValue) ports() *starlark.List {
	ports, _ := x.Attr("ports")
	return ports.(*starlark.List)
}

// newChoices returns c as a value.
func newChoices(lid mad.LID, c adaptive.Choice) *choicesValue {
	var ways, groups []starlark.Value
	for _, w := range []struct {
		name string
		is   bool
	}{{"adaptive", c.Adaptive}, {"hashed", c.Hashed}, {"static", c.Direct}, {"recovers", c.Recovers}} {
		if w.is {
			ways = append(ways, starlark.String(w.name))
		}
	}
	var group, static starlark.Value = starlark.None, starlark.None
	if c.Adaptive || c.Hashed || c.Recovers {
		group = starlark.MakeInt(int(c.Group))
	}
	if c.Port != routes.NoPort {
		static = starlark.MakeInt(int(c.Port))
	}
	for _, s := range c.SubGroups {
		groups = append(groups, portNumbers(s))
	}
	return &choicesValue{lang.NewResult(ChoicesType, starlark.MakeInt(int(lid)), portNumbers(c.Ports), starlark.String(c.State.String()), static, group,
		starlark.NewList(groups), starlark.NewList(ways), starlark.MakeInt(int(c.PLFT)))}
}

// portNumbers returns a set of ports as a list of their numbers.
func portNumbers(s adaptive.Ports) starlark.Value {
	var list []int
	for p := range s.All() {
		list = append(list, int(p))
	}
	return lang.Integers(list)
}

// choicesMethod is routes.choices(): the ports that packets may take.
var choicesMethod = lang.Builtin{
	Name:    "choices",
	Returns: "choices",
	Params: []lang.Param{
		{Name: "switch", Kind: lang.KindAny, Doc: "the switch: a node, a GUID or a name"},
		{Name: "lid", Kind: lang.KindAny, Doc: "destination: a LID, a port or a node"},
		{Name: "sl", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "service level, 0..15"},
		{Name: "in_port", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "the port that packets come in by, 0: from the switch itself (default: any; an error if it matters)"},
	},
	Doc: `Returns the ports that a switch may send packets to a LID by: choices.
Where the switch routes adaptively, these are the ports of a group, and the static port if some transport takes it; else the static port alone, which routes[switch][lid] is.`,
	Example: `
> t = discover().graph().route("updn", adaptive=True)
> t.choices("leaf-1", 20)
lid         20
ports       [5, 6, 7, 8]
state       bounded
static      8
group       0
sub_groups  [[5, 6, 7, 8]]
ways        ["adaptive", "static"]
plft        0
> t.choices("spine-1", 20).ports
[2]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Switch starlark.Value
		LID    starlark.Value
		SL     int
		InPort *int
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		s, err := v.graph.switchOf(a.Switch)
		if err != nil {
			return nil, lang.ParamError("switch", "%w", err)
		}
		lid, err := firstLID(v.graph.g.Fabric(), a.LID)
		if err != nil {
			return nil, lang.ParamError("lid", "%w", err)
		}
		if a.SL < 0 || a.SL > 15 {
			return nil, lang.ParamError("sl", "got %d, want 0..15", a.SL)
		}
		n := v.graph.g.Switches()[s]
		p := adaptive.Packet{LID: lid, SL: uint8(a.SL)}
		if a.InPort != nil {
			if *a.InPort < 0 || *a.InPort > n.NumPorts() {
				return nil, lang.ParamError("in_port", "%s has ports from 1 to %d, not %d", n.Label(), n.NumPorts(), *a.InPort)
			}
			p.In = uint8(*a.InPort)
			return newChoices(lid, v.Tables.Choice(s, p)), nil
		}
		choice := v.Tables.Choice(s, p)
		for in := 1; in <= n.NumPorts(); in++ {
			p.In = uint8(in)
			if other := v.Tables.Choice(s, p); !other.Equal(&choice) {
				return nil, lang.ParamError("in_port", "missing; packets that come in by port %d of %s have other choices than those from the switch itself", in, n.Label())
			}
		}
		return newChoices(lid, choice), nil
	}),
}

// setChoicesMethod is routes.set_choices(): the ports that packets may take.
var setChoicesMethod = lang.Builtin{
	Name: "set_choices",
	Params: []lang.Param{
		{Name: "switch", Kind: lang.KindAny, Doc: "the switch: a node, a GUID or a name"},
		{Name: "lids", Kind: kindLIDs, Doc: "LIDs, or ports or nodes, which stand for their LIDs"},
		{Name: "ports", Kind: lang.KindItems, Doc: "port numbers, or ports"},
	},
	Doc: `Lets a switch choose adaptively among ports for packets to LIDs, in these routes: to be verified and simulated. It changes no switch, and no plan has it.
Equal sets of ports share a group. The static port stays if it is among the ports; else it becomes the lowest of them. One port alone is a static entry.`,
	Example: `
> t = discover().graph().route("ftree")
> t.set_choices("leaf-1", [20, 21], [5, 6])
> t.choices("leaf-1", 20).ports, t["leaf-1"][20], t.choices("leaf-1", 21).group
([5, 6], 5, 0)
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct {
		Switch starlark.Value
		LIDs   []mad.LID
		Ports  []starlark.Value
	}) (starlark.Value, error) {
		s, err := v.graph.switchOf(a.Switch)
		if err != nil {
			return nil, lang.ParamError("switch", "%w", err)
		}
		row := rowValue{of: v, s: s}
		var ports adaptive.Ports
		for i, item := range a.Ports {
			p, err := row.port(item)
			if err == nil && (p == 0 || p == routes.NoPort) {
				err = fmt.Errorf("got %s, want a port", item)
			}
			if err != nil {
				return nil, lang.ParamError("ports", "element %d: %w", i, err)
			}
			ports.Add(p)
		}
		if err := v.Tables.SetChoices(s, a.LIDs, ports); err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return starlark.None, nil
	}),
}

// groupFaultsMethod is routes.group_faults(): the faults of port groups.
var groupFaultsMethod = lang.Builtin{
	Name:    "group_faults",
	Returns: "list of dict",
	Doc: `Checks the port groups of switches that route adaptively: a list of dict, by switch and group.
Each has switch (a node), kind, plft, group, lid (the first for which it holds), lids (how many LIDs have the group) and port (a number). A group has at most one fault, the first of these kinds:
above (the group is above the last one), empty (it has no ports), dead (port does not exist or has no link), illegal (port leads to another end port, or to a switch that is not nearer and from which packets may return), lacks_static (port, the static port of lid, is not in the group), unequal (another group for the same switch has other ports).
Switches whose tables are unknown, or not all known, have kind unknown and a reason.`,
	Example: `
> t = discover().graph().route("updn", adaptive=True)
> t.group_faults()
[]
> t.set_choices("leaf-1", [20], [1, 5])
> [(x["kind"], x["lid"], x["port"]) for x in t.group_faults()]
[("illegal", 20, 1)]
`,
	Run: lang.Do(func(c *lang.Call, a *struct{}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		var faults []verify.GroupFault
		if err := c.Block(func(ctx context.Context) (err error) {
			faults, err = verify.Groups(ctx, v.Tables)
			return err
		}); err != nil {
			return nil, err
		}
		var list []starlark.Value
		switches := v.graph.switches()
		for s := range switches {
			if a := v.Tables.Adaptive(s); a != nil && a.Unknown != "" {
				list = append(list, lang.DictOf("switch", switches[s], "kind", starlark.String("unknown"), "reason", starlark.String(a.Unknown)))
			}
		}
		for _, f := range faults {
			list = append(list, lang.DictOf("switch", switches[f.Switch], "kind", starlark.String(f.Kind.String()), "plft", starlark.MakeInt(int(f.PLFT)), "group", starlark.MakeInt(int(f.Group)),
				"lid", starlark.MakeInt(int(f.LID)), "lids", starlark.MakeInt(f.LIDs), "port", topology.LFTEntry(f.Port)))
		}
		return starlark.NewList(list), nil
	}),
}

// adaptiveLIDs is routes.adaptive_lids.
func adaptiveLIDs(v *Routes) starlark.Value {
	var lids starlark.Tuple
	for _, lid := range verify.AdaptiveLIDs(v.Tables) {
		lids = append(lids, starlark.MakeInt(int(lid)))
	}
	return lids
}
