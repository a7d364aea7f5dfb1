package routing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/routing/engines"
)

// routeMethod is graph.route(): all tables, by an engine of fabric/routing/engine.
var routeMethod = lang.Builtin{
	Name:    "route",
	Returns: "routes",
	Params:  routeParams(),
	Doc: "Computes all tables by an engine: routes.\n" + engineDocs() +
		`It fails if the engine does not apply to the fabric; the error names the condition that does not hold, and where. An option that the engine does not support is an error.`,
	Example: `
> g = discover().graph()
> g.route("ftree")
routes(ftree, 12 switches, LIDs 1..44)
> g.route("updn", roots=g.switches[:4]).verify().ok
True
`,
	Accepts: func(args starlark.Tuple) []string {
		if len(args) == 0 {
			return nil
		}
		name, _ := starlark.AsString(args[0])
		e, _ := engines.Named(name)
		return paramsOf(&e)
	},
	Run: lang.Do(func(c *lang.Call, a *struct {
		Engine  string
		Options lang.Others
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		e, ok := engines.Named(a.Engine)
		if !ok {
			names := engines.Names()
			return nil, lang.ParamError("engine", "unknown engine %q%s; supported: %s", a.Engine, fabric.DidYouMean(a.Engine, names), strings.Join(names, ", "))
		}
		var o engines.Options
		for _, option := range engines.AllOptions() {
			if value, given := a.Options[option.Name]; given {
				if names := paramsOf(&e); !slices.Contains(names, option.Name) {
					return nil, lang.ParamError(option.Name, "unsupported by engine %s; supported: %s", e.Name, cmp.Or(strings.Join(names, ", "), "none"))
				}
				if err := setOption(c, &option, &o, value); err != nil {
					return nil, err
				}
			}
		}
		r, err := compute(c, v.g, e.Name, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

// routeParams returns the parameters: the engine, and the options of all engines.
func routeParams() []lang.Param {
	names := engines.Names()
	last := len(names) - 1
	words := `"` + strings.Join(names[:last], `", "`) + `" or "` + names[last] + `"`
	params := []lang.Param{{Name: "engine", Kind: lang.KindChoice, Doc: words}}
	for _, o := range engines.AllOptions() {
		params = append(params, lang.Param{Name: o.Name, Kind: kindOfOption(&o).param, Default: "None", Keyword: true, Doc: paramDoc(&o)})
	}
	return params
}

// engineDocs returns one line for each engine.
func engineDocs() string {
	var b strings.Builder
	for _, e := range engines.All() {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Doc)
	}
	return b.String()
}

// computeError returns the error of a computation of fabric/routing/..., or of the end of
// the fiber. The errors of "assign" and "dijkstra" begin with the name of the builtin
// already, so it is not repeated.
func computeError(c *lang.Call, err error) error {
	if stopped := c.Fiber().Stopped(); stopped != nil {
		return stopped
	}
	if strings.HasPrefix(err.Error(), c.Name+": ") {
		return err
	}
	return lang.Errorf("%w", err)
}
