package routing

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/routing"
)

// routeMethod is graph.route(): all tables, by an engine of fabric/routing.
var routeMethod = lang.Builtin{
	Name:    "route",
	Returns: "routes",
	Params:  routeParams(),
	Doc: "Computes all tables by an engine: routes.\n" + engineDocs() +
		`An engine that does not apply fails, and says which condition does not hold, and where; so does one that is given an option it does not heed.`,
	Example: `
> g = discover().graph()
> g.route("ftree")
routes(ftree, 12 switches, LIDs 1..44)
> g.route("updn", roots=g.switches[:4]).verify().ok
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Engine  string
		Options lang.Others
	}) (starlark.Value, error) {
		v := c.Recv.(*graphValue)
		engine, ok := routing.EngineNamed(a.Engine)
		if !ok {
			names := routing.EngineNames()
			return nil, lang.ParamError("engine", "there is no %q%s: use one of %s", a.Engine, fabric.DidYouMean(a.Engine, names), strings.Join(names, ", "))
		}
		var o routing.Options
		for _, option := range routing.EngineOptions() {
			if value, given := a.Options[option.Name]; given {
				if names := paramsOf(&engine); !slices.Contains(names, option.Name) {
					return nil, lang.ParamError(option.Name, "%s does not heed it; it heeds %s", engine.Name, orNothing(names))
				}
				if err := setOption(c, &option, &o, value); err != nil {
					return nil, err
				}
			}
		}
		r, err := compute(c, v.g, engine.Name, o)
		if err != nil {
			return nil, computeError(c, err)
		}
		return newRoutes(r, v), nil
	}),
}

// routeParams are the engine, and the options of all engines.
func routeParams() []lang.Param {
	names := routing.EngineNames()
	last := len(names) - 1
	words := `"` + strings.Join(names[:last], `", "`) + `" or "` + names[last] + `"`
	params := []lang.Param{{Name: "engine", Kind: lang.KindChoice, Doc: words}}
	for _, o := range routing.EngineOptions() {
		params = append(params, lang.Param{Name: o.Name, Kind: kindOfOption(&o).param, Default: "None", Keyword: true, Doc: paramDoc(&o)})
	}
	return params
}

// paramDoc is the help of the parameter of an option: with the bounds of a number, and
// what it is where it is not given.
func paramDoc(o *routing.Option) string {
	doc := o.Doc
	if o.Max > 0 {
		doc += fmt.Sprintf(", %d..%d", o.Min, o.Max)
	}
	if _, ok := o.Default.(int); !ok {
		return doc
	}
	doc += fmt.Sprintf("; else %d", o.Default)
	for _, e := range routing.Engines() {
		for _, own := range e.Options {
			if own.Name == o.Name && own.Default != o.Default {
				doc += fmt.Sprintf(", by %s %d", e.Name, own.Default)
			}
		}
	}
	return doc
}

// optionKind is how scripts and policies give an option.
type optionKind struct {
	param *lang.Kind // of the parameter of route()
	none  string     // the flag's value where nothing is given
	value string     // what the parameter gets of the flag: %s is its name
}

func kindOfOption(o *routing.Option) optionKind {
	switch o.Field(new(routing.Options)).(type) {
	case *[]int:
		return optionKind{lang.KindItems, `""`, "switches(fabric, %s)"}
	case **routing.Routes:
		return optionKind{kindRoutes, `""`, "tables(fabric, %s)"}
	case routing.OptionReader:
		return optionKind{lang.KindPath, `""`, "%s or None"}
	case *string:
		return optionKind{lang.KindChoice, `""`, "%s or None"}
	case *int, *uint64:
		return optionKind{lang.KindInt, "0", "%s"}
	}
	panic("routing: the option " + o.Name + " is of a type that scripts do not have")
}

// setOption sets an option to the value of its parameter.
func setOption(c *lang.Call, option *routing.Option, o *routing.Options, value any) (err error) {
	switch field := option.Field(o).(type) {
	case *[]int:
		*field, err = c.Recv.(*graphValue).rootsOf(value.([]starlark.Value))
		return err
	case **routing.Routes:
		*field = value.(*routing.Routes)
	case routing.OptionReader:
		path := pathArg{value.(string)}
		return path.read(c, func(in io.Reader) error { return field(in, path.Path) })
	case *string:
		*field = value.(string)
	case *int:
		*field = value.(int)
		if option.Max > 0 && (*field < option.Min || *field > option.Max) {
			return lang.ParamError(option.Name, "got %d, want %d..%d", *field, option.Min, option.Max)
		}
	case *uint64:
		*field = uint64(value.(int))
	}
	return nil
}

// paramsOf are the options of an engine that are parameters of route().
func paramsOf(e *routing.Engine) []string {
	var names []string
	for _, o := range e.Options {
		if o.Field != nil {
			names = append(names, o.Name)
		}
	}
	return names
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
