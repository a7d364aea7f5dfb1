package routing

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// graphValue is the value `graph`.
type graphValue struct {
	g      *routing.Graph
	fabric *topology.Fabric
	lists  map[string]*starlark.List
}

var (
	_ starlark.HasAttrs = (*graphValue)(nil)
	_ lang.Factual      = (*graphValue)(nil)
	_ lang.Documented   = (*graphValue)(nil)
)

var GraphType *lang.Type[*graphValue]

func init() {
	GraphType = lang.NewType("graph", "A fabric as routing algorithms want it: its switches, and the links between them that may be used. It never changes.",
		lang.Member[*graphValue]{Name: "fabric", Doc: "what it was made of", Get: func(v *graphValue) starlark.Value { return v.fabric }},
		lang.Member[*graphValue]{Name: "switches", Doc: "the switches, by GUID", Get: func(v *graphValue) starlark.Value {
			return v.list("switches", func() []starlark.Value { return v.nodes(nil) })
		}},
		lang.Member[*graphValue]{Name: "top", Doc: "the highest LID", Get: func(v *graphValue) starlark.Value { return starlark.MakeInt(int(v.g.Top())) }},
		lang.Member[*graphValue]{Name: "notes", Doc: "what of the fabric is not in it, or other than in the fabric", Get: func(v *graphValue) starlark.Value {
			return v.list("notes", func() []starlark.Value { return lang.Collect(lang.Texts(v.g.Notes())) })
		}},
		lang.Member[*graphValue]{Method: &lidsMethod},
		lang.Member[*graphValue]{Method: &orderMethod},
		lang.Member[*graphValue]{Method: &hopsMethod},
		lang.Member[*graphValue]{Method: &dijkstraMethod},
		lang.Member[*graphValue]{Method: &rootsMethod},
		lang.Member[*graphValue]{Method: &ranksMethod},
		lang.Member[*graphValue]{Method: &updownMethod},
		lang.Member[*graphValue]{Method: &treeMethod},
		lang.Member[*graphValue]{Method: &routesMethod},
		lang.Member[*graphValue]{Method: &RouteMethod},
	)
}

func (v *graphValue) String() string {
	return fmt.Sprintf("graph(%s, %s, LIDs 1..%d)", lang.Count(len(v.g.Switches()), "switch"), lang.Count(len(v.g.Channels())/2, "link"), v.g.Top())
}
func (v *graphValue) Type() string          { return "graph" }
func (v *graphValue) Freeze()               {}
func (v *graphValue) Truth() starlark.Bool  { return true }
func (v *graphValue) Hash() (uint32, error) { return 0, lang.Unhashable(v) }
func (v *graphValue) AttrNames() []string   { return GraphType.Names }
func (v *graphValue) TypeDoc() lang.TypeDoc { return GraphType.TypeDoc() }
func (v *graphValue) Schema() string        { return "graph/1" }

func (v *graphValue) Attr(name string) (starlark.Value, error) { return GraphType.Attr(v, name) }

func (v *graphValue) Facts() []lang.Fact {
	return []lang.Fact{
		{Name: "switches", Value: starlark.MakeInt(len(v.g.Switches()))},
		{Name: "links", Value: starlark.MakeInt(len(v.g.Channels()) / 2)},
		{Name: "top", Value: starlark.MakeInt(int(v.g.Top()))},
		{Name: "notes", Value: v.list("notes", func() []starlark.Value { return lang.Collect(lang.Texts(v.g.Notes())) })},
	}
}

func (v *graphValue) Display() string {
	text := v.String() + "\n"
	for _, note := range v.g.Notes() {
		text += "note: " + lang.OneLine(note) + "\n"
	}
	return text
}

// list is made once, and frozen.
func (v *graphValue) list(name string, fill func() []starlark.Value) *starlark.List {
	l := v.lists[name]
	if l == nil {
		l = starlark.NewList(fill())
		l.Freeze()
		v.lists[name] = l
	}
	return l
}

