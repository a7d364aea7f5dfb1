package routing

import (
	"fmt"
	"reflect"
	"slices"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// ClassWords are the values of a parameter that names classes.
const ClassWords = `"cn", "io", "an", "gateway", "sm", "switch", or several: "cn+io"`

// KindClasses is the kind of the parameter classes: a dict of class to what belongs
// to it. The builtin gets rules for all classes.
var KindClasses = &lang.Kind{Type: reflect.TypeFor[[]graph.Rule](), Convert: toRules}

// toRules makes rules of a dict of class to members: rules of its own for the
// classes that it names, and the default ones for the others.
func toRules(v starlark.Value) (any, error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, lang.WantType(v, "dict")
	}
	rules := graph.DefaultRules()
	var own []graph.Rule
	for _, kv := range d.Items() {
		name, _ := starlark.AsString(kv[0])
		class, err := graph.ParseClass(name)
		if err != nil || class&graph.ClassSwitch != 0 {
			return nil, fmt.Errorf("unknown class of end ports %s; supported: %s", kv[0], ClassWords)
		}
		rules = slices.DeleteFunc(rules, func(r graph.Rule) bool { return r.Class == class })
		members, err := classRules(class, kv[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		own = append(own, members...)
	}
	// The first rule of a port's class ends the search, so rules that add a class
	// (Also) go before all others.
	slices.SortStableFunc(own, func(a, b graph.Rule) int { return boolInt(b.Also) - boolInt(a.Also) })
	also := slices.IndexFunc(rules, func(r graph.Rule) bool { return !r.Also })
	if also < 0 {
		also = len(rules)
	}
	return slices.Insert(rules, also, own...), nil
}

// classRules are the rules for the members of a class, one or a list: a rule for each
// name, then one for all GUIDs. That one exists even without GUIDs.
func classRules(class graph.Class, members starlark.Value) ([]graph.Rule, error) {
	list := []starlark.Value{members}
	if it, ok := members.(starlark.Iterable); ok {
		list = lang.Collect(it)
	}
	var rules []graph.Rule
	listed := graph.Rule{Class: class, Also: class == graph.ClassSM, GUIDs: []mad.GUID{}}
	for _, x := range list {
		switch x := x.(type) {
		case topology.Node:
			listed.GUIDs = append(listed.GUIDs, x.GUID())
		case topology.Port:
			listed.GUIDs = append(listed.GUIDs, x.GUID())
		case starlark.String:
			if guid, err := records.ParseGUID(x); err == nil {
				listed.GUIDs = append(listed.GUIDs, guid)
			} else {
				rules = append(rules, graph.Rule{Class: class, Also: listed.Also, Name: string(x)})
			}
		default:
			return nil, fmt.Errorf("got %s, want a name, a GUID, a node or a port", x.Type())
		}
	}
	return append(rules, listed), nil
}

// boolInt orders false before true.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// classOf returns the class of a name, 0 if name is nil (not given).
func classOf(name *string) (graph.Class, error) {
	if name == nil {
		return 0, nil
	}
	return graph.ParseClass(*name)
}

// endpointsParam is the parameter of methods of routes that judge pairs of endpoints.
var endpointsParam = lang.Param{Name: "endpoints", Kind: lang.KindChoice, Default: "None", Keyword: true, Doc: "class of the endpoints: " + ClassWords + " (default: all ports of CAs and routers)"}

// endpointsArg is the argument for endpointsParam.
type endpointsArg struct{ Endpoints *string }

// class returns the class of the endpoints, 0 if not given. A class without ports is an
// error: a verdict on no pairs would look like a good one.
func (a *endpointsArg) class(g *graph.Graph) (graph.Class, error) {
	class, err := classOf(a.Endpoints)
	if err != nil {
		return 0, lang.ParamError("endpoints", "%w", err)
	}
	if class != 0 && len(g.LIDs(class)) == 0 {
		return 0, lang.ParamError("endpoints", "no port is of class %s; names determine the class, unless graph(classes=...) does", class)
	}
	return class, nil
}
