package routing

import (
	"reflect"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
)

// ListModule is hostlist.
var ListModule = &starlarkstruct.Module{
	Name: "hostlist",
	Members: starlark.StringDict{
		"expand": lang.NewFunction(&ListExpand),
		"fold":   lang.NewFunction(&ListFold),
	},
}

// ListFold is hostlist.fold.
var ListFold = lang.Builtin{
	Name:   "hostlist.fold",
	Group:  lang.GroupOutput,
	Params: []lang.Param{{Name: "names", Kind: lang.KindItems, Doc: "texts, nodes or ports; nodes and ports stand for their names"}},
	Doc: `Returns names as one text in Slurm's notation, in natural order and each once.
Only numbers at the end of names are folded, which all programs support.`,
	Example: `
> hostlist.fold(["node9", "node10", "login", "node08", "node11"])
"login,node[08,10-11],node9"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Names []starlark.Value }) (starlark.Value, error) {
		names := make([]string, len(a.Names))
		for i, v := range a.Names {
			switch v := v.(type) {
			case starlark.String:
				names[i] = string(v)
			case lang.Named:
				names[i] = v.Name()
			default:
				return nil, lang.ParamError("names", "element %d: got %s, want string", i, v.Type())
			}
		}
		return starlark.String(hosts.Fold(names)), nil
	}),
}

// ListExpand is hostlist.expand.
var ListExpand = lang.Builtin{
	Name:    "hostlist.expand",
	Group:   lang.GroupOutput,
	Returns: "list of string",
	Params:  []lang.Param{{Name: "text", Kind: lang.KindText, Doc: `names with ranges: "login,rack[1-2]node[01-18]"`}},
	Doc:     "Returns the names that a list in Slurm's notation stands for: at most 1048576.",
	Example: `
> hostlist.expand("login,node[08-10,12]")
["login", "node08", "node09", "node10", "node12"]
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Text string }) (starlark.Value, error) {
		names, err := hosts.Expand(a.Text)
		if err != nil {
			return nil, lang.ParamError("text", "%w", err)
		}
		return lang.Texts(names), nil
	}),
}

var fabricType = reflect.TypeFor[*fabric.Fabric]()

func toFabric(v starlark.Value) (any, error) {
	if f, ok := v.(*topology.Fabric); ok {
		return f.Fabric, nil
	}
	return nil, lang.WantType(v, "fabric")
}
