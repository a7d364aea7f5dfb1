package routing

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// SelectMethod is fabric.select(): nodes by class or name.
var SelectMethod = lang.Builtin{
	Name:    "select",
	Returns: "list of node",
	Params: []lang.Param{
		{Name: "what", Kind: kindSelector, Doc: `classes: ` + classWords + `; or the name of nodes, in which * stands for any text and ? for any character, ignoring case`},
		{Name: "classes", Kind: kindClasses, Default: "None", Keyword: true, Doc: "a dict of class to its members: names with * and ?, GUIDs, nodes, ports, or a list of these"},
	},
	Doc: `Returns the nodes of a class, or those of a name.
Classes: cn, compute nodes; io, file servers; an, aggregation nodes of switches (SHARP); gateway, gateways to other networks, and routers; sm, nodes that can also run a subnet manager.
It warns if no node is selected.
The kind of a node determines the class (node.kind); hosts named "*storage*" are io, all others cn. classes replaces these rules.`,
	Example: `
> f = discover()
> len(f.select("cn")), len(f.select("cn", classes={"io": "node-000?*"}))
(32, 23)
> [n.name for n in f.select("spine-*")]
["spine-1", "spine-2", "spine-3", "spine-4"]
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		What    string
		Classes []graph.Rule
	}) (starlark.Value, error) {
		rules := a.Classes
		if rules == nil {
			rules = graph.DefaultRules()
		}
		class, notClass := graph.ParseClass(a.What)
		var list []starlark.Value
		nodes := c.Recv.(*topology.Fabric).Fabric.Nodes()
		for i := range nodes {
			n := &nodes[i]
			switch {
			case notClass != nil && graph.Glob(a.What, n.Name()):
				list = append(list, topology.NodeOf(n))
			case notClass == nil && slices.ContainsFunc(portsWithLIDs(n), func(p *fabric.Port) bool { return graph.Classify(rules, p)&class != 0 }):
				list = append(list, topology.NodeOf(n))
			}
		}
		if len(list) == 0 {
			warnNoNode(c, nodes, a.What, notClass == nil)
		}
		return starlark.NewList(list), nil
	}),
}

// warnNoNode warns that a script selects no node.
func warnNoNode(c *lang.Call, nodes []fabric.Node, what string, isClass bool) {
	if isClass {
		c.Fiber().Warn("%s: no node is of class %q; names determine the class, unless classes= does", c.Name, what)
		return
	}
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name()
	}
	c.Fiber().Warn("%s: no node is named %q%s", c.Name, what, fabric.DidYouMean(what, names))
}

// portsWithLIDs returns the connected ports of a CA, or port 0 of a switch.
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

// classWords are the values of a parameter that names classes.
const classWords = `"cn", "io", "an", "gateway", "sm", "switch", or several: "cn+io"`

// kindClasses is the kind of the parameter classes: a dict of class to what belongs
// to it. The builtin gets rules for all classes.
var kindClasses = &lang.Kind{Type: reflect.TypeFor[[]graph.Rule](), Convert: toRules}

// toRules makes rules of a dict of class to members: rules of its own for the
// classes that it names, and the default ones for the others.
func toRules(v starlark.Value) (any, error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, lang.WantType(v, "dict")
	}
	rules := graph.DefaultRules()
	var own []graph.Rule
	for _, kv := range d.Items() {
		name, _ := starlark.AsString(kv[0])
		class, err := graph.ParseClass(name)
		if err != nil || class&graph.ClassSwitch != 0 {
			return nil, fmt.Errorf("unknown class of end ports %s; supported: %s", kv[0], classWords)
		}
		rules = slices.DeleteFunc(rules, func(r graph.Rule) bool { return r.Class == class })
		members, err := classRules(class, kv[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		own = append(own, members...)
	}
	// The first rule of a port's class ends the search, so rules that add a class
	// (Also) go before all others.
	slices.SortStableFunc(own, func(a, b graph.Rule) int { return boolInt(b.Also) - boolInt(a.Also) })
	also := slices.IndexFunc(rules, func(r graph.Rule) bool { return !r.Also })
	if also < 0 {
		also = len(rules)
	}
	return slices.Insert(rules, also, own...), nil
}

// classRules returns the rules for the members of a class, one or a list: a rule for each
// name, then one for all GUIDs, which exists even without GUIDs.
func classRules(class graph.Class, members starlark.Value) ([]graph.Rule, error) {
	list := []starlark.Value{members}
	if it, ok := members.(starlark.Iterable); ok {
		list = lang.Collect(it)
	}
	var rules []graph.Rule
	listed := graph.Rule{Class: class, Also: class == graph.ClassSM, GUIDs: []mad.GUID{}}
	leaves := listed
	leaves.Leaf = true
	for _, x := range list {
		switch x := x.(type) {
		case topology.Node:
			if x.IsSwitch() {
				leaves.GUIDs = append(leaves.GUIDs, x.GUID())
			} else {
				listed.GUIDs = append(listed.GUIDs, x.GUID())
			}
		case topology.Port:
			listed.GUIDs = append(listed.GUIDs, x.GUID())
		case starlark.String:
			if guid, err := records.ParseGUID(x); err == nil {
				listed.GUIDs = append(listed.GUIDs, guid)
				leaves.GUIDs = append(leaves.GUIDs, guid)
			} else {
				rule := graph.Rule{Class: class, Also: listed.Also, Name: string(x)}
				leaf := rule
				leaf.Leaf = true
				rules = append(rules, rule, leaf)
			}
		default:
			return nil, fmt.Errorf("got %s, want a name, a GUID, a node or a port", x.Type())
		}
	}
	if len(leaves.GUIDs) > 0 {
		rules = append(rules, leaves)
	}
	return append(rules, listed), nil
}

// boolInt returns 0 for false and 1 for true.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// classOf returns the class that has a name, 0 if name is nil (not given).
func classOf(name *string) (graph.Class, error) {
	if name == nil {
		return 0, nil
	}
	return graph.ParseClass(*name)
}

// endpointsParam is the parameter of methods of routes that judge pairs of endpoints.
var endpointsParam = lang.Param{Name: "endpoints", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: "class of the endpoints: " + classWords + " (default: all ports of CAs and routers)"}

// endpointsArg is the argument for endpointsParam.
type endpointsArg struct{ Endpoints *string }

// class returns the class of the endpoints, 0 if not given. A class without ports is an
// error: a verdict on no pairs would look like a good one.
func (a *endpointsArg) class(g *graph.Graph) (graph.Class, error) {
	class, err := classOf(a.Endpoints)
	if err != nil {
		return 0, lang.ParamError("endpoints", "%w", err)
	}
	if class != 0 && len(g.LIDs(class)) == 0 {
		return 0, lang.ParamError("endpoints", "no port is of class %s; names determine the class, unless graph(classes=...) does", class)
	}
	return class, nil
}

// ReadGUIDsMethod is fabric.read_guids().
var ReadGUIDsMethod = lang.Builtin{
	Name:   "read_guids",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, in the format of OpenSM's root_guid_file, cn_guid_file, io_guid_file, guid_routing_order_file"}},
	Doc:    "Reads a list of GUIDs, one per line.",
	Example: `
> load_fabric("net.topo").read_guids("roots.guids")
["0x0002c90300000100"]
`,
	Run: lang.Do(func(c *lang.Call, a *pathArg) (starlark.Value, error) {
		var list []starlark.Value
		err := a.read(c, func(r io.Reader) error {
			guids, err := format.ReadGUIDs(r, a.Path)
			for _, g := range guids {
				list = append(list, topology.GUIDValue(g))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return starlark.NewList(list), nil
	}),
}

// ReadNumbersMethod is fabric.read_numbers().
var ReadNumbersMethod = lang.Builtin{
	Name:   "read_numbers",
	Params: []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the file, in the format of OpenSM's hop_weights_file, port_search_ordering_file, ids_guid_file, guid2lid"}},
	Doc:    "Reads lines of a GUID followed by numbers.",
	Example: `
> load_fabric("net.topo").read_numbers("weights.guids")
[("0x0002c90300000100", (1, 3))]
`,
	Run: lang.Do(func(c *lang.Call, a *pathArg) (starlark.Value, error) {
		var list []starlark.Value
		err := a.read(c, func(r io.Reader) error {
			for line, err := range format.GUIDLines(r, a.Path) {
				if err != nil {
					return err
				}
				numbers, err := line.Numbers(1<<31 - 1)
				if err != nil {
					return err
				}
				list = append(list, starlark.Tuple{topology.GUIDValue(line.GUID), starlark.Tuple(lang.Collect(lang.Integers(numbers)))})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return starlark.NewList(list), nil
	}),
}
