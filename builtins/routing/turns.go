package routing

import (
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// turnWords describe the values of a parameter of turns.
const turnWords = "tuples of three switches: from, at, to"

// nueMethod is routes.nue(): some LIDs by the engine nue, beside others.
var nueMethod = lang.Builtin{
	Name: "nue",
	Params: []lang.Param{
		{Name: "lids", Kind: kindLIDs, Default: "None", Keyword: true, Doc: "LIDs to route (default: all); the entries of others are kept"},
		{Name: "turns", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "turns of the paths of other packets, " + turnWords + " (default: those to the other LIDs of these routes). [] means no turns, as for LIDs with a virtual lane of their own"},
	},
	Doc: `Fills in paths to LIDs that close no credit loop, neither among them nor with given turns, as the engine nue does.
It returns the number of LIDs without such a path from some switch with CAs; these get no entries. With turns=[] it is 0 in a connected network.`,
	Example: `
> g = discover().graph(); t = g.route("updn")
> t.nue(lids=g.lids("cn")[:8])
0
> t.verify().ok
True
`,
	Run: editing(func(c *lang.Call, v *Routes, a *struct {
		LIDs  []mad.LID
		Turns *[]starlark.Value
	}) (starlark.Value, error) {
		var turns []graph.Turn
		if a.Turns != nil {
			var err error
			if turns, err = v.graph.turnsOf(*a.Turns); err != nil {
				return nil, lang.ParamError("turns", "%w", err)
			}
		}
		n, err := search.Nue(c.Fiber().Context, v.Tables, a.LIDs, turns)
		if err != nil {
			return nil, computeError(c, err)
		}
		return starlark.MakeInt(n), nil
	}),
}

// turnsOf returns turns, in a slice that is not nil.
func (v *graphValue) turnsOf(items []starlark.Value) ([]graph.Turn, error) {
	turns := make([]graph.Turn, len(items))
	for i, x := range items {
		row, ok := x.(starlark.Tuple)
		if !ok || len(row) != 3 {
			return nil, fmt.Errorf("element %d: got %s, want three switches: (from, at, to)", i, lang.Brief(x))
		}
		for k, at := range []*int{&turns[i].From, &turns[i].At, &turns[i].To} {
			var err error
			if *at, err = v.switchOf(row[k]); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
	}
	return turns, nil
}
