package page

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
)

// ladderView is the view of the topology.
type ladderView struct {
	Boxes  []box
	Lines  []line
	Rings  []ringMark
	Tiers  []tierLabel
	Width  int
	Height int
	Keys   []shade // of lines
	Cells  []shade // of matrices
	Groups []*folded
	Left   int // sections that are not shown
	Notes  []string
	check  int // places without a finding
}

type box struct {
	X, Y, W                    int
	Anchor, Title, Text, Class string
	NamesX, NamesY             int
	NamesAlign, Names          string // of its nodes: shown while it has the focus
}

// line is the links between two boxes.
type line struct {
	Path, Width, Class, Title string
	Halo                      *line // below a bad line, so that it stands out among others
}

// ringMark is a mark on a line with findings.
type ringMark struct {
	X, Y          int
	Anchor, Title string
}

type tierLabel struct {
	Y                   int
	Name, Nodes, Groups string
}

// Limits of the drawing of a fabric. One with more sections is not a tree.
const (
	maxSections = 400
	maxLines    = 3000
	maxTiers    = 40
	maxRings    = 200
)

// Sizes of the ladder, in pixels, and of names in a title, in characters.
const (
	ladderWidth = 1200 // at most
	leastWidth  = 640
	groupWidth  = 240 // of a box, with the room around it, at most
	tierWidth   = 150 // of the labels of tiers, beside the boxes
	boxHeight   = 34
	tierHeight  = 130
	arcHeight   = 80 // room for lines within a tier, above its boxes
	nameWidth   = 7  // of a character of the names of a box, about
	titleNames  = 600
)

func (t *topology) view() *ladderView {
	v := &ladderView{Notes: t.Notes, Keys: keys(picture.Up, picture.Slow, picture.Down, picture.Unknown)}
	v.Keys[2].Text += ", or missing"
	v.Cells = append(keys(picture.Up, picture.Slow, picture.Down), shade{"missing", "missing"}, keys(picture.Unknown)[0])
	tiers := t.Tiers
	if len(tiers) > maxTiers {
		tiers = nil
		v.Notes = append(v.Notes, fmt.Sprintf("%d tiers are too many for a picture.", len(t.Tiers)))
	}
	arcs := map[int]bool{} // tiers with lines between their boxes
	for i := range t.Edges {
		if e := &t.Edges[i]; e.A != e.B && e.A.Tier == e.B.Tier {
			arcs[e.A.Tier] = true
		}
	}
	area := 0 // width for boxes
	for _, tier := range tiers {
		area = max(area, min(len(tier.Groups)*groupWidth, ladderWidth-tierWidth))
	}
	v.Width = max(leastWidth, tierWidth+area)
	boxes := map[*picture.Group]box{}
	y := 6
	for i, tier := range tiers {
		if i > 0 {
			y += tierHeight
		}
		if arcs[tier.Num] {
			y += arcHeight
		}
		nodes := 0
		for j, g := range tier.Groups {
			nodes += len(g.Nodes)
			boxes[g] = t.box(g, j, len(tier.Groups), y, area)
			v.Boxes = append(v.Boxes, boxes[g])
		}
		v.Tiers = append(v.Tiers, tierLabel{y + 10, picture.TierName(tier.Num), plural.Count(nodes, "node", "nodes"), "in " + plural.Count(len(tier.Groups), "group", "groups")})
		v.Height = y + boxHeight + 24 // and a line of names
	}
	v.lines(t, boxes)
	v.Left = max(0, len(t.sections)-maxSections)
	var sections []*sectionView
	for i, s := range t.sections {
		shown := s.show()
		v.check += s.toCheck()
		if i < maxSections {
			sections = append(sections, shown)
		}
	}
	v.Groups = fold(sections)
	return v
}

// keys returns the legend of states.
func keys(states ...picture.State) (list []shade) {
	for _, s := range states {
		list = append(list, shade{s.Class(), s.String()})
	}
	return list
}

