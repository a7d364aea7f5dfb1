package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing"
)

var GraphMethod = lang.Builtin{
	Name: "graph",
	Params: []lang.Param{
		{Name: "exclude", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "links, ports or nodes that are not to be used; of a node, all of its links"},
		{Name: "weights", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "a dict of port, for the way out of it, or link, for both ways, to what it counts, from 1"},
		{Name: "port_order", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "a dict of switch to the numbers of its ports, preferred ones first"},
		{Name: "classes", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "a dict of class to what belongs to it, as with select"},
	},
	Doc: `Returns the fabric as routing algorithms want it: a graph.
Links that are down are not in it.`,
	Example: `
> f = discover()
> f.graph()
graph(12 switches, 32 links, LIDs 1..44)
> f.graph(exclude=[f.switches[0]])
graph(12 switches, 28 links, LIDs 1..44)
note: 4 ports of CAs and routers are on no switch
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*topology.Fabric)
		var o routing.GraphOptions
		var err error
		if c.Has("exclude") {
			if o.Exclude, err = excludedPorts(c); err != nil {
				return nil, err
			}
		}
		if c.Has("weights") {
			if o.Weight, err = portWeights(c); err != nil {
				return nil, err
			}
		}
		if c.Has("port_order") {
			if o.PortOrder, err = portOrder(c); err != nil {
				return nil, err
			}
		}
		if o.Rules, err = rulesOf(c); err != nil {
			return nil, err
		}
		g, err := routing.NewGraph(v.F, o)
		if err != nil {
			return nil, fmt.Errorf("graph: %w", err)
		}
		return newGraph(g, v), nil
	}),
}

// ofFabric: a link, port or node must be of the fabric whose method is called,
// or it would be passed over.
func ofFabric(c *lang.Call, param string, x starlark.Value) error {
	var of *fabric.Fabric
	switch x := x.(type) {
	case topology.Link:
		of = x.A.Node().Fabric()
	case topology.Port:
		of = x.Node().Fabric()
	case topology.Node:
		of = x.Fabric()
	default:
		return nil
	}
	if of != c.Recv.(*topology.Fabric).F {
		return lang.ParamError(param, "%s is of another snapshot of the fabric", lang.Brief(x))
	}
	return nil
}

// excludedPorts reads the parameter exclude.
func excludedPorts(c *lang.Call) (func(*fabric.Port) bool, error) {
	ports, nodes := map[*fabric.Port]bool{}, map[*fabric.Node]bool{}
	for i, x := range c.Items("exclude") {
		if err := ofFabric(c, "exclude", x); err != nil {
			return nil, err
		}
		switch x := x.(type) {
		case topology.Link:
			ports[x.A] = true
		case topology.Port:
			ports[x.Port] = true
		case topology.Node:
			nodes[x.Node] = true
		default:
			return nil, lang.ParamError("exclude", "element %d: got %s, want a link, a port or a node", i, x.Type())
		}
	}
	return func(p *fabric.Port) bool { return ports[p] || nodes[p.Node()] }, nil
}

// portWeights reads the parameter weights.
func portWeights(c *lang.Call) (func(*fabric.Port) int, error) {
	d, ok := c.Value("weights").(*starlark.Dict)
	if !ok {
		return nil, lang.ParamError("weights", "got %s, want dict", c.Value("weights").Type())
	}
	weights := map[*fabric.Port]int{}
	for _, kv := range d.Items() {
		if err := ofFabric(c, "weights", kv[0]); err != nil {
			return nil, err
		}
		w, err := lang.ToInt(kv[1])
		if err != nil {
			return nil, lang.ParamError("weights", "%s: %w", lang.Brief(kv[0]), err)
		}
		switch x := kv[0].(type) {
		case topology.Port:
			weights[x.Port] = w
		case topology.Link:
			weights[x.A], weights[x.B] = w, w
		default:
			return nil, lang.ParamError("weights", "got a key of type %s, want a port or a link", x.Type())
		}
	}
	return func(p *fabric.Port) int {
		if w, ok := weights[p]; ok {
			return w
		}
		return 1
	}, nil
}

// portOrder reads the parameter port_order.
func portOrder(c *lang.Call) (func(*fabric.Node) []int, error) {
	d, ok := c.Value("port_order").(*starlark.Dict)
	if !ok {
		return nil, lang.ParamError("port_order", "got %s, want dict", c.Value("port_order").Type())
	}
	orders := map[*fabric.Node][]int{}
	for _, kv := range d.Items() {
		if err := ofFabric(c, "port_order", kv[0]); err != nil {
			return nil, err
		}
		n, ok := kv[0].(topology.Node)
		if !ok {
			return nil, lang.ParamError("port_order", "got a key of type %s, want a switch", kv[0].Type())
		}
		it, ok := kv[1].(starlark.Iterable)
		if !ok {
			return nil, lang.ParamError("port_order", "%s: got %s, want a list of port numbers", n.Label(), kv[1].Type())
		}
		for _, x := range lang.Collect(it) {
			num, err := lang.ToInt(x)
			if err != nil {
				return nil, lang.ParamError("port_order", "%s: %w", n.Label(), err)
			}
			orders[n.Node] = append(orders[n.Node], num)
		}
	}
	return func(n *fabric.Node) []int { return orders[n] }, nil
}

// classOf reads a parameter that names classes; 0: none is given.
func classOf(c *lang.Call, param string) (routing.Class, error) {
	if !c.Has(param) {
		return 0, nil
	}
	class, err := routing.ParseClass(c.Text(param))
	if err != nil {
		return 0, lang.ParamError(param, "%w", err)
	}
	return class, nil
}

// endpointsOf reads the parameter endpoints of a method of routes. That nothing
// is wrong between none says nothing.
func endpointsOf(c *lang.Call) (routing.Class, error) {
	class, err := classOf(c, "endpoints")
	if err != nil || class == 0 {
		return class, err
	}
	if g := c.Recv.(*Routes).R.Graph(); len(g.LIDs(class)) == 0 {
		return 0, lang.ParamError("endpoints", "no port is %s: names tell what nodes are for, or graph(classes=...)", class)
	}
	return class, nil
}

const classWords = `"cn", "io", "an", "gateway", "sm", "switch", or several: "cn+io"`
