// Package routing has the values and builtins of scripts for routing: graphs, routes, verdicts. The
// algorithms are those of fabric/routing/....
//
//	graphvalue.go graphmake.go     the value of a graph of a fabric, and how it is made
//	hopsvalue.go dijkstra.go       distances between switches; paths.go: shortest paths
//	ranks.go tree.go               trees: roots, ranks, up*/down*, fat trees
//	engines.go chain.go            tables by an engine; by several
//	option.go policy.go            options of engines; the policy that runs an engine by name
//	assign.go sssp.go turns.go     one step of an engine, or nue for some LIDs
//	lanes.go                       service levels and virtual lanes of tables
//	choices.go                     the ports that switches may choose from
//	groupfaults.go                 port groups with faults
//	repair.go                      tables for the current fabric
//	routesvalue.go row.go rowfill.go  routes, the row of a switch, what changes it
//	routesio.go                    routes of files and of the switches themselves, and the
//	                               plan of a change of these
//	verdict.go linkfailure.go      whether packets arrive, and deadlocks are possible; if a link fails;
//	                               viarules.go: rules on what paths cross
//	trace.go congestion.go balance.go adaptiveload.go diff.go  paths, loads, differences
//	report.go                      what a command shows of a policy
//	selector.go classes.go         nodes by name or class, and rules for classes
//	readtables.go                  files of GUIDs, of numbers and of hops
//	kind.go                        kinds of parameters
package routing

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// graphValue is the value `graph`. It never changes; lists are the values of its
// attributes that were requested, by name, each made once and frozen.
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

func (v *graphValue) Facts() []lang.Fact { return GraphType.Facts(v) }

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
	Params: []lang.Param{{Name: "cls", Kind: lang.KindChoice, Default: "None", Doc: ClassWords + " (default: all)"}},
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
