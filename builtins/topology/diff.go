package topology

import (
	"fmt"
	"reflect"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric/diff"
	"fabsh/fabric/plural"
)

// DiffType is the type of what fabric.diff() returns.
var DiffType = &lang.ResultType{
	Name: "fabric_diff",
	Doc:  "The differences between two snapshots of a fabric.",
	Members: []lang.ResultMember{
		{Name: "same", Doc: "whether everything that was compared is equal"},
		{Name: "complete", Doc: "whether both sides got answers to all their requests"},
		{Name: "changes", Doc: "the differences: a list of change, each effect after its cause"},
		{Name: "not_compared", Doc: "what one side does not contain at all, such as the settings of ports in a file of ibnetdiscover: strings"},
		{Name: "unread", Doc: "what one side requested without an answer, which does not count as a change: strings"},
	},
}

// ChangeType is the type of one difference.
var ChangeType = &lang.ResultType{
	Name:      "change",
	Doc:       "One difference between two snapshots of a fabric.",
	Important: []string{"kind", "subject", "before", "after", "effect"},
	Members: []lang.ResultMember{
		{Name: "kind", Type: "string", Doc: `kind of difference: "node.gone", "node.new", "node.replaced" (another GUID at the same cables), "node.name", "link.gone", "link.new", "link.moved" (one end of a cable), "link.swapped" (ends exchanged), "link.width", "link.speed", "routes", "table.lft" and other tables, or "node.", "switch." or "port." and a field of NodeInfo, SwitchInfo or PortInfo: "port.neighbor_mtu"`},
		{Name: "subject", Doc: `the node "leaf-3", the port "leaf-3/7", the link "leaf-3/7 - spine-1/2", by the names of the newer side; odd names are quoted`},
		{Name: "before", Doc: "the old value, a string; None: it did not exist"},
		{Name: "after", Doc: "the new value, a string; None: it no longer exists"},
		{Name: "effect", Doc: `the effects, counted, or the remedy: "12 pairs rerouted, max load +1", "swap the cables at leaf-3/7 and leaf-3/9"; None without either`},
		{Name: "cause", Doc: "the subject of the change that caused this one; None: this change is a cause"},
		{Name: "guid", Type: "string", Doc: "node GUID of the subject, or of the first end of a link; None if it has none"},
		{Name: "port", Doc: "port number on that node; None if the subject has none"},
	},
}

// KindFabric is the kind of a parameter that takes a fabric.
var KindFabric = &lang.Kind{Type: reflect.TypeFor[*Fabric](), Convert: func(v starlark.Value) (any, error) {
	if _, ok := v.(*Fabric); !ok {
		return nil, lang.WantType(v, "fabric")
	}
	return v, nil
}}

