package changes

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/change"
)

// EffectType is the type of the effect of links that go down.
var EffectType = &lang.ResultType{
	Name: "link_effect",
	Doc:  "The predicted effect of links that go down. Pairs are those of a port of a CA or router and a LID of another one.",
	Members: []lang.ResultMember{
		{Name: "links", Type: "list of string", Doc: `the links: "leaf-2/7 - spine-1/2"`},
		{Name: "engine", Type: "string", Doc: "the engine whose tables are predicted; None: the current tables are repaired, or stay"},
		{Name: "through", Doc: "pairs whose packets take the links now"},
		{Name: "lost", Doc: "pairs that have a path and would have none"},
		{Name: "rerouted", Doc: "pairs that would take another path"},
		{Name: "load_before", Doc: "the highest number of pairs on a link"},
		{Name: "load_after", Doc: "the same, after the change"},
		{Name: "credit_loop", Type: "string", Doc: "a credit loop of the predicted tables; None: they have none"},
		{Name: "refusal", Type: "string", Doc: "why the links should stay up: a node loses its last path, packets could deadlock; None: no reason"},
		{Name: "text", Type: "list of string", Doc: "the effect in words"},
	},
}

// effectValue is e as a value; None: no link goes down.
func effectValue(e *change.Effect) starlark.Value {
	if e == nil {
		return starlark.None
	}
	number := starlark.MakeInt64
	return lang.NewResult(EffectType, lang.Texts(e.Links), lang.TextOrNone(e.Engine), number(e.Through), number(e.Lost), number(e.Rerouted), number(e.LoadBefore), number(e.LoadAfter),
		lang.TextOrNone(e.CreditLoop), lang.TextOrNone(e.Refusal()), lang.Texts(e.Lines()))
}
