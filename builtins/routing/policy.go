package routing

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"fabsh/fabric/routing/engines"
)

// EnginePolicy is the policy that runs an engine, as a script: its flags are the options
// of the engine. fabsh route runs it by the engine's name, and other scripts load it from
// @std//routing/.
func EnginePolicy(e *engines.Engine) string {
	var params, docs, setup, ofGraph, ofRoute string
	for _, o := range e.Options {
		flag := cmp.Or(o.Flag, o.Name)
		word, none := strings.ReplaceAll(flag, "_", "-"), `""`
		if o.Field == nil {
			ofGraph += fmt.Sprintf(", %s = %[1]s", flag)
		} else {
			kind := kindOfOption(&o)
			none = kind.none
			switch d := o.Default.(type) {
			case int:
				none = strconv.Itoa(d)
			case string:
				none, kind.value = strconv.Quote(d), "%s"
			}
			ofRoute += fmt.Sprintf(", %s = "+kind.value, o.Name, flag)
		}
		params += ", " + flag + " = " + none
		docs += "    " + word + ": " + flagDoc(&o) + "\n"
		if o.Required != "" {
			setup += fmt.Sprintf("    if not %s:\n        fail(\"%s use --%s FILE\")\n", flag, o.Required, word)
		}
	}
	graph := "fabric.graph()"
	if ofGraph != "" {
		setup += "    g = graph(fabric" + ofGraph + ")\n"
		graph = "g"
	}
	body := fmt.Sprintf("%s    return %s.route(%q%s)\n", setup, graph, e.Name, ofRoute)
	uses := ""
	for _, function := range []string{"graph", "switches", "tables"} {
		if strings.Contains(body, function+"(fabric") {
			uses += fmt.Sprintf(", %q", function)
		}
	}
	if uses != "" {
		uses = "load(\"@std//lib/opensm.star\"" + uses + ")\n\n"
	}
	if params != "" {
		params, docs = ", *"+params, "\n\n"+docs+"    "
	}
	return `"""` + e.Doc + `"""` + "\n\n" + uses + "def route(fabric" + params + "):\n    " + `"""` + e.Doc + docs + `"""` + "\n" + body
}
