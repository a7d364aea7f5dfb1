package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"fabsh/fabric"
)

// groupView is a group with its links: a matrix of switches by the switches above.
type groupView struct {
	Anchor, Name, Tier, Rows, Columns string
	Switches, Hosts, Findings, Look   string // how many, in words; "": none
	W, H, Left, Above                 int    // of the picture, and of its labels, in pixels
	RowLabels, ColumnLabels           []label
	Layers                            []layer
	Bad                               []string // what is not as it should be, in words
	More                              int      // of these
	Note                              string
}

type label struct {
	X, Y int
	Text string
}

type layer struct{ Class, Path string }

// How large a matrix is drawn, and how much is told of it.
const (
	maxMatrixRows    = 128
	maxMatrixColumns = 512
	maxBad           = 50
	cellSize         = 13
	labelled         = 64 // columns that have names
	charWidth        = 6  // of labels, about
)

// cell is the links between two switches.
type cell struct {
	links int
	worst state
	bad   int // of the worst state
}

// matrix is the links of g upwards; those of a group without any above it, to its
// own, or, of the top, nothing.
func (t *tree) matrix(g *group) *groupView {
	v := &groupView{Anchor: g.anchor(), Name: g.name(), Tier: t.tierName(g.tier), Switches: fabric.Plural(len(g.switches), "switch", "switches")}
	if g.hosts > 0 {
		v.Hosts = fabric.Plural(g.hosts, "link", "links") + " to hosts"
	}
	if g.found > 0 {
		v.Findings = fabric.Plural(g.found, "finding", "findings")
	}
	found := map[[2]int]*cell{} // by row and node
	columns := map[*fabric.Node]int{}
	for y, n := range g.switches {
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil || !q.Node().IsSwitch() || q.Node() == n || t.tier[q.Node().ID()] < g.tier {
				continue
			}
			m := q.Node()
			columns[m]++
			c := found[[2]int{y, m.ID()}]
			if c == nil {
				c = &cell{}
				found[[2]int{y, m.ID()}] = c
			}
			c.links++
			switch s := linkState(p); {
			case s > c.worst:
				c.worst, c.bad = s, 1
			case s == c.worst:
				c.bad++
			}
		}
	}
	across := slices.SortedFunc(maps.Keys(columns), func(a, b *fabric.Node) int {
		return cmp.Or(cmp.Compare(t.tier[a.ID()], t.tier[b.ID()]), cmp.Compare(t.place[a.ID()], t.place[b.ID()]))
	})
	if len(across) == 0 {
		v.Note = "No link goes up from here."
		return v
	}
	dense := len(found)*2 > len(g.switches)*len(across) && len(across) > 1 && len(g.switches) > 1
	usual := usualLinks(found)
	var layers [len(words) + 1]cells
	for i := range layers {
		layers[i] = cells{wide: cellSize, high: cellSize, gap: 1}
	}
	const missing = len(words)
	tell := func(format string, args ...any) {
		if len(v.Bad) == maxBad {
			v.More++
			return
		}
		v.Bad = append(v.Bad, fmt.Sprintf(format, args...))
	}
	for y, n := range g.switches {
		for x, m := range across {
			c := found[[2]int{y, m.ID()}]
			pair := func() string { return name(n) + " – " + name(m) }
			switch {
			case c == nil && dense && n != m:
				t.missing[[2]int{g.id, t.of[m.ID()].id}] += usual
				layers[missing].add(x, y)
				tell("%s: no link; most switches of this group have %s to each of these", pair(), fabric.Plural(usual, "link", "links"))
			case c == nil:
			case c.worst > up:
				layers[c.worst].add(x, y)
				tell("%s: %d of %s %s", pair(), c.bad, fabric.Plural(c.links, "link", "links"), stateText[c.worst])
			case dense && c.links < usual:
				t.missing[[2]int{g.id, t.of[m.ID()].id}] += usual - c.links
				layers[missing].add(x, y)
				tell("%s: %s, where most have %d", pair(), fabric.Plural(c.links, "link", "links"), usual)
			default:
				layers[up].add(x, y)
			}
		}
	}
	if n := len(v.Bad) + v.More; n > 0 {
		v.Look = fabric.Plural(n, "place", "places") + " to look at"
	}
	if len(g.switches) > maxMatrixRows || len(across) > maxMatrixColumns {
		v.Note = fmt.Sprintf("%d × %d cells are too many for a picture.", len(g.switches), len(across))
		return v
	}
	for i := range layers {
		if d := layers[i].path(); d != "" {
			v.Layers = append(v.Layers, layer{append(words[:], "missing")[i], d})
		}
	}
	v.label(g, across)
	return v
}

// usualLinks is how many links most pairs have that have any.
func usualLinks(found map[[2]int]*cell) int {
	count := map[int]int{}
	for _, c := range found {
		count[c.links]++
	}
	best := 1
	for _, n := range slices.Sorted(maps.Keys(count)) {
		if count[n] > count[best] {
			best = n
		}
	}
	return best
}

// label gives the rows and columns their names, where there is room for them.
func (v *groupView) label(g *group, across []*fabric.Node) {
	for y, n := range g.switches {
		text := short(name(n))
		v.Left = max(v.Left, 8+charWidth*len([]rune(text)))
		v.RowLabels = append(v.RowLabels, label{-5, y*cellSize + cellSize - 3, text})
	}
	v.Above = 4
	if len(across) <= labelled {
		for x, m := range across {
			text := short(name(m))
			v.Above = max(v.Above, 8+charWidth*len([]rune(text)))
			v.ColumnLabels = append(v.ColumnLabels, label{x*cellSize + cellSize - 3, -5, text})
		}
	}
	v.Columns = fabric.Plural(len(across), "column", "columns") + ": " + span(across)
	v.Rows = fabric.Plural(len(g.switches), "row", "rows")
	v.W, v.H = v.Left+len(across)*cellSize+4, v.Above+len(g.switches)*cellSize+4
}

// short is a label of at most 24 characters.
func short(s string) string {
	if r := []rune(s); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return s
}
