package lang

import (
	"context"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

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
	Run: func(c *Call) (starlark.Value, error) {
		var total starlark.Value = starlark.MakeInt(0)
		if c.Has("start") {
			total = c.Value("start")
		}
		for i, v := range c.Items("items") {
			sum, err := starlark.Binary(syntax.PLUS, total, v)
			if err != nil {
				return nil, fmt.Errorf("sum: item %d: cannot add %s to %s", i, v.Type(), total.Type())
			}
			total = sum
		}
		return total, nil
	},
}

var Sleep = Builtin{
	Name:   "sleep",
	Group:  GroupRest,
	Params: []Param{{Name: "duration", Kind: KindDuration, Doc: `"500ms", "10s", or a number of seconds`}},
	Doc:    "Waits; other items of parallel go on.",
	Example: `
> sleep("1ms")
`,
	Run: func(c *Call) (starlark.Value, error) {
		err := c.Wait(func(ctx context.Context) error {
			return c.Runtime().Clock.Sleep(ctx, c.Duration("duration"))
		})
		if err != nil {
			return nil, err
		}
		return starlark.None, nil
	},
}
