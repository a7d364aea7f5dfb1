package routing

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/search"
)

// rootsMethod is graph.find_roots().
var rootsMethod = lang.Builtin{
	Name:    "find_roots",
	Returns: "list of node",
	Params:  []lang.Param{{Name: "method", Kind: lang.KindChoice, Default: `"color"`, Doc: `"color": the highest that join leaves which no lower switch joins; "farthest": those farthest from compute nodes; "histogram": as in OpenSM; "center": those nearest to all others`}},
	Doc: `Returns the switches at the top of a tree.
All methods but "center" fail if there is no top, with the reason.`,
	Example: `
> g = discover().graph()
> len(g.find_roots())
4
> len(g.find_roots("center"))
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Method string }) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		roots, err := graph.FindRoots(c.Fiber().Context, v.g, a.Method)
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.NewList(v.nodes(roots)), nil
	}),
}

// ranksMethod is graph.ranks(): distances from the roots, by breadth-first search.
var ranksMethod = lang.Builtin{
	Name:   "ranks",
	Params: []lang.Param{{Name: "roots", Kind: lang.KindItems, Doc: "switches: nodes, GUIDs or names"}},
	Doc: `Returns a dict of switch to its distance from the nearest root, in links.
A switch that is cut off from all of them has rank None.`,
	Example: `
> g = discover().graph()
> g.ranks(g.find_roots())[g.switches[0]]
1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Roots []starlark.Value }) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		roots, err := v.rootsOf(a.Roots)
		if err != nil {
			return nil, err
		}
		ranks := starlark.NewDict(len(v.g.Switches()))
		for s, rank := range graph.RanksFrom(v.g, roots).Rank {
			value := starlark.Value(starlark.None)
			if rank >= 0 {
				value = starlark.MakeInt(rank)
			}
			ranks.SetKey(topology.NodeOf(v.g.Switches()[s]), value)
		}
		return ranks, nil
	}),
}

// rootsOf returns the numbers of the switches that the parameter roots names, at least
// one.
func (v *graphValue) rootsOf(items []starlark.Value) ([]int, error) {
	roots := make([]int, len(items))
	for i, x := range items {
		var err error
		if roots[i], err = v.switchOf(x); err != nil {
			return nil, lang.ParamError("roots", "element %d: %w", i, err)
		}
	}
	if len(roots) == 0 {
		return nil, lang.ParamError("roots", "must not be empty")
	}
	return roots, nil
}

// updownMethod is graph.updown(): the distances over up*/down* paths.
var updownMethod = lang.Builtin{
	Name:    "updown",
	Returns: "hops",
	Params: []lang.Param{
		{Name: "ranks", Kind: kindDict("dict"), Doc: "a dict of switch to rank, from ranks(); a link goes up to the lower rank, or to the lower GUID if the ranks are equal"},
		{Name: "allow", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "forbidden turns that paths may take if no other path exists: " + turnWords},
	},
	Doc: `Returns distances over paths that never go up after going down: hops.
Tables filled in from them have no credit loops; check with verify() whether allow adds one.`,
	Example: `
> g = discover().graph()
> g.updown(g.ranks(g.find_roots())).max
2
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Ranks *starlark.Dict
		Allow []starlark.Value
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		r, err := v.ranksOf(a.Ranks)
		if err != nil {
			return nil, lang.ParamError("ranks", "%w", err)
		}
		turns, err := v.turnsOf(a.Allow)
		if err != nil {
			return nil, lang.ParamError("allow", "%w", err)
		}
		h, err := graph.UpDownTurns(c.Fiber().Context, v.g, r, turns)
		if err != nil {
			return nil, computeError(c, err)
		}
		return &hopsValue{h: h, graph: v}, nil
	}),
}

// completeMethod is routes.complete(): paths where up*/down* has none.
var completeMethod = lang.Builtin{
	Name: "complete",
	Params: []lang.Param{
		{Name: "hops", Kind: kindHops, Doc: "the distances that the tables were assigned by, from graph.updown()"},
	},
	Doc: `Adds the paths that up*/down* does not have.
Without roots that all switches go up to, some pairs have no path that goes up and then down: those of hosts and aggregation nodes on top switches, or of switches with links missing. They get paths that close no credit loop with those of the tables; notes has how many, how many LIDs are reached along a spanning tree because no other paths do, and how many entries are left without a path.`,
	Example: `
> g = discover().graph(); hops = g.updown(g.ranks(g.find_roots()))
> t = g.routes()
> t.assign(hops); t.complete(hops)
> t.verify().ok
True
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct{ Hops *hopsValue }) (starlark.Value, error) {
		switch {
		case !a.Hops.h.IsOf(v.graph.g):
			return nil, lang.ParamError("hops", "the distances are those of another graph")
		case !a.Hops.h.IsUpDown():
			return nil, lang.ParamError("hops", "got distances of graph.hops(), want those of graph.updown()")
		}
		if err := search.CompleteAll(c.Fiber().Context, v.Tables, a.Hops.h, a.Hops.h.Ranks()); err != nil {
			return nil, computeError(c, err)
		}
		return starlark.None, nil
	}),
}

