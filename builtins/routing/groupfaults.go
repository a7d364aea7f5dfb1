package routing

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/verify"
)

// groupFaultsMethod is routes.group_faults(): what is wrong with port groups.
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
