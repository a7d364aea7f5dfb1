package lang

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Sum is sum(): of whatever + joins.
var Sum = Builtin{
	Name:  "sum",
	Group: GroupRest,
	Params: []Param{
		{Name: "items", Kind: KindItems, Doc: "any iterable of numbers, or of what + joins"},
		{Name: "start", Kind: KindAny, Default: "0", Doc: "what the first item is added to"},
	},
	Doc: "Adds up all items.",
	Example: `
> sum([1, 2, 3])
6
`,
	Run: Do(func(c *Call, a *struct {
		Items []starlark.Value
		Start starlark.Value
	}) (starlark.Value, error) {
		var total starlark.Value = starlark.MakeInt(0)
		if a.Start != nil {
			total = a.Start
		}
		for i, v := range a.Items {
			sum, err := starlark.Binary(syntax.PLUS, total, v)
			if err != nil {
				return nil, Errorf("item %d: cannot add %s to %s", i, v.Type(), total.Type())
			}
			total = sum
		}
		return total, nil
	}),
}
