// Package hosts has the values of hosts in groups, for job schedulers.
//
//	groups.go fabric.host_groups(), and its values
//	list.go   hostlist: lists of names in Slurm's notation
//	file.go   the content of a scheduler's file, compared with groups or another file

package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/routing/graph"
)

// HostGroupsMethod is fabric.host_groups().
var HostGroupsMethod = lang.Builtin{
	Name:    "host_groups",
	Returns: "host_groups",
	Params: []lang.Param{
		{Name: "classes", Kind: KindClasses, Default: "None", Keyword: true, Doc: "a dict of class to its members, as for select; only compute nodes (cn) are in the groups"},
		{Name: "baseline", Kind: kindHostsFabric, Default: "None", Keyword: true, Doc: "an earlier fabric, with the places of hosts, switches and cables that are missing now"},
		{Name: "levels", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "maximum number of levels of groups below the roots; 0: all levels of the network; 1: only the leaves, for any network"},
		{Name: "dns", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "use names in lower case, as for Kubernetes nodes; hosts whose name cannot be one are omitted"},
	},
	Doc: `Returns the hosts in groups for job schedulers: by leaf, and leaves by the number of levels that packets between them go up.
The host is the first word of an adapter's name: "node-7 HCA-1". A name of more than two words does not name a host. If hosts have adapters at several leaves, one for each rail, the leaves that serve the same hosts are one group, a scalable unit. Each connected part has one root. A group has the name of its first leaf, so that its name stays the same when other leaves are added or removed.`,
	Example: `
> g = discover().host_groups()
> g.roots[0].name, [x.name for x in g.leaves]
("root", ["leaf-1", "leaf-2", "leaf-3", "leaf-4", "leaf-5", "leaf-6", "leaf-7", "leaf-8"])
> hostlist.fold(g.leaves[0].hosts)
"node-[0001-0004]"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Classes  []graph.Rule
		Baseline *fabric.Fabric
		Levels   int
		Dns      bool
	}) (starlark.Value, error) {
		if a.Levels < 0 {
			return nil, lang.ParamError("levels", "invalid number %d; want 0 or more", a.Levels)
		}
		g, err := hosts.Find(c.Recv.(*topology.Fabric).Fabric, hosts.GroupOptions{Rules: a.Classes, Baseline: a.Baseline, Levels: a.Levels, DNS: a.Dns})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return WrapHostGroups(g), nil
	}),
}

// kindHostsFabric is a fabric.
var kindHostsFabric = &lang.Kind{Type: fabricType, Convert: toFabric}

// HostGroupsType is the type of the result of host_groups().
var HostGroupsType = &lang.ResultType{
	Name: "host_groups",
	Doc:  "The hosts of a fabric, in groups for job schedulers. All hosts are in the same number of groups.",
	Members: []lang.ResultMember{
		{Name: "roots", Type: "list of host_group", Doc: "one root for each connected part"},
		{Name: "leaves", Type: "list of host_group", Doc: "the groups of level 0, in the order of the tree"},
		{Name: "no_tree", Doc: "why there are no groups between leaves and roots, in words; None if there are, or with levels=1"},
		{Name: "notes", Doc: "remarks about omitted hosts and unusual connections"},
	},
}

// HostGroupType is the type of a group.
var HostGroupType = &lang.ResultType{
	Name: "host_group",
	Doc:  "Hosts that are near each other: on level 0 those at a leaf or at the leaves of a scalable unit, on other levels groups.",
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: "at most 63 letters, digits, - and _; unique, ignoring case"},
		{Name: "level", Doc: "0 for a leaf or a unit"},
		{Name: "hosts", Doc: "names of all hosts in the group; on level 0 in natural order"},
		{Name: "groups", Type: "list of host_group", Doc: "groups of the level below"},
		{Name: "switches", Doc: "on level 0: names of its leaves"},
	},
}

// HostGroups is the value of groups.
type HostGroups struct {
	*lang.Result
	Found *hosts.Groups
}

// WrapHostGroups returns the value of g.
func WrapHostGroups(g *hosts.Groups) *HostGroups {
	var leaves []starlark.Value
	var wrap func(list []*hosts.Group) *starlark.List
	wrap = func(list []*hosts.Group) *starlark.List {
		return lang.List(list, func(x *hosts.Group) starlark.Value {
			v := lang.NewResult(HostGroupType, starlark.String(x.Name), starlark.MakeInt(x.Level), lang.Texts(x.Hosts), wrap(x.Groups), lang.Texts(x.Switches))
			if x.Level == 0 {
				leaves = append(leaves, v)
			}
			return v
		})
	}
	roots := wrap(g.Roots)
	return &HostGroups{lang.NewResult(HostGroupsType, roots, starlark.NewList(leaves), lang.TextOrNone(g.NoTree), lang.Texts(g.Notes)), g}
}
