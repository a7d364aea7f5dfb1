package topology

import (
	"fmt"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/diff"
	"fabsh/fabric/plural"
)

// Limits of a text about similar changes; -o json and csv show all.
const (
	maxAlike = 3 // more changes that differ only in their subject become one line
	maxLines = 8 // lines for one kind
	maxNamed = 3 // subjects in such a line
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

// alike are changes that one line can show.
type alike struct {
	key  [3]string // kind, before, after
	list []*diff.Change
}

func writeChanges(b *strings.Builder, changes []*diff.Change, indent string) {
	var groups []*alike
	byKey := map[[3]string]*alike{}
	for _, x := range changes {
		key := [3]string{x.Kind, x.Before, x.After}
		if indent != "" { // the old values of effects matter less
			key = [3]string{x.Kind}
		}
		g := byKey[key]
		if g == nil {
			g = &alike{key: key}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.list = append(g.list, x)
	}
	lines, left := map[string]int{}, map[string]int{}
	for _, g := range groups {
		list := [][]*diff.Change{g.list}
		if len(g.list) <= maxAlike {
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
			writeAlike(b, part, indent)
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

// writeAlike writes the line of similar changes, and the effects of a single one.
func writeAlike(b *strings.Builder, list []*diff.Change, indent string) {
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
