package routing

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
)

// routeMethod is graph.route(): all tables, by an engine of fabric/routing.
var routeMethod = lang.Builtin{
	Name:    "route",
	Returns: "routes",
	Params: []lang.Param{
		{Name: "engine", Kind: lang.KindChoice, Doc: engineWords()},
		{Name: "roots", Kind: lang.KindItems, Default: "None", Keyword: true, Doc: "the switches at the top: nodes, GUIDs or names; else they are found"},
		{Name: "policy", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: policyWords + "; else dmodk on fat trees, elsewhere least_loaded"},
		{Name: "scope", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: scopeWords},
		{Name: "seed", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "of what goes by chance"},
		{Name: "keep", Kind: kindRoutes, Default: "None", Keyword: true, Doc: "routes whose entries stay where they are next hops still"},
		{Name: "given", Kind: kindRoutes, Default: "None", Keyword: true, Doc: `the routes that "file" takes`},
		{Name: "max_vls", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "how many virtual lanes may be used, 1..15; else 8, by nue 1"},
		{Name: "torus_config", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "OpenSM's file of that name (torus-2QoS.conf): shape, seeds and datelines; without it they are found"},
	},
	Doc: "Computes all tables by an engine: routes.\n" + engineDocs() +
		`An engine that does not apply fails, and says which condition does not hold, and where; so does one that is given an option it does not heed.`,
	Example: `
> g = discover().graph()
> g.route("ftree")
routes(ftree, 12 switches, LIDs 1..44)
> g.route("updn", roots=g.switches[:4]).verify().ok
True
`,
	Run: lang.Do(func(c *lang.Call, a *routeArgs) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		names := routing.EngineNames()
		i := slices.Index(names, a.Engine)
		if i < 0 {
			return nil, lang.ParamError("engine", "there is no %q%s: use one of %s", a.Engine, fabric.DidYouMean(a.Engine, names), strings.Join(names, ", "))
		}
		engine := routing.Engines()[i]
		for _, option := range a.given() {
			if !slices.Contains(engine.Options, option) {
				return nil, lang.ParamError(option, "%s does not heed it; it heeds %s", engine.Name, orNothing(engine.Options))
			}
		}
		o, err := a.options(c, v)
		if err != nil {
			return nil, err
		}
		r, err := compute(c, v.g, engine.Name, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

// routeArgs are the arguments of route: the engine, and the options of all
// engines. Those that are not given are nil.
type routeArgs struct {
	Engine      string
	Roots       *[]starlark.Value
	Policy      *string
	Scope       *string
	Seed        *int
	Keep, Given *routing.Routes
	MaxVLs      *int
	TorusConfig *string
}

// given are the names of the options that a has, in the order of the parameters.
func (a *routeArgs) given() []string {
	var names []string
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"roots", a.Roots != nil},
		{"policy", a.Policy != nil},
		{"scope", a.Scope != nil},
		{"seed", a.Seed != nil},
		{"keep", a.Keep != nil},
		{"given", a.Given != nil},
		{"max_vls", a.MaxVLs != nil},
		{"torus_config", a.TorusConfig != nil},
	} {
		if option.given {
			names = append(names, option.name)
		}
	}
	return names
}

// options are those for the graph v.
func (a *routeArgs) options(c *lang.Call, v *graphValue) (routing.Options, error) {
	o := routing.Options{Keep: a.Keep, Given: a.Given}
	if a.Policy != nil {
		o.Policy = *a.Policy
	}
	if a.Scope != nil {
		o.Scope = *a.Scope
	}
	if a.Seed != nil {
		o.Seed = uint64(*a.Seed)
	}
	if a.MaxVLs != nil {
		if o.MaxVLs = *a.MaxVLs; o.MaxVLs < 1 || o.MaxVLs > routing.MaxLanes {
			return o, lang.ParamError("max_vls", "got %d, want 1..%d", o.MaxVLs, routing.MaxLanes)
		}
	}
	if a.TorusConfig != nil {
		path := pathArg{*a.TorusConfig}
		err := path.read(c, func(r io.Reader) (err error) {
			o.TorusConfig, err = format.ReadTorusConfig(r, path.Path)
			return err
		})
		if err != nil {
			return o, err
		}
	}
	var err error
	if a.Roots != nil {
		o.Roots, err = v.rootsOf(*a.Roots)
	}
	return o, err
}

// engineWords are the names of the engines, as the choice that a parameter has.
func engineWords() string {
	names := routing.EngineNames()
	last := len(names) - 1
	return `"` + strings.Join(names[:last], `", "`) + `" or "` + names[last] + `"`
}

// engineDocs has a line on each engine.
func engineDocs() string {
	var b strings.Builder
	for _, e := range routing.Engines() {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Doc)
	}
	return b.String()
}

// orNothing lists the options of an engine in an error.
func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
