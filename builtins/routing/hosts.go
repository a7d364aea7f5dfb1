package routing

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/hosts"
	"fabsh/fabric/routing/graph"
)

// HostGroupsMethod is fabric.host_groups().
var HostGroupsMethod = lang.Builtin{
	Name:    "host_groups",
	Returns: "host_groups",
	Params: []lang.Param{
		{Name: "classes", Kind: kindClasses, Default: "None", Keyword: true, Doc: "a dict of class to its members, as for select, where a switch stands for the adapters at it; only compute nodes (cn) are in the groups"},
		{Name: "baseline", Kind: kindFabric, Default: "None", Keyword: true, Doc: "an earlier fabric, with the places of hosts, switches and cables that are missing now"},
		{Name: "levels", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "maximum number of levels of groups below the roots; 0: all levels of the network; 1: only the leaves, for any network"},
		{Name: "dns", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "use names in lower case, as for Kubernetes nodes; hosts whose name cannot be one are omitted"},
	},
	Doc: `Returns the hosts in groups for job schedulers: by leaf, and leaves by the number of levels that packets between them go up.
The host is the first word of an adapter's name: "node-7 HCA-1". A name of more than two words, and a placeholder such as "localhost", does not name a host; hosts with the same name are an error. If hosts have adapters at several leaves, one for each rail, the leaves that serve the same hosts are one group, a scalable unit. A leaf that serves hosts of several groups, which have more adapters elsewhere, is inferred to be one of storage or management, and makes no group (notes); if they have as many adapters there as elsewhere, that is an error: give its class. Each connected part has one root. A group has the name of its first leaf, so that its name stays the same when other leaves are added or removed.`,
	Example: `
> g = discover().host_groups()
> g.roots[0].name, [x.name for x in g.leaves]
("root", ["leaf-1", "leaf-2", "leaf-3", "leaf-4", "leaf-5", "leaf-6", "leaf-7", "leaf-8"])
> hostlist.fold(g.leaves[0].hosts)
"node-[0001-0004]"
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Classes  []graph.Rule
		Baseline *topology.Fabric
		Levels   int
		Dns      bool
	}) (starlark.Value, error) {
		if a.Levels < 0 {
			return nil, lang.ParamError("levels", "invalid number %d; want 0 or more", a.Levels)
		}
		o := hosts.GroupOptions{Rules: a.Classes, Levels: a.Levels, DNS: a.Dns}
		if a.Baseline != nil {
			o.Baseline = a.Baseline.Fabric
		}
		g, err := hosts.Find(c.Recv.(*topology.Fabric).Fabric, o)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return WrapHostGroups(g), nil
	}),
}

// HostGroupsType is the type of the result of host_groups().
var HostGroupsType = &lang.ResultType{
	Name: "host_groups",
	Doc:  "The hosts of a fabric, in groups for job schedulers. All hosts are in the same number of groups.",
	Members: []lang.ResultMember{
		{Name: "roots", Type: "list of host_group", Doc: "one root for each connected part"},
		{Name: "leaves", Type: "list of host_group", Doc: "the groups of level 0, in the order of the tree"},
		{Name: "domains", Type: "bool", Doc: "groups of level 0 are NVLink domains (fabsh topology --domains)"},
		{Name: "no_tree", Doc: "why there are no groups between leaves and roots, in words; None if there are, or with levels=1"},
		{Name: "notes", Doc: "remarks about omitted hosts and unusual connections"},
	},
}

// HostGroupType is the type of a group.
var HostGroupType = &lang.ResultType{
	Name:      "host_group",
	Doc:       "Hosts that are near each other: on level 0 those at a leaf or at the leaves of a scalable unit, on other levels groups.",
	Important: []string{"name", "hosts", "groups", "switches"},
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
	return &HostGroups{lang.NewResult(HostGroupsType, roots, starlark.NewList(leaves), starlark.Bool(g.Domains), lang.TextOrNone(g.NoTree), lang.Texts(g.Notes)), g}
}

// HostListModule is hostlist: lists of names in Slurm's notation.
var HostListModule = &starlarkstruct.Module{
	Name: "hostlist",
	Members: starlark.StringDict{
		"expand": lang.NewFunction(&HostListExpand),
		"fold":   lang.NewFunction(&HostListFold),
	},
}

// HostListFold is hostlist.fold.
var HostListFold = lang.Builtin{
	Name:   "hostlist.fold",
	Group:  lang.GroupOutput,
	Params: []lang.Param{{Name: "names", Kind: lang.KindItems, Doc: "texts, nodes or ports; nodes and ports stand for their names"}},
	Doc: `Returns names as one text in Slurm's notation, in natural order and each once.
Only numbers at the end of names are folded, which all programs support.`,
	Example: `
> hostlist.fold(["node9", "node10", "login", "node08", "node11"])
"login,node[08,10-11],node9"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Names []starlark.Value }) (starlark.Value, error) {
		names := make([]string, len(a.Names))
		for i, v := range a.Names {
			switch v := v.(type) {
			case starlark.String:
				names[i] = string(v)
			case lang.Named:
				names[i] = v.Name()
			default:
				return nil, lang.ParamError("names", "element %d: got %s, want string", i, v.Type())
			}
		}
		return starlark.String(hosts.Fold(names)), nil
	}),
}