// nodes are the switches of these numbers; nil: all.
func (v *graphValue) nodes(numbers []int) []starlark.Value {
	all := v.g.Switches()
	var list []starlark.Value
	if numbers == nil {
		for _, n := range all {
			list = append(list, topology.NodeOf(n))
		}
	}
	for _, s := range numbers {
		list = append(list, topology.NodeOf(all[s]))
	}
	return list
}

// switchOf is the number of a switch: a node, its GUID or its name.
func (v *graphValue) switchOf(x starlark.Value) (int, error) {
	var guid mad.GUID
	switch x := x.(type) {
	case topology.Node:
		if x.Fabric() == v.g.Fabric() {
			if s := v.g.SwitchOf(x.Node); s >= 0 {
				return s, nil
			}
			return 0, fmt.Errorf("%s is a %v, no switch", x.Label(), x.Node.Type())
		}
		guid = x.GUID()
	case starlark.String:
		g, err := records.ParseGUID(x)
		if err != nil {
			nodes := v.g.Fabric().NodeByName(string(x))
			if len(nodes) == 1 {
				return v.switchOf(topology.NodeOf(nodes[0]))
			}
			return 0, fmt.Errorf("%s called %q", lang.Count(len(nodes), "node"), string(x))
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

// switchesOf are the numbers of those in a list.
func switchesOf(c *lang.Call, v *graphValue, param string) ([]int, error) {
	var list []int
	for i, x := range c.Items(param) {
		s, err := v.switchOf(x)
		if err != nil {
			return nil, lang.ParamError(param, "element %d: %w", i, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func newGraph(g *routing.Graph, f *topology.Fabric) *graphValue {
	return &graphValue{g: g, fabric: f, lists: map[string]*starlark.List{}}
}

var lidsMethod = lang.Builtin{
	Name:   "lids",
	Params: []lang.Param{{Name: "cls", Kind: lang.KindChoice, Default: "None", Doc: classWords + "; else all"}},
	Doc:    "Returns the LIDs of a class, by switch and port.",
	Example: `
> len(discover().graph().lids("cn"))
32
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		class, err := classOf(c, "cls")
		if err != nil {
			return nil, err
		}
		return lang.Integers(c.Recv.(*graphValue).g.LIDs(class)), nil
	}),
}

var orderMethod = lang.Builtin{
	Name: "order",
	Doc: `Returns the LIDs of compute nodes, subtrees of a fat tree side by side.
In this order shifts meet no contention under d-mod-k, and the ranks of an MPI job should be in it.`,
	Example: `
> discover().graph().order()[:5]
[13, 14, 15, 16, 17]
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) { return lang.Integers(c.Recv.(*graphValue).g.Order()), nil }),
}

var hopsMethod = lang.Builtin{
	Name: "hops",
	Doc: `Returns the distances of all switches from all others: hops.
They count links, or, where these have weights, the weights.`,
	Example: `
> g = discover().graph()
> h = g.hops()
> h[g.switches[0], g.switches[1]], h.max
(2, 2)
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		h, err := v.g.Hops(c.Fiber().Context)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	}),
}

// computeError is the error of a computation, or the end of the fiber.
func computeError(c *lang.Call, err error) error {
	if stopped := c.Fiber().Stopped(); stopped != nil {
		return stopped
	}
	if strings.HasPrefix(err.Error(), c.Name+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}

var rootsMethod = lang.Builtin{
	Name:   "find_roots",
	Params: []lang.Param{{Name: "method", Kind: lang.KindChoice, Default: `"color"`, Doc: `"color": no link to a switch farther from compute nodes; "farthest" from them; "histogram", as OpenSM does it; "center": the nearest to all`}},
	Doc: `Returns the switches at the top of a tree.
All ways but "center" fail where there is no top, and say why.`,
	Example: `
> g = discover().graph()
> len(g.find_roots())
4
> len(g.find_roots("center"))
1
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		roots, err := v.g.FindRoots(c.Fiber().Context, c.Text("method"))
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.NewList(v.nodes(append([]int{}, roots...))), nil
	}),
}

var ranksMethod = lang.Builtin{
	Name:   "ranks",
	Params: []lang.Param{{Name: "roots", Kind: lang.KindItems, Doc: "switches: nodes, GUIDs or names"}},
	Doc: `Returns a dict of switch to its distance from the nearest root, in links.
None is the rank of a switch that is cut off from all of them.`,
	Example: `
> g = discover().graph()
> g.ranks(g.find_roots())[g.switches[0]]
1
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		roots, err := switchesOf(c, v, "roots")
		if err != nil {
			return nil, err
		}
		if len(roots) == 0 {
			return nil, lang.ParamError("roots", "it is empty")
		}
		ranks := starlark.NewDict(len(v.g.Switches()))
		for s, rank := range v.g.Ranks(roots).Rank {
			value := starlark.Value(starlark.None)
			if rank >= 0 {
				value = starlark.MakeInt(rank)
			}
			ranks.SetKey(topology.NodeOf(v.g.Switches()[s]), value)
		}
		return ranks, nil
	}),
}

var updownMethod = lang.Builtin{
	Name:   "updown",
	Params: []lang.Param{{Name: "ranks", Kind: lang.KindAny, Doc: "a dict of switch to rank, as of ranks(); links go up to the lower rank, of the same to the lower GUID"}},
	Doc: `Returns distances over ways that never go up after they went down: hops.
Tables filled in from these have no credit loops.`,
	Example: `
> g = discover().graph()
> g.updown(g.ranks(g.find_roots())).max
2
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		d, ok := c.Value("ranks").(*starlark.Dict)
		if !ok {
			return nil, lang.ParamError("ranks", "got %s, want dict", c.Value("ranks").Type())
		}
		r := &routing.Ranks{Rank: make([]int, len(v.g.Switches()))}
		for s := range r.Rank {
			r.Rank[s] = -1
		}
		for _, kv := range d.Items() {
			s, err := v.switchOf(kv[0])
			if err != nil {
				return nil, lang.ParamError("ranks", "%w", err)
			}
			if kv[1] == starlark.None {
				continue
			}
			if r.Rank[s], err = lang.ToInt(kv[1]); err != nil || r.Rank[s] < 0 {
				return nil, lang.ParamError("ranks", "%s: got %s, want a rank from 0", lang.Brief(kv[0]), lang.Brief(kv[1]))
			}
		}
		h, err := v.g.UpDown(c.Fiber().Context, r)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	}),
}

var TreeType = &lang.ResultType{
	Name: "tree",
	Doc:  "A fat tree: the smallest PGFT(height; m; w; p) that holds the fabric. Level 0 are the switches with compute nodes.",
	Members: []lang.ResultMember{
		{Name: "height", Doc: "levels of switches"},
		{Name: "m", Doc: "children of a switch, by level"},
		{Name: "w", Doc: "parents of a switch of the level below, by level"},
		{Name: "p", Doc: "parallel links of such a pair, by level"},
		{Name: "regular", Doc: "nothing is missing"},
		{Name: "missing", Doc: "what is, None if nothing is"},
		{Name: "levels", Doc: "a dict of switch GUID to its level", Long: true},
		{Name: "digits", Doc: "a dict of switch GUID to its place: which subtree, from the top, then which of the equals in it", Long: true},
	},
}

var treeMethod = lang.Builtin{
	Name: "tree",
	Doc:  "Recognises a fat tree, and fails where the fabric is none, saying what is in the way.",
	Example: `
> discover().graph().tree().height
2
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		t, err := v.g.Tree()
		if err != nil {
			return nil, computeError(c, err)
		}
		levels, digits := new(starlark.Dict), new(starlark.Dict)
		for s, n := range v.g.Switches() {
			levels.SetKey(topology.GUIDValue(n.GUID()), starlark.MakeInt(t.Level[s]))
			digits.SetKey(topology.GUIDValue(n.GUID()), lang.Integers(t.Digits[s]))
		}
		missing := starlark.Value(starlark.None)
		if t.Missing != "" {
			missing = starlark.String(t.Missing)
		}
		return lang.NewResult(TreeType, starlark.MakeInt(t.Height), lang.Integers(t.M), lang.Integers(t.W), lang.Integers(t.P), starlark.Bool(t.Regular), missing, levels, digits), nil
	}),
}
