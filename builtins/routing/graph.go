// Package routing has the values and builtins of scripts for routing, for groups of hosts and for
// the jobs of schedulers.
//
// fabric.graph() makes a graph of a fabric, which never changes. graph.route() computes [Routes] by
// an engine: the tables of all switches, one row for each. Scripts that compute tables themselves
// fill in rows step by step, from distances (hops). Routes are then verified (verdict), traced
// (path), loaded with traffic (congestion, balance), compared, and planned as a change of the
// switches.
//
// The algorithms are in fabric/routing and the packages below it, host groups in fabric/hosts, jobs
// in fabric/jobs; here are only parameters, conversions and texts. Values belong to the script that
// made them, like all values of Starlark; Routes can change until they are frozen.
package routing

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// graphValue is the value `graph`. It never changes; lists has the attributes that were
// requested, by name, each made once and frozen.
type graphValue struct {
	g      *graph.Graph
	fabric *topology.Fabric
	lists  map[string]*starlark.List
}

var (
	_ starlark.HasAttrs = (*graphValue)(nil)
	_ lang.Factual      = (*graphValue)(nil)
	_ lang.Documented   = (*graphValue)(nil)
)

// GraphType is the type of graphs. It is made by init, for its methods make values
// of it.
var GraphType *lang.Type[*graphValue]

func init() {
	GraphType = lang.NewType("graph", "A fabric in the form for routing algorithms: its switches, and the links between them that may be used. It never changes.",
		lang.Member[*graphValue]{Name: "fabric", Type: "fabric", Doc: "the fabric that it was made from", Get: func(v *graphValue) starlark.Value { return v.fabric }},
		lang.Member[*graphValue]{Name: "switches", Type: "list of node", Doc: "the switches, by GUID", Get: func(v *graphValue) starlark.Value {
			return v.list("switches", v.switches)
		}},
		lang.Member[*graphValue]{Name: "num_switches", Type: "int", Column: true, Doc: "number of switches", Get: func(v *graphValue) starlark.Value { return starlark.MakeInt(len(v.g.Switches())) }},
		lang.Member[*graphValue]{Name: "num_links", Type: "int", Column: true, Doc: "number of links between switches that may be used", Get: func(v *graphValue) starlark.Value { return starlark.MakeInt(len(v.g.Channels()) / 2) }},
		lang.Member[*graphValue]{Name: "top", Column: true, Doc: "the highest LID", Get: func(v *graphValue) starlark.Value { return starlark.MakeInt(int(v.g.Top())) }},
		lang.Member[*graphValue]{Name: "notes", Column: true, Doc: "differences from the fabric, and parts left out", Get: func(v *graphValue) starlark.Value {
			return v.list("notes", func() []starlark.Value { return lang.Collect(lang.Texts(slices.Concat(v.g.Notes(), v.g.LeftOut()))) })
		}},
		lang.Member[*graphValue]{Method: &lidsMethod},
		lang.Member[*graphValue]{Method: &orderMethod},
		lang.Member[*graphValue]{Method: &hopsMethod},
		lang.Member[*graphValue]{Method: &dijkstraMethod},
		lang.Member[*graphValue]{Method: &pathsMethod},
		lang.Member[*graphValue]{Method: &rootsMethod},
		lang.Member[*graphValue]{Method: &ranksMethod},
		lang.Member[*graphValue]{Method: &updownMethod},
		lang.Member[*graphValue]{Method: &treeMethod},
		lang.Member[*graphValue]{Method: &routesMethod},
		lang.Member[*graphValue]{Method: &routeMethod},
		lang.Member[*graphValue]{Method: &chainMethod},
	).AtVersion(2)
}

func (v *graphValue) String() string {
	return fmt.Sprintf("graph(%s, %s, LIDs 1..%d)", plural.Count(len(v.g.Switches()), "switch", "switches"), plural.Count(len(v.g.Channels())/2, "link", "links"), v.g.Top())
}

func (v *graphValue) Type() string                             { return "graph" }
func (v *graphValue) Freeze()                                  {}
func (v *graphValue) Truth() starlark.Bool                     { return true }
func (v *graphValue) Hash() (uint32, error)                    { return 0, lang.Unhashable(v) }
func (v *graphValue) AttrNames() []string                      { return GraphType.Names }
func (v *graphValue) TypeDoc() lang.TypeDoc                    { return GraphType.TypeDoc() }
func (v *graphValue) Schema() string                           { return GraphType.Schema() }
func (v *graphValue) Attr(name string) (starlark.Value, error) { return GraphType.Attr(v, name) }
func (v *graphValue) Facts() []lang.Fact                       { return GraphType.Facts(v) }

