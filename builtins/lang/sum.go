package lang

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Sum is sum(), for all types that support +.
var Sum = Builtin{
	Name:  "sum",
	Group: GroupRest,
	Params: []Param{
		{Name: "items", Kind: KindItems, Doc: "any iterable of numbers, or of other values that support +"},
		{Name: "start", Kind: KindAny, Default: "0", Doc: "initial value"},
	},
	Doc: "Returns the sum of all items.",
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
