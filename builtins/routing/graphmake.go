package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// GraphMethod is fabric.graph().
var GraphMethod = lang.Builtin{
	Name:    "graph",
	Returns: "graph",
	Params: []lang.Param{
		{Name: "exclude", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "links, ports or nodes to leave out; of a node, all of its links"},
		{Name: "weights", Kind: kindDict("dict"), Default: "None", Keyword: true, Doc: "a dict of port, for its outgoing direction, or link, for both directions, to its weight, from 1"},
		{Name: "port_order", Kind: kindDict("dict"), Default: "None", Keyword: true, Doc: "a dict of switch to the numbers of its ports, preferred ones first"},
		{Name: "lids", Kind: kindDict("dict"), Default: "None", Keyword: true, Doc: "a dict of port to its LID, for ports that have none yet or should have another; of a switch, its port 0"},
		{Name: "lmc", Kind: lang.KindInt, Default: "0", Keyword: true, Doc: "with lids: each port of lids on a CA or router has 2 ** lmc LIDs"},
		{Name: "classes", Kind: KindClasses, Default: "None", Keyword: true, Doc: "a dict of class to what belongs to it, as with select"},
	},
	Doc: `Returns the fabric in the form for routing algorithms: a graph.
Links that are down are left out.`,
	Example: `
> f = discover()
> f.graph()
graph(12 switches, 32 links, LIDs 1..44)
> f.graph(exclude=[f.switches[0]])
graph(12 switches, 28 links, LIDs 1..44)
note: 4 ports of CAs and routers are on no switch
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Exclude   []starlark.Value // links, ports, nodes
		Weights   *starlark.Dict   // of ports and links to ints
		PortOrder *starlark.Dict   // of switches to lists of port numbers
		LIDs      *starlark.Dict   // of ports to ints
		LMC       int
		Classes   []graph.Rule
	}) (starlark.Value, error) {
		v := c.Recv.(*topology.Fabric)
		o := graph.BuildOptions{Rules: a.Classes}
		var err error
		if o.Exclude, err = excludedPorts(v.Fabric, a.Exclude); err != nil {
			return nil, lang.ParamError("exclude", "%w", err)
		}
		if o.Weight, err = portWeights(v.Fabric, a.Weights); err != nil {
			return nil, lang.ParamError("weights", "%w", err)
		}
		if o.PortOrder, err = portOrder(v.Fabric, a.PortOrder); err != nil {
			return nil, lang.ParamError("port_order", "%w", err)
		}
		if o.LIDs, err = portLIDs(v.Fabric, a.LIDs, a.LMC); err != nil {
			return nil, lang.ParamError("lids", "%w", err)
		}
		g, err := graph.New(v.Fabric, o)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return newGraph(g, v), nil
	}),
}

// ofFabric checks that a link, port or node is of f, not of another snapshot:
// fabric/routing/graph would not find it, and ignore it.
func ofFabric(f *fabric.Fabric, x starlark.Value) error {
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
	if of != f {
		return fmt.Errorf("%s is of another snapshot of the fabric", lang.Brief(x))
	}
	return nil
}

// excludedPorts returns a function that reports whether a port is one of items, or of a
// node or a link among them; nil without items.
func excludedPorts(f *fabric.Fabric, items []starlark.Value) (func(*fabric.Port) bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ports, nodes := map[*fabric.Port]bool{}, map[*fabric.Node]bool{}
	for i, x := range items {
		if err := ofFabric(f, x); err != nil {
			return nil, err
		}
		switch x := x.(type) {
		case topology.Link:
			ports[x.A] = true // the graph omits a link for either port
		case topology.Port:
			ports[x.Port] = true
		case topology.Node:
			nodes[x.Node] = true
		default:
			return nil, fmt.Errorf("element %d: got %s, want a link, a port or a node", i, x.Type())
		}
	}
	return func(p *fabric.Port) bool { return ports[p] || nodes[p.Node()] }, nil
}

// portWeights returns the weight of the link out of a port, from a dict of port or link to
// weight, 1 if it is not in it; nil without a dict.
func portWeights(f *fabric.Fabric, d *starlark.Dict) (func(*fabric.Port) int, error) {
	if d == nil {
		return nil, nil
	}
	weights := map[*fabric.Port]int{}
	for _, kv := range d.Items() {
		if err := ofFabric(f, kv[0]); err != nil {
			return nil, err
		}
		w, err := lang.ToInt(kv[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lang.Brief(kv[0]), err)
		}
		switch x := kv[0].(type) {
		case topology.Port:
			weights[x.Port] = w
		case topology.Link:
			weights[x.A], weights[x.B] = w, w
		default:
			return nil, fmt.Errorf("got a key of type %s, want a port or a link", x.Type())
		}
	}
	return func(p *fabric.Port) int {
		if w, ok := weights[p]; ok {
			return w
		}
		return 1
	}, nil
}

// portOrder returns the preferred ports of a switch, best first, from a dict of switch to
// a list of port numbers; nil without a dict.
func portOrder(f *fabric.Fabric, d *starlark.Dict) (func(*fabric.Node) []int, error) {
	if d == nil {
		return nil, nil
	}
	orders := map[*fabric.Node][]int{}
	for _, kv := range d.Items() {
		if err := ofFabric(f, kv[0]); err != nil {
			return nil, err
		}
		n, ok := kv[0].(topology.Node)
		if !ok {
			return nil, fmt.Errorf("got a key of type %s, want a switch", kv[0].Type())
		}
		it, ok := kv[1].(starlark.Iterable)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want a list of port numbers", n.Label(), kv[1].Type())
		}
		for _, x := range lang.Collect(it) {
			num, err := lang.ToInt(x)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.Label(), err)
			}
			orders[n.Node] = append(orders[n.Node], num)
		}
	}
	return func(n *fabric.Node) []int { return orders[n] }, nil
}

// portLIDs returns the LID and the LMC of a port, from a dict of port to LID: its own if
// it is not in it; nil without a dict.
func portLIDs(f *fabric.Fabric, d *starlark.Dict, lmc int) (func(*fabric.Port) (mad.LID, int), error) {
	if d == nil {
		return nil, nil
	}
	if highest := int(mad.AttrPortInfo.Field("lmc").Max()); lmc < 0 || lmc > highest {
		return nil, fmt.Errorf("LMC %d is out of range, 0..%d", lmc, highest)
	}
	lids := map[*fabric.Port]mad.LID{}
	for _, kv := range d.Items() {
		if err := ofFabric(f, kv[0]); err != nil {
			return nil, err
		}
		p, ok := kv[0].(topology.Port)
		if !ok {
			return nil, fmt.Errorf("got a key of type %s, want a port", kv[0].Type())
		}
		lid, err := lang.ToInt(kv[1])
		if p.Node().IsSwitch() == (p.Num() > 0) {
			return nil, fmt.Errorf("%s is not an end port; only end ports have LIDs", p.Label())
		}
		if err == nil && (lid < 1 || lid > int(mad.MaxUnicastLID)) {
			err = fmt.Errorf("LID %d is out of range, 1..%d", lid, mad.MaxUnicastLID)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Label(), err)
		}
		lids[p.Port] = mad.LID(lid)
	}
	return func(p *fabric.Port) (mad.LID, int) {
		switch lid, ok := lids[p]; {
		case !ok:
			return p.LID(), p.LMC()
		case p.Node().IsSwitch():
			return lid, 0
		default:
			return lid, lmc
		}
	}, nil
}
