package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
	"fabsh/mad"
)

// graphValue is the value `graph`.
type graphValue struct {
	g      *routing.Graph
	fabric *fabricValue
	lists  map[string]*starlark.List
}

var (
	_ starlark.HasAttrs = (*graphValue)(nil)
	_ factual           = (*graphValue)(nil)
	_ documented        = (*graphValue)(nil)
)

var graphType *valueType[*graphValue]

func init() {
	graphType = newType("graph", "A fabric as routing algorithms want it: its switches, and the links between them that may be used. It never changes.",
		member[*graphValue]{name: "fabric", doc: "what it was made of", get: func(v *graphValue) starlark.Value { return v.fabric }},
		member[*graphValue]{name: "switches", doc: "the switches, by GUID", get: func(v *graphValue) starlark.Value {
			return v.list("switches", func() []starlark.Value { return v.nodes(nil) })
		}},
		member[*graphValue]{name: "top", doc: "the highest LID", get: func(v *graphValue) starlark.Value { return starlark.MakeInt(int(v.g.Top())) }},
		member[*graphValue]{name: "notes", doc: "what of the fabric is not in it, or other than in the fabric", get: func(v *graphValue) starlark.Value {
			return v.list("notes", func() []starlark.Value { return collect(texts(v.g.Notes())) })
		}},
		member[*graphValue]{method: &lidsMethod},
		member[*graphValue]{method: &orderMethod},
		member[*graphValue]{method: &hopsMethod},
		member[*graphValue]{method: &dijkstraMethod},
		member[*graphValue]{method: &rootsMethod},
		member[*graphValue]{method: &ranksMethod},
		member[*graphValue]{method: &updownMethod},
		member[*graphValue]{method: &treeMethod},
		member[*graphValue]{method: &routesMethod},
		member[*graphValue]{method: &routeMethod},
	)
}

func (v *graphValue) String() string {
	return fmt.Sprintf("graph(%s, %s, LIDs 1..%d)", count(len(v.g.Switches()), "switch"), count(len(v.g.Channels())/2, "link"), v.g.Top())
}
func (v *graphValue) Type() string          { return "graph" }
func (v *graphValue) Freeze()               {}
func (v *graphValue) Truth() starlark.Bool  { return true }
func (v *graphValue) Hash() (uint32, error) { return 0, unhashable(v) }
func (v *graphValue) AttrNames() []string   { return graphType.names }
func (v *graphValue) typeDoc() typeDoc      { return graphType.typeDoc() }
func (v *graphValue) schema() string        { return "graph/1" }

func (v *graphValue) Attr(name string) (starlark.Value, error) { return graphType.attr(v, name) }

func (v *graphValue) facts() []fact {
	return []fact{
		{name: "switches", value: starlark.MakeInt(len(v.g.Switches()))},
		{name: "links", value: starlark.MakeInt(len(v.g.Channels()) / 2)},
		{name: "top", value: starlark.MakeInt(int(v.g.Top()))},
		{name: "notes", value: v.list("notes", func() []starlark.Value { return collect(texts(v.g.Notes())) })},
	}
}

func (v *graphValue) display() string {
	text := v.String() + "\n"
	for _, note := range v.g.Notes() {
		text += "note: " + oneLine(note) + "\n"
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
			list = append(list, node{n})
		}
	}
	for _, s := range numbers {
		list = append(list, node{all[s]})
	}
	return list
}