// diffMethod is fabric.diff().
var diffMethod = lang.Builtin{
	Name:   "diff",
	Params: []lang.Param{{Name: "other", Kind: KindFabric, Doc: "the newer fabric"}},
	Doc: `Compares the fabric with a newer snapshot of it: nodes, cables, settings, and the tables in both.
Nodes are matched by GUID, then by the place of their cables; if a file has no GUIDs, by name. What one side could not read is in unread and does not count as a change. No requests are sent.`,
	Example: `
> old = discover()
> sim.unlink("leaf-1/3")
> old.diff(discover())
node.gone  node-0003 HCA-1  (ca, 1 port)  1 link
  link.gone  leaf-1/3 - node-0003 HCA-1/1
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Other *Fabric }) (starlark.Value, error) {
		r, err := diff.Compare(c.Fiber().Context, c.Recv.(*Fabric).Fabric, a.Other.Fabric)
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return WrapDiff(r), nil
	}),
}

// Diff is the value `fabric_diff`, with its own text.
type Diff struct {
	*lang.Result
	report *diff.Report
}

// WrapDiff returns the Starlark value of r.
func WrapDiff(r *diff.Report) *Diff {
	return &Diff{lang.NewResult(DiffType, starlark.Bool(r.Same()), starlark.Bool(r.Complete()), wrapChanges(r), lang.Texts(r.NotCompared), lang.Texts(r.Unread)), r}
}

// Display returns the text for people.
func (d *Diff) Display() string { return diffText(d.report) }

// wrapChanges returns the changes of r as a list, each effect after its cause.
func wrapChanges(r *diff.Report) *starlark.List {
	var out []starlark.Value
	var add func(list []*diff.Change, cause starlark.Value)
	add = func(list []*diff.Change, cause starlark.Value) {
		for _, x := range list {
			out = append(out, lang.NewResult(ChangeType, starlark.String(x.Kind), starlark.String(x.Subject), lang.TextOrNone(x.Before), lang.TextOrNone(x.After), lang.TextOrNone(x.Effect), cause, lang.OrNone(x.GUID != 0, GUIDValue(x.GUID)), lang.OrNone(x.Port != diff.NoPort, starlark.MakeInt(x.Port))))
			add(x.Effects, starlark.String(x.Subject))
		}
	}
	add(r.Changes, starlark.None)
	return starlark.NewList(out)
}

// Limits of a text about similar changes; -o json and csv show all.
const (
	maxSeparate = 3 // more changes that differ only in their subject become one line
	maxLines    = 8 // lines for one kind
	maxNamed    = 3 // subjects in such a line
)

// diffText returns a report for people: a line for each cause, its effects below it, and
// similar changes in one line. It always fits on a screen.
func diffText(r *diff.Report) string {
	var b strings.Builder
	switch {
	case r.Same() && r.Complete():
		b.WriteString("nothing differs\n")
	case r.Same():
		b.WriteString("nothing differs of what both sides read\n")
	}
	writeChanges(&b, r.Changes, "")
	writeNotes(&b, "not compared: ", r.NotCompared)
	writeNotes(&b, "unread: ", r.Unread)
	return b.String()
}

func writeNotes(b *strings.Builder, prefix string, notes []string) {
	for i, note := range notes {
		if i == maxLines {
			fmt.Fprintf(b, "%sand %d more\n", prefix, len(notes)-i)
			return
		}
		b.WriteString(prefix + lang.OneLine(note) + "\n")
	}
}

// similarChanges are changes that one line can show.
type similarChanges struct {
	key  [3]string // kind, before, after
	list []*diff.Change
}

func writeChanges(b *strings.Builder, changes []*diff.Change, indent string) {
	var groups []*similarChanges
	byKey := map[[3]string]*similarChanges{}
	for _, x := range changes {
		key := [3]string{x.Kind, x.Before, x.After}
		if indent != "" { // the old values of effects matter less
			key = [3]string{x.Kind}
		}
		g := byKey[key]
		if g == nil {
			g = &similarChanges{key: key}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.list = append(g.list, x)
	}
	lines, left := map[string]int{}, map[string]int{}
	for _, g := range groups {
		list := [][]*diff.Change{g.list}
		if len(g.list) <= maxSeparate {
			list = list[:0]
			for i := range g.list {
				list = append(list, g.list[i:i+1])
			}
		}
		for _, part := range list {
			kind := g.key[0]
			if lines[kind]++; lines[kind] > maxLines {
				left[kind] += len(part)
				continue
			}
			writeSimilar(b, part, indent)
		}
	}
	shown := map[string]bool{}
	for _, g := range groups {
		if n := left[g.key[0]]; n > 0 && !shown[g.key[0]] {
			shown[g.key[0]] = true
			fmt.Fprintf(b, "%s%s  and %d more; -o json and csv show all\n", indent, g.key[0], n)
		}
	}
}

// writeSimilar writes the line of similar changes, and the effects of a single one.
func writeSimilar(b *strings.Builder, list []*diff.Change, indent string) {
	x := list[0]
	parts := []string{x.Kind}
	if len(list) == 1 {
		parts = append(parts, x.Subject)
	} else {
		var names []string
		for _, y := range list[:min(len(list), maxNamed)] {
			names = append(names, y.Subject)
		}
		if n := len(list) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("and %d more", n))
		}
		parts = append(parts, fmt.Sprintf("%d: %s", len(list), strings.Join(names, ", ")))
	}
	switch {
	case x.Kind == diff.LinkSwapped, len(list) > 1 && indent != "": // the effect shows the values
	case x.Before != "" && x.After != "":
		parts = append(parts, x.Before+" -> "+x.After)
	case x.Before+x.After != "" && len(list) == 1 && x.GUID != 0 && x.Port == diff.NoPort:
		parts = append(parts, "("+x.Before+x.After+")")
	}
	if x.Effect != "" && len(list) == 1 {
		parts = append(parts, x.Effect)
	}
	b.WriteString(indent + lang.OneLine(strings.Join(parts, "  ")) + "\n")
	if len(list) == 1 {
		writeChanges(b, x.Effects, indent+"  ")
		return
	}
	effects := 0
	for _, y := range list {
		effects += len(y.Effects)
	}
	if effects > 0 {
		fmt.Fprintf(b, "%s  with %s\n", indent, plural.Count(effects, "effect", "effects"))
	}
}
