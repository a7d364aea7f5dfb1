package routing

import (
	"fmt"
	"io"
	"reflect"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Kinds of parameters. Values that only a graph can convert, such as a switch, have the
// kind lang.KindAny or lang.KindItems.
var (
	kindFabric = topology.KindFabric
	kindHops   = kindOf[*hopsValue]("hops")
	kindRow    = kindOf[*rowValue]("row")
	kindRoutes = &lang.Kind{Type: reflect.TypeFor[*routes.Routes](), Convert: toTables}
	// kindSelector is a class of ports, or the name of nodes with wildcards.
	kindSelector = &lang.Kind{Type: reflect.TypeFor[string](), Convert: lang.ToText, Default: lang.TextDefault, Names: true}
	kindTraffic  = &lang.Kind{Type: reflect.TypeFor[starlark.Value](), Convert: toTraffic, Default: textValue}
	kindOrder    = &lang.Kind{Type: reflect.TypeFor[starlark.Value](), Convert: toOrder}
	kindAdaptive = &lang.Kind{Type: reflect.TypeFor[verify.Adaptive](), Convert: toAdaptive}
	kindLIDs     = &lang.Kind{Type: reflect.TypeFor[[]mad.LID](), Convert: toLIDs} // an iterable of LIDs, ports, nodes
)

// kindOf returns the kind of a parameter that takes a V, which errors call want.
func kindOf[V starlark.Value](want string) *lang.Kind {
	return &lang.Kind{Type: reflect.TypeFor[V](), Convert: func(v starlark.Value) (any, error) {
		if _, ok := v.(V); !ok {
			return nil, lang.WantType(v, want)
		}
		return v, nil
	}}
}

// kindDict returns the kind of a parameter that takes a dict, which errors call want.
func kindDict(want string) *lang.Kind { return kindOf[*starlark.Dict](want) }

// toTables converts routes; builtins need only their tables.
func toTables(v starlark.Value) (any, error) {
	r, ok := v.(*Routes)
	if !ok {
		return nil, lang.WantType(v, "routes")
	}
	return r.Tables, nil
}

// textValue returns the default of a parameter that takes text or other values.
func textValue(text string) any {
	if s, ok := lang.TextDefault(text).(string); ok {
		return starlark.String(s)
	}
	return nil
}

// toTraffic converts the name of a pattern, or a traffic matrix.
func toTraffic(v starlark.Value) (any, error) {
	switch v.(type) {
	case starlark.String, *starlark.Dict, starlark.Iterable:
		return v, nil
	}
	return nil, lang.WantType(v, "a pattern, or a dict or list of flows")
}

// toOrder converts an iterable of LIDs, ports and nodes, or a function of a LID.
func toOrder(v starlark.Value) (any, error) {
	if _, ok := v.(starlark.Callable); ok {
		return v, nil
	}
	if _, err := toLIDs(v); err != nil {
		return nil, err
	}
	return v, nil
}

// toAdaptive converts a bool, or the word for the ports that switches choose from.
func toAdaptive(v starlark.Value) (any, error) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return verify.AdaptiveOn, nil
		}
		return verify.AdaptiveOff, nil
	case starlark.String:
		return verify.ParseAdaptive(string(v))
	}
	return nil, lang.WantType(v, `True, False, "minimal" or "updown"`)
}

// toLIDs converts an iterable of LIDs, ports and nodes. The slice is never nil: nil means that the parameter was not given.
func toLIDs(v starlark.Value) (any, error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, lang.WantType(v, "an iterable")
	}
	return lidsOf(lang.Collect(it))
}

// lidsOf returns LIDs: ints, 0..0xBFFF, all LIDs of ports (2^LMC), and the LIDs of nodes.
// A port or node with LID 0 has no LID.
func lidsOf(items []starlark.Value) ([]mad.LID, error) {
	lids := make([]mad.LID, 0, len(items))
	for i, v := range items {
		switch v := v.(type) {
		case topology.Node:
			if v.LID() != 0 {
				lids = append(lids, v.LID())
			}
		case topology.Port:
			for j := range 1 << v.LMC() {
				if v.LID() != 0 {
					lids = append(lids, v.LID()+mad.LID(j))
				}
			}
		default:
			n, err := lang.ToInt(v)
			if err != nil {
				return nil, fmt.Errorf("element %d: got %s, want a LID, a port or a node", i, v.Type())
			}
			if n < 0 || n > int(mad.MaxUnicastLID) {
				return nil, fmt.Errorf("element %d: LID %d is out of range, 0..%d", i, n, mad.MaxUnicastLID)
			}
			lids = append(lids, mad.LID(n))
		}
	}
	return lids, nil
}

// lidOf returns the first LID of a value.
func lidOf(v starlark.Value) (mad.LID, error) {
	lids, err := lidsOf([]starlark.Value{v})
	if err == nil && len(lids) == 0 {
		err = fmt.Errorf("%s has no LID", lang.Brief(v))
	}
	if err != nil {
		return 0, err
	}
	return lids[0], nil
}

// pathArg is the argument of methods that read a file.
type pathArg struct{ Path string }

// read calls fn with the file.
func (a *pathArg) read(c *lang.Call, fn func(r io.Reader) error) error {
	defer c.Reads()()
	file, err := c.Runtime().Files.Open(c.Fiber().Context, a.Path)
	if err != nil {
		return lang.Errorf("%w", err)
	}
	defer file.Close()
	if err := fn(file); err != nil {
		return lang.Errorf("%w", err)
	}
	return nil
}
