package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// DOT writes the ladder for Graphviz: a rank for each tier, the number of links on
// edges that have more than one. The output is deterministic.
func (l *Ladder) DOT(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "graph fabric {\n\tgraph [label=%s, labelloc=t, fontname=\"sans-serif\", ranksep=1.5];\n\tnode [shape=box, style=rounded, fontname=\"sans-serif\"];\n\tedge [fontname=\"sans-serif\"];\n",
		dotString(append([]string{Text(l.Fabric.String(), tooltip)}, l.Notes...)...))
	for _, t := range l.Tiers {
		fmt.Fprintf(b, "\t{ // %s\n\t\trank=same;\n", TierName(t.Num))
		for _, g := range t.Groups {
			var lines []string
			if len(g.Nodes) > 1 {
				lines = append(lines, g.CountText())
			}
			names := g.names(tooltip)
			lines = append(lines, names[0])
			if len(names) > 1 {
				lines = append(lines, "… "+names[1])
			}
			if g.Uneven() {
				lines = append(lines, g.LinkText()...)
			}
			mark := ""
			if g.Uneven() {
				mark = `, color="#d55e00"`
			}
			if l.isCentre(g) {
				mark += ", penwidth=3"
			}
			if len(g.Nodes) == 1 && !g.Nodes[0].IsSwitch() {
				mark += ", shape=ellipse, style=solid"
			}
			fmt.Fprintf(b, "\t\tn%d [label=%s%s];\n", g.ID, dotString(lines...), mark)
		}
		fmt.Fprintf(b, "\t}\n")
	}
	for i := range l.Edges {
		e := &l.Edges[i]
		var attributes []string
		if e.Links > 1 {
			attributes = append(attributes, fmt.Sprintf("label=%d, penwidth=%s", e.Links, thickness(e.Links)))
		}
		if e.Bad() {
			attributes = append(attributes, fmt.Sprintf(`color="#d55e00", tooltip=%s`, dotString(e.Text())))
		}
		list := ""
		if len(attributes) > 0 {
			list = " [" + strings.Join(attributes, ", ") + "]"
		}
		fmt.Fprintf(b, "\tn%d -- n%d%s;\n", e.A.ID, e.B.ID, list)
	}
	fmt.Fprintf(b, "}\n")
	return b.Flush()
}

// dotString returns a quoted string of lines. In labels Graphviz interprets \ and, as in HTML, &;
// a quote would end the string (The DOT Language, "Comments and optional formatting"; attribute
// type escString).
func dotString(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`)
	for i, line := range lines {
		lines[i] = escape.Replace(line)
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