// box returns the box of g, the i-th of n groups of its tier, which have a width for all.
func (t *topology) box(g *picture.Group, i, n, y, width int) box {
	pitch := width / n
	w := max(1, min(pitch-max(1, pitch/8), 220))
	b := box{X: tierWidth + i*width/n + (pitch-w)/2, Y: y, W: w, Anchor: t.anchorOf(g), Class: "box", NamesY: y + boxHeight + 14}
	b.NamesX, b.NamesAlign = b.X, "start"
	room := max(leastWidth, tierWidth+width) - b.X
	if i > 0 && 2*i >= n {
		b.NamesX, b.NamesAlign, room = b.X+b.W, "end", b.X+b.W
	}
	facts := append([]string{g.CountText()}, g.LinkText()...)
	for i := range t.Edges {
		if e := &t.Edges[i]; e.A == g && e.B == g {
			facts = append(facts, fmt.Sprintf("%d within", e.Links))
		}
	}
	found := t.found[g]
	if found > 0 {
		facts = append(facts, plural.Count(found, "finding", "findings"))
		b.Class = "box found"
	}
	b.Names = names(g.Nodes, room/nameWidth-labelText)
	b.Title = names(g.Nodes, titleNames) + ": " + strings.Join(facts, ", ")
	switch {
	case w >= 150 || w >= 90 && found == 0:
		b.Text = g.CountText()
		if found > 0 {
			b.Text += fmt.Sprintf(", %d found", found)
		}
	case w >= 90:
		b.Text = fmt.Sprintf("%d, %d found", len(g.Nodes), found)
	case w >= 22:
		b.Text = fmt.Sprint(len(g.Nodes))
		if found > 0 {
			b.Text += "!"
		}
	}
	return b
}

// names returns the names of nodes in at most about limit characters: the first ones and the last.
func names(list []*fabric.Node, limit int) string {
	var b strings.Builder
	for i, n := range list {
		if text := picture.NodeName(n, labelText); i == 0 || b.Len()+len(text) <= limit {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(text)
			continue
		}
		fmt.Fprintf(&b, " … %s (%d)", picture.NodeName(list[len(list)-1], labelText), len(list))
		break
	}
	return b.String()
}

// lines adds the links between groups that have boxes, the worst last: the others must not cover
// them.
func (v *ladderView) lines(t *topology, boxes map[*picture.Group]box) {
	type edge struct {
		*picture.Edge
		class string
		rank  int
	}
	var edges []edge
	most := 1
	for i := range t.Edges {
		e := &t.Edges[i]
		_, ok := boxes[e.A]
		if _, too := boxes[e.B]; !ok || !too || e.A == e.B {
			continue
		}
		most = max(most, e.Links)
		worst := e.States.Worst()
		if e.Missing > 0 {
			worst = picture.Down
		}
		rank := int(worst)
		if t.foundAt[pairOf(e.A, e.B)] > 0 {
			rank += int(picture.Down)
		}
		edges = append(edges, edge{e, worst.Class(), rank})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.rank - b.rank })
	if n := len(edges) - maxLines; n > 0 {
		edges = edges[n:]
		v.Notes = append(v.Notes, fmt.Sprintf("%s between boxes are not drawn; lines with findings, or with missing, slow or inactive links are drawn first.", plural.Count(n, "line", "lines")))
	}
	for _, e := range edges {
		a, b := boxes[e.A], boxes[e.B]
		x1, x2 := a.X+a.W/2, b.X+b.W/2
		path, x, y := fmt.Sprintf("M%d %dL%d %d", x1, a.Y+boxHeight, x2, b.Y), (x1+x2)/2, (a.Y+boxHeight+b.Y)/2
		if a.Y == b.Y {
			top := a.Y - 24 - max(x2-x1, x1-x2)*arcHeight*13/10/ladderWidth
			path, x, y = fmt.Sprintf("M%d %dQ%d %d %d %d", x1, a.Y, (x1+x2)/2, top, x2, b.Y), (x1+x2)/2, (a.Y+top)/2
		}
		l := line{Path: path, Class: e.class, Title: fmt.Sprintf("%s to %s: %s", span(e.A.Nodes), span(e.B.Nodes), e.Text())}
		width := 10 + 50*e.Links/most
		if e.class != picture.Up.Class() {
			width = max(width, 25) // else it is hard to see
		}
		l.Width = fmt.Sprintf("%d.%d", width/10, width%10)
		if e.class == picture.Down.Class() || e.class == picture.Slow.Class() {
			l.Halo = &line{Path: path, Width: fmt.Sprint(width/10 + 4)}
		}
		if n := t.foundAt[pairOf(e.A, e.B)]; n > 0 {
			l.Title += ", " + plural.Count(n, "finding", "findings")
			if len(v.Rings) < maxRings {
				v.Rings = append(v.Rings, ringMark{x, y, t.edgeAnchor(e.Edge), l.Title})
			}
		}
		v.Lines = append(v.Lines, l)
	}
}

// edgeAnchor returns the anchor of the section with the links of e; "": none.
func (t *topology) edgeAnchor(e *picture.Edge) string {
	for _, s := range t.of[e.B.Nodes[0]] {
		if slices.Contains(t.of[e.A.Nodes[0]], s) {
			return s.anchor()
		}
	}
	return t.anchorOf(e.B)
}
