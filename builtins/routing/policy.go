package routing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric/routing"
)

// EnginePolicy is the policy that runs an engine, as a script: its flags are the options
// of the engine. fabsh route runs it by the engine's name, and other scripts load it from
// @std//routing/.
func EnginePolicy(e *routing.Engine) string {
	var params, checks, ofGraph, ofRoute, uses []string
	docs := ""
	use := func(name string) {
		if !slices.Contains(uses, strconv.Quote(name)) {
			uses = append(uses, strconv.Quote(name))
		}
	}
	for _, o := range e.Options {
		flag, value, none := o.Name, "%s", `""`
		if o.Flag != "" {
			flag = o.Flag
		}
		if o.Field == nil {
			ofGraph = append(ofGraph, flag+" = "+flag)
			use("graph")
		} else {
			kind := kindOfOption(&o)
			value, none = kind.value, kind.none
			switch d := o.Default.(type) {
			case int:
				none = strconv.Itoa(d)
			case string:
				none, value = strconv.Quote(d), "%s"
			}
			ofRoute = append(ofRoute, ", "+o.Name+" = "+fmt.Sprintf(value, flag))
			if function, _, ok := strings.Cut(value, "("); ok {
				use(function)
			}
		}
		params = append(params, flag+" = "+none)
		docs += "    " + strings.ReplaceAll(flag, "_", "-") + ": " + flagDoc(&o) + "\n"
		if o.Required != "" {
			checks = append(checks, fmt.Sprintf("    if not %s:\n        fail(\"%s say --%s FILE\")\n", flag, o.Required, strings.ReplaceAll(flag, "_", "-")))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\"\"\"%s\"\"\"\n\n", e.Doc)
	if len(uses) > 0 {
		slices.Sort(uses)
		fmt.Fprintf(&b, "load(\"@std//lib/opensm.star\", %s)\n\n", strings.Join(uses, ", "))
	}
	if len(params) > 0 {
		fmt.Fprintf(&b, "def route(fabric, *, %s):\n    \"\"\"%s\n\n%s    \"\"\"\n", strings.Join(params, ", "), e.Doc, docs)
	} else {
		fmt.Fprintf(&b, "def route(fabric):\n    \"\"\"%s\"\"\"\n", e.Doc)
	}
	b.WriteString(strings.Join(checks, ""))
	graph := "fabric.graph()"
	if len(ofGraph) > 0 {
		fmt.Fprintf(&b, "    g = graph(fabric, %s)\n", strings.Join(ofGraph, ", "))
		graph = "g"
	}
	fmt.Fprintf(&b, "    return %s.route(\"%s\"%s)\n", graph, e.Name, strings.Join(ofRoute, ""))
	return b.String()
}
