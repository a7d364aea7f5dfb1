package routing

import (
	"fabsh/fabric/routing/graph"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
)

// TreeType is the type of what graph.tree() returns.
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