func (v *graphValue) Display() string {
	text := v.String() + "\n"
	for _, note := range slices.Concat(v.g.Notes(), v.g.LeftOut()) {
		text += "note: " + lang.OneLine(note) + "\n"
	}
	return text
}

// list returns a list that is made once, and frozen.
func (v *graphValue) list(name string, fill func() []starlark.Value) *starlark.List {
	l := v.lists[name]
	if l == nil {
		l = starlark.NewList(fill())
		l.Freeze()
		v.lists[name] = l
	}
	return l
}

// nodes returns the switches of these numbers.
func (v *graphValue) nodes(numbers []int) []starlark.Value {
	list := make([]starlark.Value, len(numbers))
	for i, s := range numbers {
		list[i] = topology.NodeOf(v.g.Switches()[s])
	}
	return list
}

// switches returns all switches, by number, which is by GUID.
func (v *graphValue) switches() []starlark.Value {
	list := make([]starlark.Value, len(v.g.Switches()))
	for s, n := range v.g.Switches() {
		list[s] = topology.NodeOf(n)
	}
	return list
}

// switchOf returns the number of a switch in the graph, from a node, its GUID or its name.
// A node of another snapshot is found by its GUID.
func (v *graphValue) switchOf(x starlark.Value) (int, error) {
	var guid mad.GUID
	switch x := x.(type) {
	case topology.Node:
		if x.Fabric() == v.g.Fabric() {
			if s := v.g.SwitchOf(x.Node); s >= 0 {
				return s, nil
			}
			return 0, fmt.Errorf("%s is a %v, not a switch", x.Label(), x.Node.Type())
		}
		guid = x.GUID()
	case starlark.String:
		g, err := records.ParseGUID(x)
		if err != nil {
			n, err := v.g.Fabric().FindNode(string(x))
			if err != nil {
				return 0, err
			}
			return v.switchOf(topology.NodeOf(n))
		}
		guid = g
	default:
		return 0, fmt.Errorf("got %s, want a switch: a node, a GUID or a name", x.Type())
	}
	if s := v.g.SwitchByGUID(guid); s >= 0 {
		return s, nil
	}
	return 0, fmt.Errorf("no switch has the GUID %s", guid)
}

// switchesOf returns the numbers of the switches of the parameters s and d.
func (v *graphValue) switchesOf(a, b starlark.Value) (s, d int, err error) {
	if s, err = v.switchOf(a); err != nil {
		return 0, 0, lang.ParamError("s", "%w", err)
	}
	if d, err = v.switchOf(b); err != nil {
		return 0, 0, lang.ParamError("d", "%w", err)
	}
	return s, d, nil
}

// newGraph returns the value of g, a graph of f.
func newGraph(g *graph.Graph, f *topology.Fabric) *graphValue {
	return &graphValue{g: g, fabric: f, lists: map[string]*starlark.List{}}
}

// lidsMethod is graph.lids(): LIDs of a class of end ports.
var lidsMethod = lang.Builtin{
	Name:   "lids",
	Params: []lang.Param{{Name: "cls", Kind: lang.KindChoice, Default: "None", Doc: classWords + " (default: all)"}},
	Doc:    "Returns the LIDs of a class, by switch and port.",
	Example: `
> len(discover().graph().lids("cn"))
32
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Cls *string }) (starlark.Value, error) {
		class, err := classOf(a.Cls)
		if err != nil {
			return nil, lang.ParamError("cls", "%w", err)
		}
		return lang.Integers(c.Recv.(*graphValue).g.LIDs(class)), nil
	}),
}

// orderMethod is graph.order(): the LIDs of compute nodes in the order of d-mod-k.
var orderMethod = lang.Builtin{
	Name: "order",
	Doc: `Returns the LIDs of compute nodes in the order of a fat tree: the LIDs of a subtree are together.
Under d-mod-k, shifts in this order have no contention; number the ranks of an MPI job in this order.`,
	Example: `
> discover().graph().order()[:5]
[13, 14, 15, 16, 17]
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		return lang.Integers(graph.Order(c.Recv.(*graphValue).g)), nil
	}),
}

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
		{Name: "classes", Kind: kindClasses, Default: "None", Keyword: true, Doc: "a dict of class to what belongs to it, as with select"},
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
