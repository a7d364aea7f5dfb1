package routing

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

var SelectMethod = lang.Builtin{
	Name: "select",
	Params: []lang.Param{
		{Name: "what", Kind: lang.KindText, Doc: `classes: ` + classWords + `; or the name of nodes, in which * stands for any text and ? for any character, case aside`},
		{Name: "classes", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "a dict of class to what belongs to it: names with * and ?, GUIDs, nodes, ports, or a list of these"},
	},
	Doc: `Returns the nodes of a class, or those of a name.
Compute nodes are cn, io serves files, an is an aggregation node of a switch (SHARP), gateway leads to other networks, as routers do, and sm can run a subnet manager besides.
Only names tell: "*aggregation node*" is an, "*gateway*" and "*skyway*" are gateway, "*storage*" is io, all other CAs are cn. classes puts its own in place of these.`,
	Example: `
> f = discover()
> len(f.select("cn")), len(f.select("cn", classes={"io": "node-000?*"}))
(32, 23)
> [n.name for n in f.select("spine-*")]
["spine-1", "spine-2", "spine-3", "spine-4"]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*topology.Fabric)
		rules, err := rulesOf(c)
		if err != nil {
			return nil, err
		}
		class, notClass := routing.ParseClass(c.Text("what"))
		var list []starlark.Value
		for i := range v.F.Nodes() {
			n := &v.F.Nodes()[i]
			switch {
			case notClass != nil && routing.Glob(c.Text("what"), n.Name()):
				list = append(list, topology.NodeOf(n))
			case notClass == nil && slices.ContainsFunc(portsWithLIDs(n), func(p *fabric.Port) bool { return routing.Classify(rules, p)&class != 0 }):
				list = append(list, topology.NodeOf(n))
			}
		}
		return starlark.NewList(list), nil
	}),
}

// portsWithLIDs are those of a CA that are connected, or port 0 of a switch.
func portsWithLIDs(n *fabric.Node) []*fabric.Port {
	if n.IsSwitch() {
		return []*fabric.Port{n.Port(0)}
	}
	var ports []*fabric.Port
	for p := range n.Ports() {
		if p.Peer() != nil {
			ports = append(ports, p)
		}
	}
	return ports
}

// rulesOf reads the parameter classes: rules for the classes it names, and the
// default ones for the others.
func rulesOf(c *lang.Call) ([]routing.Rule, error) {
	rules := routing.DefaultRules()
	if !c.Has("classes") {
		return rules, nil
	}
	d, ok := c.Value("classes").(*starlark.Dict)
	if !ok {
		return nil, lang.ParamError("classes", "got %s, want dict", c.Value("classes").Type())
	}
	var own []routing.Rule
	for _, kv := range d.Items() {
		name, _ := starlark.AsString(kv[0])
		class, err := routing.ParseClass(name)
		if err != nil || class&routing.ClassSwitch != 0 {
			return nil, lang.ParamError("classes", "%s is no class of end ports: %s", kv[0], classWords)
		}
		rules = slices.DeleteFunc(rules, func(r routing.Rule) bool { return r.Class == class })
		members := []starlark.Value{kv[1]}
		if it, ok := kv[1].(starlark.Iterable); ok {
			members = lang.Collect(it)
		}
		list := routing.Rule{Class: class, Also: class == routing.ClassSM, GUIDs: []mad.GUID{}}
		for _, x := range members {
			switch x := x.(type) {
			case topology.Node:
				list.GUIDs = append(list.GUIDs, x.GUID())
			case topology.Port:
				list.GUIDs = append(list.GUIDs, x.GUID())
			case starlark.String:
				if guid, err := records.ParseGUID(x); err == nil {
					list.GUIDs = append(list.GUIDs, guid)
				} else {
					own = append(own, routing.Rule{Class: class, Also: list.Also, Name: string(x)})
				}
			default:
				return nil, lang.ParamError("classes", "%s: got %s, want a name, a GUID, a node or a port", name, x.Type())
			}
		}
		own = append(own, list)
	}
	// What adds a class goes first, or a rule before it would end the search.
	slices.SortStableFunc(own, func(a, b routing.Rule) int { return boolInt(b.Also) - boolInt(a.Also) })
	also := slices.IndexFunc(rules, func(r routing.Rule) bool { return !r.Also })
	if also < 0 {
		also = len(rules)
	}
	return slices.Insert(rules, also, own...), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

var ReadGUIDsMethod = lang.Builtin{
	Name:   "read_guids",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, as OpenSM's root_guid_file, cn_guid_file, io_guid_file, guid_routing_order_file"}},
	Doc:    "Reads a list of GUIDs, one a line.",
	Example: `
> load_fabric("net.topo").read_guids("roots.guids")
["0x0002c90300000100"]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		file, err := c.Runtime().Files.Open(c.Text("path"))
		if err != nil {
			return nil, fmt.Errorf("read_guids: %w", err)
		}
		defer file.Close()
		guids, err := format.ReadGUIDs(file, c.Text("path"))
		if err != nil {
			return nil, fmt.Errorf("read_guids: %w", err)
		}
		list := make([]starlark.Value, len(guids))
		for i, g := range guids {
			list[i] = topology.GUIDValue(g)
		}
		return starlark.NewList(list), nil
	}),
}

var ReadNumbersMethod = lang.Builtin{
	Name:   "read_numbers",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, as OpenSM's hop_weights_file, port_search_ordering_file, ids_guid_file, guid2lid"}},
	Doc:    "Reads lines of a GUID and numbers behind it.",
	Example: `
> load_fabric("net.topo").read_numbers("weights.guids")
[("0x0002c90300000100", (1, 3))]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		file, err := c.Runtime().Files.Open(c.Text("path"))
		if err != nil {
			return nil, fmt.Errorf("read_numbers: %w", err)
		}
		defer file.Close()
		var list []starlark.Value
		for line, err := range format.GUIDLines(file, c.Text("path")) {
			if err != nil {
				return nil, fmt.Errorf("read_numbers: %w", err)
			}
			numbers, err := line.Numbers(1<<31 - 1)
			if err != nil {
				return nil, fmt.Errorf("read_numbers: %w", err)
			}
			list = append(list, starlark.Tuple{topology.GUIDValue(line.GUID), starlark.Tuple(lang.Collect(lang.Integers(numbers)))})
		}
		return starlark.NewList(list), nil
	}),
}