// switchOf is the number of a switch: a node, its GUID or its name.
func (v *graphValue) switchOf(x starlark.Value) (int, error) {
	var guid mad.GUID
	switch x := x.(type) {
	case node:
		if x.Fabric() == v.g.Fabric() {
			if s := v.g.SwitchOf(x.Node); s >= 0 {
				return s, nil
			}
			return 0, fmt.Errorf("%s is a %v, no switch", x.Label(), x.Node.Type())
		}
		guid = x.GUID()
	case starlark.String:
		g, err := parseGUID(x)
		if err != nil {
			nodes := v.g.Fabric().NodeByName(string(x))
			if len(nodes) == 1 {
				return v.switchOf(node{nodes[0]})
			}
			return 0, fmt.Errorf("%s called %q", count(len(nodes), "node"), string(x))
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
func switchesOf(c *call, v *graphValue, param string) ([]int, error) {
	var list []int
	for i, x := range c.Items(param) {
		s, err := v.switchOf(x)
		if err != nil {
			return nil, c.paramError(param, "element %d: %w", i, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func newGraph(g *routing.Graph, f *fabricValue) *graphValue {
	return &graphValue{g: g, fabric: f, lists: map[string]*starlark.List{}}
}

var lidsMethod = Builtin{
	Name:   "lids",
	Params: []Param{{Name: "cls", Kind: KindChoice, Default: "None", Doc: classWords + "; else all"}},
	Doc:    "Returns the LIDs of a class, by switch and port.",
	Example: `
> len(discover().graph().lids("cn"))
32
`,
	fn: func(c *call) (starlark.Value, error) {
		class, err := classOf(c, "cls")
		if err != nil {
			return nil, err
		}
		return integers(c.recv.(*graphValue).g.LIDs(class)), nil
	},
}

var orderMethod = Builtin{
	Name: "order",
	Doc: `Returns the LIDs of compute nodes, subtrees of a fat tree side by side.
In this order shifts meet no contention under d-mod-k, and the ranks of an MPI job should be in it.`,
	Example: `
> discover().graph().order()[:5]
[13, 14, 15, 16, 17]
`,
	fn: func(c *call) (starlark.Value, error) { return integers(c.recv.(*graphValue).g.Order()), nil },
}

var hopsMethod = Builtin{
	Name: "hops",
	Doc: `Returns the distances of all switches from all others: hops.
They count links, or, where these have weights, the weights.`,
	Example: `
> g = discover().graph()
> h = g.hops()
> h[g.switches[0], g.switches[1]], h.max
(2, 2)
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		h, err := v.g.Hops(c.fiber().ctx)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	},
}

// computeError is the error of a computation, or the end of the fiber.
func computeError(c *call, err error) error {
	if stopped := c.fiber().stopped(); stopped != nil {
		return stopped
	}
	if strings.HasPrefix(err.Error(), c.Name+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}

var rootsMethod = Builtin{
	Name:   "find_roots",
	Params: []Param{{Name: "method", Kind: KindChoice, Default: `"color"`, Doc: `"color": no link to a switch farther from compute nodes; "farthest" from them; "histogram", as OpenSM does it; "center": the nearest to all`}},
	Doc: `Returns the switches at the top of a tree.
All ways but "center" fail where there is no top, and say why.`,
	Example: `
> g = discover().graph()
> len(g.find_roots())
4
> len(g.find_roots("center"))
1
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		roots, err := v.g.FindRoots(c.fiber().ctx, c.Text("method"))
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.NewList(v.nodes(append([]int{}, roots...))), nil
	},
}

var ranksMethod = Builtin{
	Name:   "ranks",
	Params: []Param{{Name: "roots", Kind: KindItems, Doc: "switches: nodes, GUIDs or names"}},
	Doc: `Returns a dict of switch to its distance from the nearest root, in links.
None is the rank of a switch that is cut off from all of them.`,
	Example: `
> g = discover().graph()
> g.ranks(g.find_roots())[g.switches[0]]
1
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		roots, err := switchesOf(c, v, "roots")
		if err != nil {
			return nil, err
		}
		if len(roots) == 0 {
			return nil, c.paramError("roots", "it is empty")
		}
		ranks := starlark.NewDict(len(v.g.Switches()))
		for s, rank := range v.g.Ranks(roots).Rank {
			value := starlark.Value(starlark.None)
			if rank >= 0 {
				value = starlark.MakeInt(rank)
			}
			ranks.SetKey(node{v.g.Switches()[s]}, value)
		}
		return ranks, nil
	},
}

var updownMethod = Builtin{
	Name:   "updown",
	Params: []Param{{Name: "ranks", Kind: KindAny, Doc: "a dict of switch to rank, as of ranks(); links go up to the lower rank, of the same to the lower GUID"}},
	Doc: `Returns distances over ways that never go up after they went down: hops.
Tables filled in from these have no credit loops.`,
	Example: `
> g = discover().graph()
> g.updown(g.ranks(g.find_roots())).max
2
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		d, ok := c.Value("ranks").(*starlark.Dict)
		if !ok {
			return nil, c.paramError("ranks", "got %s, want dict", c.Value("ranks").Type())
		}
		r := &routing.Ranks{Rank: make([]int, len(v.g.Switches()))}
		for s := range r.Rank {
			r.Rank[s] = -1
		}
		for _, kv := range d.Items() {
			s, err := v.switchOf(kv[0])
			if err != nil {
				return nil, c.paramError("ranks", "%w", err)
			}
			if kv[1] == starlark.None {
				continue
			}
			if r.Rank[s], err = toInt(kv[1]); err != nil || r.Rank[s] < 0 {
				return nil, c.paramError("ranks", "%s: got %s, want a rank from 0", brief(kv[0]), brief(kv[1]))
			}
		}
		h, err := v.g.UpDown(c.fiber().ctx, r)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	},
}

var treeType = &resultType{
	name: "tree",
	doc:  "A fat tree: the smallest PGFT(height; m; w; p) that holds the fabric. Level 0 are the switches with compute nodes.",
	members: []resultMember{
		{name: "height", doc: "levels of switches"},
		{name: "m", doc: "children of a switch, by level"},
		{name: "w", doc: "parents of a switch of the level below, by level"},
		{name: "p", doc: "parallel links of such a pair, by level"},
		{name: "regular", doc: "nothing is missing"},
		{name: "missing", doc: "what is, None if nothing is"},
		{name: "levels", doc: "a dict of switch GUID to its level", long: true},
		{name: "digits", doc: "a dict of switch GUID to its place: which subtree, from the top, then which of the equals in it", long: true},
	},
}

var treeMethod = Builtin{
	Name: "tree",
	Doc:  "Recognises a fat tree, and fails where the fabric is none, saying what is in the way.",
	Example: `
> discover().graph().tree().height
2
`,
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*graphValue)
		t, err := v.g.Tree()
		if err != nil {
			return nil, computeError(c, err)
		}
		levels, digits := new(starlark.Dict), new(starlark.Dict)
		for s, n := range v.g.Switches() {
			levels.SetKey(guidValue(n.GUID()), starlark.MakeInt(t.Level[s]))
			digits.SetKey(guidValue(n.GUID()), integers(t.Digits[s]))
		}
		missing := starlark.Value(starlark.None)
		if t.Missing != "" {
			missing = starlark.String(t.Missing)
		}
		return newResult(treeType, starlark.MakeInt(t.Height), integers(t.M), integers(t.W), integers(t.P), starlark.Bool(t.Regular), missing, levels, digits), nil
	},
}
