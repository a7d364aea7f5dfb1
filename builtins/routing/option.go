package routing

import (
	"cmp"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
)

// optionKind describes an option in scripts and policies.
type optionKind struct {
	param *lang.Kind // of the parameter of route()
	none  string     // the default of the flag
	value string     // the argument made from the flag; %s is its name
}

func kindOfOption(o *engines.Option) optionKind {
	switch o.Field(new(engines.Options)).(type) {
	case *[]int:
		return optionKind{lang.KindItems, `""`, "switches(fabric, %s)"}
	case **routes.Routes:
		return optionKind{kindRoutes, `""`, "tables(fabric, %s)"}
	case engines.OptionReader:
		return optionKind{lang.KindPath, `""`, "%s or None"}
	case *string:
		return optionKind{lang.KindChoice, `""`, "%s or None"}
	case *bool:
		return optionKind{lang.KindBool, "False", "%s"}
	case *int, *uint64:
		return optionKind{lang.KindInt, "0", "%s"}
	}
	panic("routing: the option " + o.Name + " is of a type that scripts do not have")
}

// setOption sets an option to the value of its parameter.
func setOption(c *lang.Call, option *engines.Option, o *engines.Options, value any) (err error) {
	switch field := option.Field(o).(type) {
	case *[]int:
		*field, err = c.Recv.(*graphValue).rootsOf(value.([]starlark.Value))
		return err
	case **routes.Routes:
		*field = value.(*routes.Routes)
	case engines.OptionReader:
		path := pathArg{value.(string)}
		return path.read(c, func(in io.Reader) error { return field(in, path.Path) })
	case *string:
		*field = value.(string)
	case *int:
		*field = value.(int)
		if option.Max > 0 && (*field < option.Min || *field > option.Max) {
			return lang.ParamError(option.Name, "got %d, want %d..%d", *field, option.Min, option.Max)
		}
	case *bool:
		*field = value.(bool)
	case *uint64:
		*field = uint64(value.(int))
	}
	return nil
}

// jobParamsOf returns the options of an engine that are parameters of route().
func paramsOf(e *engines.Engine) []string {
	var names []string
	for _, o := range e.Options {
		if o.Field != nil {
			names = append(names, o.Name)
		}
	}
	return names
}

// paramDoc returns the help of the parameter of an option, with the bounds of a number,
// and its default.
func paramDoc(o *engines.Option) string {
	doc := o.Doc
	if o.Max > 0 {
		doc += fmt.Sprintf(", %d..%d", o.Min, o.Max)
	}
	if _, ok := o.Default.(int); !ok {
		return doc
	}
	doc += fmt.Sprintf("; default %d", o.Default)
	for _, e := range engines.All() {
		for _, own := range e.Options {
			if own.Name == o.Name && own.Default != o.Default {
				doc += fmt.Sprintf(", by %s %d", e.Name, own.Default)
			}
		}
	}
	return doc
}

// flagDoc returns the help of an option as a flag.
func flagDoc(o *engines.Option) string {
	doc := cmp.Or(o.FlagDoc, o.Doc)
	if o.Max > 0 {
		doc += fmt.Sprintf(", %d to %d", o.Min, o.Max)
	}
	return doc + o.FlagNote
}
