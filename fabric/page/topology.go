package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/picture"
	"fabsh/fabric/plural"
)

// longest limits a text of the page, in characters. Names have at most 64 bytes.
const longest = 4000

// clean returns untrusted text on one line. The template escapes markup, and isolates text that
// is written from right to left with its elements bdi.
func clean(s string) string {
	return strings.Trim(picture.Text(strings.NewReplacer("\n", " ", "\t", " ").Replace(s), longest), "\u2068\u2069")
}

// name returns the name of a node.
func name(n *fabric.Node) string { return picture.NodeName(n, longest) }

// topology is the ladder of a fabric, and the sections of the page about its
// links: one for each matrix, and one for each group of switches that are in none.
type topology struct {
	*picture.Ladder
	sections []*section
	of       map[*fabric.Node][]*section // in which a switch is
	found    map[*picture.Group]int      // findings
}

// section is a matrix, and the links to hosts of the leaves in its rows.
type section struct {
	num    int             // from 1 on
	matrix *picture.Matrix // nil: its nodes are in none
	nodes  []*fabric.Node  // its rows
	hosts  []*fabric.Node  // of these, leaves
	found  int             // findings
}

func newTopology(f *fabric.Fabric, r *audit.Report) (*topology, error) {
	ladder, err := picture.NewLadder(context.Background(), f, picture.LadderOptions{})
	if err != nil {
		return nil, err
	}
	t := &topology{Ladder: ladder, of: map[*fabric.Node][]*section{}, found: map[*picture.Group]int{}}
	shown := map[*fabric.Node]bool{} // switches whose links to hosts are in a section
	add := func(m *picture.Matrix, nodes ...[]*fabric.Node) {
		s := &section{num: len(t.sections) + 1, matrix: m, nodes: nodes[0]}
		t.sections = append(t.sections, s)
		for _, n := range slices.Concat(nodes...) {
			if list := t.of[n]; len(list) == 0 || list[len(list)-1] != s {
				t.of[n] = append(list, s)
			}
		}
		for _, n := range nodes[0] {
			if !shown[n] && len(hostPorts(n)) > 0 {
				shown[n] = true
				s.hosts = append(s.hosts, n)
			}
		}
	}
	for _, m := range ladder.Matrices {
		add(m, m.Rows, m.Columns)
	}
	for _, g := range ladder.Groups() {
		if g.Tier == 0 {
			continue
		}
		if rest := slices.DeleteFunc(slices.Clone(g.Nodes), func(n *fabric.Node) bool { return len(t.of[n]) > 0 }); len(rest) > 0 {
			add(nil, rest)
		}
	}
	for i := range r.Findings {
		s := &r.Findings[i].Subject
		if at := t.sectionAt(s); at != nil {
			at.found++
		}
		for _, e := range s.Ends {
			if nodes := f.NodeByGUID(e.Node); len(nodes) > 0 {
				t.found[t.GroupOf(nodes[0])]++
				break
			}
		}
	}
	return t, nil
}

// hostPorts returns the ports of a switch that lead to other nodes than switches.
func hostPorts(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if q := p.Peer(); q != nil && !q.Node().IsSwitch() {
			list = append(list, p)
		}
	}
	return list
}

// sectionAt returns the section of a subject: for a host the section of its leaf, for a link the
// section with its matrix; nil: none.
func (t *topology) sectionAt(s *audit.Subject) *section {
	var switches []*fabric.Node
	for _, e := range s.Ends {
		for _, n := range t.Fabric.NodeByGUID(e.Node) {
			if n.IsSwitch() {
				switches = append(switches, n)
			}
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() && (e.Num == p.Num() || e.Num == audit.NoPort && !n.IsSwitch()) {
					switches = append(switches, q.Node())
				}
			}
		}
	}
	if len(switches) == 0 || len(t.of[switches[0]]) == 0 {
		return nil
	}
	for _, at := range t.of[switches[0]] {
		if len(switches) > 1 && slices.Contains(t.of[switches[1]], at) {
			return at
		}
	}
	return t.of[switches[0]][0]
}

// anchor returns the anchor of s in the page; "": none.
func (s *section) anchor() string {
	if s == nil || s.num > maxSections {
		return ""
	}
	return fmt.Sprintf("g%d", s.num)
}

// anchorOf returns the anchor of a group of the ladder; for hosts the anchor of their leaf.
func (t *topology) anchorOf(g *picture.Group) string {
	n := g.Nodes[0]
	if !n.IsSwitch() {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() {
				n = q.Node()
				break
			}
		}
	}
	if list := t.of[n]; len(list) > 0 {
		return list[0].anchor()
	}
	return ""
}

// span names nodes by the first and the last.
func span(list []*fabric.Node) string {
	if len(list) == 1 {
		return name(list[0])
	}
	return name(list[0]) + " … " + name(list[len(list)-1])
}

// ladderView is the view of the topology.
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

// Limits of the drawing of a fabric. One with more sections is not a tree.
const (
	maxSections = 400
	maxLines    = 3000
	maxTiers    = 40
)

// Sizes of the ladder, in pixels.
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

// box returns the box of g, the i-th of n groups of its tier.
func (t *topology) box(g *picture.Group, i, n, y int) box {
	pitch := ladderWidth / n
	w := max(1, min(pitch-max(1, pitch/8), 220))
	b := box{X: i*ladderWidth/n + (pitch-w)/2, Y: y, W: w, Anchor: t.anchorOf(g), Class: "box"}
	b.Title = fmt.Sprintf("%s: %s", span(g.Nodes), g.CountText())
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

// lines adds the links between groups that have boxes.
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
		l := line{X1: a.X + a.W/2, Y1: a.Y + boxHeight, X2: b.X + b.W/2, Y2: b.Y, Class: e.States.Worst().Class(), Title: fmt.Sprintf("%s to %s: %s", span(e.A.Nodes), span(e.B.Nodes), e.Text())}
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
