package help

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/builtins/check"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
)

// Reference returns REFERENCE.md: all functions and types, from the same literals as help.
func Reference(functions []*lang.Builtin) string {
	var b strings.Builder
	b.WriteString(`<!-- Code generated from the functions' declarations: go test ./builtins -run TestReference -update. DO NOT EDIT. -->

# Functions and values of scripts

Scripts are [Starlark](https://github.com/google/starlark-go/blob/master/doc/spec.md), with sets, while loops, recursion and top-level control flow.
The attributes of management datagrams, which records show field by field, are in [ATTRIBUTES.md](../mad/ATTRIBUTES.md).
Every example is run by a test, on the simulated fabric that ` + "`fabsh -F sim`" + ` opens.

A **target** is a LID, a GUID or GID as a string, the exact name of a node, else ` + "`NAME/PORT`" + `, ` + "`dr(\"0,1,3\")`" + `, or a node or port of a fabric; or any iterable of them, which gives a list of results, same order and length.
Names and GUIDs are looked up in the latest ` + "`discover()`" + `, GUIDs else through the subnet administrator.
A **duration** is ` + "`\"500ms\"`, `\"10s\"`" + ` or a number of seconds.

`)
	for _, group := range Groups {
		fmt.Fprintf(&b, "## %s\n\n", group)
		for _, f := range functions {
			if f.Group == group {
				f.Reference(&b, "###")
			}
		}
	}
	b.WriteString("## Modules\n\n`expect`, `fs`, `hostlist`, `re` and `yaml` are fabsh's own; `json` (with its own `encode`), `math` and `time` are those of the Starlark library; `time.now()` is the session's clock.\n\n")
	b.WriteString("## Reports\n\n`fabsh report NAME`, or the name alone at the prompt, runs one; `load(\"@std//report/iblinkinfo.star\", \"main\")` has a script call it, with its options by keyword.\n\n| report | |\n|---|---|\n")
	for _, d := range script.Reports.Shipped() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", d.Name, d.Doc)
	}
	b.WriteString("\n## Values\n\nAttributes never do I/O; functions and methods may. Every value but `error` is true.\n\n")
	for _, d := range check.Types() {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", d.Name, d.Doc)
		plain := slices.DeleteFunc(slices.Clone(d.Members), func(m lang.MemberDoc) bool { return m.Method != nil })
		if len(plain) > 0 {
			b.WriteString("| attribute | |\n|---|---|\n")
			for _, m := range plain {
				fmt.Fprintf(&b, "| `.%s` | %s |\n", m.Name, m.Doc)
			}
			b.WriteByte('\n')
		}
		for _, m := range d.Members {
			if m.Method != nil {
				m.Method.Reference(&b, "####")
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
