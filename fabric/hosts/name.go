package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// namer gives groups their names: after their first leaf, so that they stay where
// others come and go.
type namer struct {
	n     *network
	taken map[string]bool // folded
}

// longest is how long the part of a group's name may be that is a switch's: with what
// stands before and behind it, a name fits a label of Kubernetes (63 characters) and
// Slurm (64).
const longest = 40

// leaves names groups of level 0: by its switch, where there is one, else after the
// first of them. Switches of one name are distinguished by GUIDs.
func (m *namer) leaves(groups map[int]*Group) {
	first := map[int]int{} // switch by group
	for s, is := range m.n.leaf() {
		u := m.n.unit.of(s)
		if f, ok := first[u]; is && (!ok || m.before(s, f)) {
			first[u] = s
		}
	}
	used := map[string]int{}
	for u := range groups {
		used[folded(m.plain(first[u]))]++
	}
	m.inOrder(groups, func(a, b int) int { return cmp.Compare(first[a], first[b]) }, func(u int, g *Group) string {
		s := first[u]
		name := m.plain(s)
		if used[folded(name)] > 1 {
			name = withGUID(name, m.n.guids[s])
		}
		if len(g.Switches) > 1 {
			name = "unit-" + name
		}
		return name
	})
}

// groups names groups of a level between.
func (m *namer) groups(groups map[int]*Group) {
	m.byLeaf(groups, func(g *Group) string {
		pod := "pod-"
		if g.Level > 1 {
			pod = fmt.Sprintf("pod%d-", g.Level)
		}
		return pod + strings.TrimPrefix(g.first().Name, "unit-")
	})
}

// roots names roots. The one with the most hosts is the network, and others have
// been cut off.
func (m *namer) roots(groups map[int]*Group) {
	var main *Group
	for _, g := range groups {
		if main == nil || len(g.Hosts) > len(main.Hosts) || len(g.Hosts) == len(main.Hosts) && fabric.CompareNames(g.first().Name, main.first().Name) < 0 {
			main = g
		}
	}
	m.byLeaf(groups, func(g *Group) string {
		if g == main {
			return "root"
		}
		return "root-" + strings.TrimPrefix(g.first().Name, "unit-")
	})
}

func (m *namer) byLeaf(groups map[int]*Group, name func(*Group) string) {
	m.inOrder(groups, func(a, b int) int { return fabric.CompareNames(groups[a].first().Name, groups[b].first().Name) }, func(_ int, g *Group) string { return name(g) })
}

// inOrder names groups in an order. A name that is taken has a number behind it.
func (m *namer) inOrder(groups map[int]*Group, order func(a, b int) int, name func(int, *Group) string) {
	for _, u := range slices.SortedFunc(maps.Keys(groups), order) {
		g := groups[u]
		g.Name = name(u, g)
		for i := 2; m.taken[folded(g.Name)]; i++ {
			g.Name = fmt.Sprintf("%s-%d", name(u, g), i)
		}
		m.taken[folded(g.Name)] = true
	}
}

// before orders switches by name, then GUID.
func (m *namer) before(a, b int) bool {
	return cmp.Or(fabric.CompareNames(m.n.names[a], m.n.names[b]), cmp.Compare(m.n.guids[a], m.n.guids[b]), cmp.Compare(a, b)) < 0
}

// plain is the name of a switch in the letters that all schedulers take.
func (m *namer) plain(s int) string {
	var b strings.Builder
	gap := false
	for _, c := range []byte(m.n.names[s]) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteByte(c)
			gap = false
		case c == '_' && b.Len() > 0 && !gap:
			b.WriteByte(c)
		default:
			gap = true
		}
	}
	name := strings.TrimRight(b.String(), "_")
	switch {
	case name == "":
		return withGUID("switch", m.n.guids[s])
	case len(name) > longest:
		return withGUID(name, m.n.guids[s])
	}
	return name
}

// withGUID is the beginning of name, with a GUID behind it.
func withGUID(name string, g mad.GUID) string {
	return fmt.Sprintf("%s-%016x", strings.TrimRight(name[:min(len(name), longest-17)], "-_"), uint64(g))
}

// folded is what names may not have in common.
func folded(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