// HostListExpand is hostlist.expand.
var HostListExpand = lang.Builtin{
	Name:    "hostlist.expand",
	Group:   lang.GroupOutput,
	Returns: "list of string",
	Params:  []lang.Param{{Name: "text", Kind: lang.KindText, Doc: `names with ranges: "login,rack[1-2]node[01-18]"`}},
	Doc:     "Returns the names that a list in Slurm's notation stands for: at most 1048576.",
	Example: `
> hostlist.expand("login,node[08-10,12]")
["login", "node08", "node09", "node10", "node12"]
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Text string }) (starlark.Value, error) {
		names, err := hosts.Expand(a.Text)
		if err != nil {
			return nil, lang.ParamError("text", "%w", err)
		}
		return lang.Texts(names), nil
	}),
}

// HostsFile is the content of a scheduler's file: hosts in order, each with the names of its
// groups, nearest first.
type HostsFile struct {
	hosts []string
	path  map[string][]string
	name  string       // of a topology that is not the default
	more  []*HostsFile // other topologies of the file, of all hosts or some of them
}

// HostsFileOf reads the result of the function read() of a script: a dict of host to a list or
// tuple of names; for a file with several topologies, a dict of their names to such dicts.
func HostsFileOf(v starlark.Value) (*HostsFile, error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, fmt.Errorf("read() returned %s; want a dict of host to the names of its groups", v.Type())
	}
	items := d.Items()
	if len(items) == 0 {
		return topologyOf("", d)
	}
	if _, several := items[0][1].(*starlark.Dict); !several {
		return topologyOf("", d)
	}
	var all []*HostsFile
	for _, kv := range items {
		name, ok := starlark.AsString(kv[0])
		own, isDict := kv[1].(*starlark.Dict)
		if !ok || !isDict {
			return nil, fmt.Errorf("read() returned a dict of %s to %s; want topologies, and dicts of their hosts", kv[0].Type(), kv[1].Type())
		}
		f, err := topologyOf(name, own)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	all[0].name, all[0].more = "", all[1:] // the default
	return all[0], nil
}

// topologyOf reads the dict of one topology.
func topologyOf(name string, d *starlark.Dict) (*HostsFile, error) {
	f := &HostsFile{name: name, path: map[string][]string{}}
	for _, kv := range d.Items() {
		host, ok := starlark.AsString(kv[0])
		it, isList := kv[1].(starlark.Iterable)
		if !ok || !isList {
			return nil, fmt.Errorf("read() returned a dict of %s to %s; want hosts, and the names of their groups", kv[0].Type(), kv[1].Type())
		}
		var path []string
		for _, x := range lang.Collect(it) {
			name, ok := starlark.AsString(x)
			if !ok {
				return nil, fmt.Errorf("read() returned %[2]s for %.60[1]q; want the names of its groups", host, x.Type())
			}
			path = append(path, name)
		}
		f.hosts = append(f.hosts, host)
		f.path[host] = path
	}
	return f, nil
}

// Check compares a file with the groups that it was made from. It returns nil if the file has
// exactly their hosts, or only the one that is given, and each of its groups has the hosts of
// one of theirs. Other topologies of the file may have some of the hosts.
func (f *HostsFile) Check(g *hosts.Groups, host string) error {
	own := map[string][]*hosts.Group{} // by host, nearest first
	var visit func(list, above []*hosts.Group)
	visit = func(list, above []*hosts.Group) {
		for _, x := range list {
			in := append([]*hosts.Group{x}, above...)
			visit(x.Groups, in)
			if x.Level == 0 {
				for _, name := range x.Hosts {
					if host == "" || host == name {
						own[name] = in
					}
				}
			}
		}
	}
	visit(g.Roots, nil)
	var missing []string
	for host := range own {
		if _, ok := f.path[host]; !ok {
			missing = append(missing, host)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d of %d hosts are missing: %.200s", len(missing), len(own), hosts.Fold(missing))
	}
	for _, x := range append([]*HostsFile{f}, f.more...) {
		err := x.checkGroups(own)
		if err == nil && host != "" {
			err = x.checkNames(own)
		}
		if err != nil && x.name != "" {
			err = fmt.Errorf("topology %s: %w", x.name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkGroups compares groups by their hosts, because kinds of topologies may spell names in their
// own way. own has the groups of each host.
func (f *HostsFile) checkGroups(own map[string][]*hosts.Group) error {
	size := map[string]int{}
	want := map[*hosts.Group]int{} // how many of its hosts the file has
	for _, host := range f.hosts {
		if own[host] == nil {
			return fmt.Errorf("unknown host %.60q", host)
		}
		for _, name := range f.path[host] {
			size[name]++
		}
		for _, x := range own[host] {
			want[x]++
		}
	}
	as := map[string]*hosts.Group{}
	for _, host := range f.hosts {
		in := own[host]
		for _, name := range f.path[host] {
			i := slices.IndexFunc(in, func(x *hosts.Group) bool {
				return want[x] == size[name] && (as[name] == nil || as[name] == x)
			})
			if i < 0 {
				return fmt.Errorf("host %.60q: unknown group %.60q of %d hosts", host, name, size[name])
			}
			as[name] = in[i]
		}
	}
	return nil
}

// checkNames compares names and order of groups: the groups of a single host cannot be
// distinguished by other hosts.
func (f *HostsFile) checkNames(own map[string][]*hosts.Group) error {
	for _, host := range f.hosts {
		in := own[host]
		for _, name := range f.path[host] {
			i := slices.IndexFunc(in, func(x *hosts.Group) bool { return x.Name == name })
			if i < 0 {
				return fmt.Errorf("host %.60q: group %.60q is unknown or in the wrong place", host, name)
			}
			in = in[i+1:]
		}
	}
	return nil
}

// HostsDiffType is the type of the result of fabsh topology --diff.
var HostsDiffType = &lang.ResultType{
	Name: "topology_diff",
	Doc:  "The differences between a scheduler's file and the fabric.",
	Members: []lang.ResultMember{
		{Name: "same", Doc: "True if nothing differs"},
		{Name: "changes", Type: "list of topology_change", Doc: "hosts that moved, are new, or are gone"},
		{Name: "reordered", Doc: "True for the same hosts in another order"},
	},
}

// HostsChangeType is the type of a change.
var HostsChangeType = &lang.ResultType{
	Name:      "topology_change",
	Doc:       "Hosts whose groups differ between a scheduler's file and the fabric.",
	Important: []string{"hosts", "old", "new"},
	Members: []lang.ResultMember{
		{Name: "hosts", Doc: "names in Slurm's notation"},
		{Name: "old", Doc: "names of their groups in the file, nearest first, separated by /; None if the file does not have them. Of another topology than the default, its name and : come first"},
		{Name: "new", Doc: "the same for the fabric; None if it does not have them"},
	},
}

// HostsDiff is the difference between two files.
type HostsDiff struct {
	*lang.Result
	Same bool
	text string
}

// Display returns the changes as text, one line for all hosts with one change.
func (d *HostsDiff) Display() string { return d.text }

// HostsDiffOf compares a file with the one in use.
func HostsDiffOf(old, now *HostsFile) *HostsDiff {
	type move struct{ old, new string }
	const absent = "\x00"
	where := func(f *HostsFile, host string) string {
		if f == nil {
			return absent
		}
		if path, ok := f.path[host]; ok {
			return f.label() + strings.Join(path, "/")
		}
		return absent
	}
	var order []move
	moved := map[move][]string{}
	reordered := false
	for _, both := range topologyPairs(old, now) {
		for i, f := range both {
			if f == nil {
				continue
			}
			for _, host := range f.hosts {
				m := move{where(both[0], host), where(both[1], host)}
				if m.old == m.new || i == 1 && m.old != absent {
					continue
				}
				if moved[m] == nil {
					order = append(order, m)
				}
				moved[m] = append(moved[m], host)
			}
		}
		reordered = reordered || both[0] != nil && both[1] != nil && !slices.Equal(both[0].hosts, both[1].hosts)
	}
	var text strings.Builder
	var changes []starlark.Value
	value := func(path string) starlark.Value { return lang.OrNone(path != absent, starlark.String(path)) }
	for _, m := range order {
		list := hosts.Fold(moved[m])
		sign, in := "~", m.old+" -> "+m.new
		switch {
		case m.old == absent:
			sign, in = "+", m.new
		case m.new == absent:
			sign, in = "-", m.old
		}
		if in != "" { // a hostfile has no groups
			in = ": " + in
		}
		text.WriteString(lang.OneLine(sign+" "+list+in) + "\n")
		changes = append(changes, lang.NewResult(HostsChangeType, starlark.String(list), value(m.old), value(m.new)))
	}
	reordered = reordered && len(order) == 0
	if reordered {
		text.WriteString("the same hosts, in another order\n")
	}
	same := len(order) == 0 && !reordered
	if same {
		text.WriteString("nothing differs\n")
	}
	return &HostsDiff{lang.NewResult(HostsDiffType, starlark.Bool(same), starlark.NewList(changes), starlark.Bool(reordered)), same, text.String()}
}

// label returns the text before the groups of a topology that is not the default.
func (f *HostsFile) label() string {
	if f.name == "" {
		return ""
	}
	return f.name + ":"
}

// topologyPairs returns the topologies of both files, the defaults first, then the topologies by
// their names; nil: the other file does not have it.
func topologyPairs(old, now *HostsFile) [][2]*HostsFile {
	list := [][2]*HostsFile{{old, now}}
	for _, f := range old.more {
		list = append(list, [2]*HostsFile{f, now.other(f.name)})
	}
	for _, f := range now.more {
		if old.other(f.name) == nil {
			list = append(list, [2]*HostsFile{nil, f})
		}
	}
	return list
}

// other returns the topology of that name that is not the default; nil: it does not exist.
func (f *HostsFile) other(name string) *HostsFile {
	if i := slices.IndexFunc(f.more, func(x *HostsFile) bool { return x.name == name }); i >= 0 {
		return f.more[i]
	}
	return nil
}
