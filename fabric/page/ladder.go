package page

import (
	"fmt"

	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
)

// ladderView is the topology as the template shows it.
type ladderView struct {
	Boxes  []box
	Lines  []line
	Tiers  []tierLabel
	Height int
	Groups []*folded
	Left   int // sections that are not shown
	Notes  []string
}

type box struct {
	X, Y, W                    int
	Anchor, Title, Text, Class string
}

type line struct {
	X1, Y1, X2, Y2 int
	Width          string
	Class, Title   string
}

type tierLabel struct {
	Y    int
	Text string
}

// How much of a fabric is drawn. What has more sections is no tree.
const (
	maxSections = 400
	maxLines    = 3000
	maxTiers    = 40
)

// Of the ladder, in pixels.
const (
	ladderWidth = 1200
	boxHeight   = 34
	tierHeight  = 130
)

func (t *topology) view() *ladderView {
	v := &ladderView{Notes: t.Notes}
	tiers := t.Tiers
	if len(tiers) > maxTiers {
		tiers = nil
		v.Notes = append(v.Notes, fmt.Sprintf("%d tiers are too many for a picture.", len(t.Tiers)))
	}
	boxes := map[*picture.Group]box{}
	for i, tier := range tiers {
		y, nodes := i*tierHeight+24, 0
		for j, g := range tier.Groups {
			nodes += len(g.Nodes)
			boxes[g] = t.box(g, j, len(tier.Groups), y)
			v.Boxes = append(v.Boxes, boxes[g])
		}
		v.Tiers = append(v.Tiers, tierLabel{y - 8, fmt.Sprintf("%s: %s in %s", picture.TierName(tier.Num), plural.Count(nodes, "node", "nodes"), plural.Count(len(tier.Groups), "group", "groups"))})
		v.Height = y + boxHeight + 6
	}
	v.lines(t.Edges, boxes)
	v.Left = max(0, len(t.sections)-maxSections)
	var sections []*sectionView
	for _, s := range t.sections[:len(t.sections)-v.Left] {
		sections = append(sections, s.show())
	}
	v.Groups = fold(sections)
	return v
}

// box is that of g, the i-th of n of its tier.
func (t *topology) box(g *picture.Group, i, n, y int) box {
	pitch := ladderWidth / n
	w := max(1, min(pitch-max(1, pitch/8), 220))
	b := box{X: i*ladderWidth/n + (pitch-w)/2, Y: y, W: w, Anchor: t.anchorOf(g), Class: "box"}
	b.Title = fmt.Sprintf("%s: %s", span(g.Nodes), g.Counted())
	found := t.found[g]
	if found > 0 {
		b.Title += ", " + plural.Count(found, "finding", "findings")
		b.Class = "box found"
	}
	if g.MinUp != g.MaxUp {
		b.Title += fmt.Sprintf(", %d to %d links up", g.MinUp, g.MaxUp)
	}
	switch {
	case w >= 150 || w >= 90 && found == 0:
		b.Text = g.Counted()
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

// lines are the links between groups that have boxes.
func (v *ladderView) lines(edges []picture.Edge, boxes map[*picture.Group]box) {
	most := 1
	for i := range edges {
		if edges[i].A != edges[i].B {
			most = max(most, edges[i].Links)
		}
	}
	for i := range edges {
		e := &edges[i]
		a, ok := boxes[e.A]
		b, too := boxes[e.B]
		if !ok || !too || e.A == e.B || len(v.Lines) == maxLines {
			continue
		}
		l := line{X1: a.X + a.W/2, Y1: a.Y + boxHeight, X2: b.X + b.W/2, Y2: b.Y, Class: e.States.Worst().Class(), Title: fmt.Sprintf("%s to %s: %s", span(e.A.Nodes), span(e.B.Nodes), e.Described())}
		if a.Y == b.Y {
			l.Y1, l.Y2 = a.Y+boxHeight/2, b.Y+boxHeight/2
		}
		if e.Missing > 0 {
			l.Class = picture.Down.Class()
		}
		width := 10 + 50*e.Links/most
		l.Width = fmt.Sprintf("%d.%d", width/10, width%10)
		v.Lines = append(v.Lines, l)
	}
}
