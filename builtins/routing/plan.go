package routing

import (
	"go.starlark.net/starlark"

	"fabsh/builtins/changes"
	"fabsh/builtins/lang"
	"fabsh/fabric/routing"
)

// planMethod is routes.plan(): the change from other tables to these.
var planMethod = lang.Builtin{
	Name:    "plan",
	Returns: "plan",
	Params:  []lang.Param{{Name: "live", Kind: kindRoutes, Doc: "the tables in force, as of get_routes()"}},
	Doc: `Plans the change from the tables in force to these: what is to be written, in an order that is proven.
Nothing is sent but reads. Entries by which the two differ are planned, LIDs above these tables are left alone.`,
	Example: `
> f = discover()
> new = get_routes(f).clone()
> new[f.switches[0]][20] = new[f.switches[0]][21]
> new.plan(get_routes(f)).sets[0].change
"LIDs 0..63: 1 entry"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Live *routing.Routes }) (starlark.Value, error) {
		r := c.Recv.(*Routes).Tables
		from := r.Engine
		if from == "" {
			from = "routes"
		}
		return changes.Made(c, from, func() error { return changes.WriteRoutes(c, r, a.Live) })
	}),
}