// ranksOf returns the ranks in a dict of switch to rank. A switch that is not in it, or
// has None, has the rank -1: no root reaches it.
func (v *graphValue) ranksOf(d *starlark.Dict) (*graph.Ranks, error) {
	r := &graph.Ranks{Rank: slices.Repeat([]int{-1}, len(v.g.Switches()))}
	for _, kv := range d.Items() {
		s, err := v.switchOf(kv[0])
		if err != nil {
			return nil, err
		}
		if kv[1] == starlark.None {
			continue
		}
		if r.Rank[s], err = lang.ToInt(kv[1]); err != nil || r.Rank[s] < 0 {
			return nil, fmt.Errorf("%s: got %s, want a rank from 0", lang.Brief(kv[0]), lang.Brief(kv[1]))
		}
	}
	return r, nil
}

// TreeType is the type of the result of graph.tree().
var TreeType = &lang.ResultType{
	Name: "tree",
	Doc:  "A fat tree: the smallest PGFT(height; m; w; p) that holds the fabric. Level 0 are the switches with compute nodes.",
	Members: []lang.ResultMember{
		{Name: "height", Doc: "levels of switches"},
		{Name: "m", Doc: "children of a switch, by level"},
		{Name: "w", Doc: "parents of a switch of the level below, by level"},
		{Name: "p", Doc: "parallel links of such a pair, by level"},
		{Name: "regular", Doc: "True if nothing is missing"},
		{Name: "missing", Doc: "the missing parts, or None"},
		{Name: "levels", Doc: "a dict of switch GUID to its level", Long: true},
		{Name: "digits", Doc: "a dict of switch GUID to its place: the numbers of its subtrees from the top down, then its number among equal switches", Long: true},
	},
}

// treeMethod is graph.tree(): the fabric as a parallel ports generalized fat tree.
var treeMethod = lang.Builtin{
	Name:    "tree",
	Returns: "tree",
	Doc:     "Recognises a fat tree. It fails if the fabric is not one, with the reason.",
	Example: `
> discover().graph().tree().height
2
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		t, err := graph.FindTree(v.g)
		if err != nil {
			return nil, computeError(c, err)
		}
		levels, digits := new(starlark.Dict), new(starlark.Dict)
		for s, n := range v.g.Switches() {
			levels.SetKey(topology.GUIDValue(n.GUID()), starlark.MakeInt(t.Level[s]))
			digits.SetKey(topology.GUIDValue(n.GUID()), lang.Integers(t.Digits[s]))
		}
		return lang.NewResult(TreeType, starlark.MakeInt(t.Height), lang.Integers(t.M), lang.Integers(t.W), lang.Integers(t.P),
			starlark.Bool(t.Regular), lang.TextOrNone(t.Missing), levels, digits), nil
	}),
}
