package help

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/datagrams"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/remedies"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/mad"
)

// Groups are the headings of the overview, in order.
var Groups = []string{topology.GroupFabric, datagrams.GroupMAD, topology.GroupTable, datagrams.GroupPort, audits.GroupAudit, remedies.GroupRemedy, lang.GroupFlow, lang.GroupOutput, lang.GroupTest, script.ScenarioGroup, lang.GroupRest}

// functionsIn lists the functions of fabsh among global names, each once, sorted.
func functionsIn(globals starlark.StringDict) []*lang.Builtin {
	var list []*lang.Builtin
	for _, name := range slices.Sorted(maps.Keys(globals)) {
		if f, ok := globals[name].(*lang.Function); ok && f.Name() == name {
			list = append(list, f.Builtin)
		}
	}
	return list
}

// overview lists the global names by group.
func overview(globals starlark.StringDict) string {
	var b strings.Builder
	list := functionsIn(globals)
	width := 0
	for _, f := range list {
		width = max(width, len(f.Name))
	}
	for _, group := range Groups {
		fmt.Fprintf(&b, "%s\n", group)
		for _, f := range list {
			if f.Group == group {
				fmt.Fprintf(&b, "  %-*s  %s\n", width, f.Name, f.Summary())
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("Modules\n  expect, fs, hostlist, json, math, re, time, yaml\n\n")
	var guides []string
	for _, g := range Guides() {
		guides = append(guides, g.Name)
	}
	b.WriteString(lang.Aligned([]lang.Fact{
		{Name: "More", Value: starlark.String(`help(smp_get), help("PortInfo"), help("PortInfo.M_Key"), help("node"), help(value)`)},
		{Name: "Search", Value: starlark.String(`help("search WORDS")`)},
		{Name: "Topics", Value: starlark.String("targets, names, keys, language, tables, csv, exit, simulation, status, traps, methods, classes")},
		{Name: "Guides", Value: starlark.String(strings.Join(guides, ", "))},
	}))
	b.WriteByte('\n')
	b.WriteString("Attributes, by class (help takes both)\n")
	rows := make([]lang.Fact, 0, len(mad.Classes()))
	for _, c := range mad.Classes() {
		if names := records.AttributeNamesIn(c); len(names) > 0 {
			rows = append(rows, lang.Fact{Name: "  " + c.Name, Value: starlark.String(strings.Join(names, ", "))})
		}
	}
	b.WriteString(lang.Aligned(rows))
	b.WriteString("Reports, by these names at the prompt: " + strings.Join(script.Reports.Names(), ", ") + "\n")
	b.WriteString(`Examples: load("@examples//first_look.star", "main"), then main()` + "\n")
	return b.String()
}
