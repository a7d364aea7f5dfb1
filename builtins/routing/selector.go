package routing

import (
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
)

// SelectMethod is fabric.select(): nodes by class or name.
var SelectMethod = lang.Builtin{
	Name:    "select",
	Returns: "list of node",
	Params: []lang.Param{
		{Name: "what", Kind: kindSelector, Doc: `classes: ` + ClassWords + `; or the name of nodes, in which * stands for any text and ? for any character, ignoring case`},
		{Name: "classes", Kind: KindClasses, Default: "None", Keyword: true, Doc: "a dict of class to its members: names with * and ?, GUIDs, nodes, ports, or a list of these"},
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
			warnNothing(c, nodes, a.What, notClass == nil)
		}
		return starlark.NewList(list), nil
	}),
}

// warnNothing warns that a script selects no node.
func warnNothing(c *lang.Call, nodes []fabric.Node, what string, isClass bool) {
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
