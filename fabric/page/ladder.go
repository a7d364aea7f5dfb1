package page

import (
	"fmt"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// treeView is the topology as the template shows it.
type treeView struct {
	Boxes  []box
	Lines  []line
	Tiers  []tierLabel
	Height int
	Groups []*groupView
	Left   int // groups that are not shown
	Note   string
}

type box struct {
	X, Y, W                    int
	Anchor, Title, Text, Class string
	Found                      int
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

// How much of a fabric is drawn. What has more groups is no tree.
const (
	maxGroups = 400
	maxLines  = 3000
)

// Of the ladder, in pixels.
const (
	ladderWidth = 1200
	boxHeight   = 34
	tierHeight  = 130
)

// bundle is the links between two groups.
type bundle struct {
	from, to *group
	links    int
	bad      [len(words)]int // by state
}

// worst is the class of b.
func (b *bundle) worst() state {
	for s := down; s > up; s-- {
		if b.bad[s] > 0 {
			return s
		}
	}
	return up
}

func (t *tree) view(r *audit.Report) *treeView {
	v := &treeView{}
	if len(t.groups) == 0 {
		v.Note = "The fabric has no switch."
		return v
	}
	for i := range r.Findings {
		if g := t.groupAt(&r.Findings[i].Subject); g != nil {
			g.found++
		}
	}
	v.Left = max(0, len(t.groups)-maxGroups)
	count := map[int]int{} // groups of a tier
	var tiers []int
	for _, g := range t.groups[:len(t.groups)-v.Left] {
		if count[g.tier]++; count[g.tier] == 1 {
			tiers = append(tiers, g.tier)
		}
	}
	v.Height = (len(tiers)-1)*tierHeight + 24 + boxHeight + 6
	boxes := map[*group]box{}
	for i := len(tiers) - 1; i >= 0; i-- {
		tier, y := tiers[i], (len(tiers)-1-i)*tierHeight+24
		switches, hosts := 0, 0
		for _, g := range t.groups[:len(t.groups)-v.Left] {
			if g.tier != tier {
				continue
			}
			switches, hosts = switches+len(g.switches), hosts+g.hosts
			b := g.box(count[tier], y)
			boxes[g] = b
			v.Boxes = append(v.Boxes, b)
		}
		text := t.tierName(tier) + ": " + fabric.Plural(switches, "switch", "switches") + " in " + fabric.Plural(count[tier], "group", "groups")
		if hosts > 0 {
			text += ", " + fabric.Plural(hosts, "link", "links") + " to hosts"
		}
		v.Tiers = append(v.Tiers, tierLabel{y - 8, text})
	}
	for _, g := range t.groups[:len(t.groups)-v.Left] {
		v.Groups = append(v.Groups, t.matrix(g))
	}
	v.Lines = t.lines(boxes)
	return v
}

// box is that of g, one of n of its tier.
func (g *group) box(n, y int) box {
	pitch := ladderWidth / n
	w := max(1, min(pitch-max(1, pitch/8), 220))
	b := box{X: g.pos*ladderWidth/n + (pitch-w)/2, Y: y, W: w, Anchor: g.anchor(), Found: g.found, Class: "box"}
	b.Title = fmt.Sprintf("%s: %s", g.name(), fabric.Plural(len(g.switches), "switch", "switches"))
	if g.hosts > 0 {
		b.Title += fmt.Sprintf(", %s to hosts", fabric.Plural(g.hosts, "link", "links"))
	}
	if g.found > 0 {
		b.Title += ", " + fabric.Plural(g.found, "finding", "findings")
		b.Class = "box found"
	}
	switch {
	case w >= 150 || w >= 90 && g.found == 0:
		b.Text = fabric.Plural(len(g.switches), "switch", "switches")
		if g.found > 0 {
			b.Text += fmt.Sprintf(", %d found", g.found)
		}
	case w >= 90:
		b.Text = fmt.Sprintf("%d, %d found", len(g.switches), g.found)
	case w >= 22:
		b.Text = fmt.Sprint(len(g.switches))
		if g.found > 0 {
			b.Text += "!"
		}
	}
	return b
}

// lines are the links between groups, from below.
func (t *tree) lines(boxes map[*group]box) []line {
	index := map[[2]int]*bundle{}
	var list []*bundle
	most := 1
	for _, g := range t.groups {
		for _, n := range g.switches {
			for p := range n.Ports() {
				q := p.Peer()
				if q == nil || t.of[q.Node().ID()] == nil || t.of[q.Node().ID()].id <= g.id {
					continue
				}
				to := t.of[q.Node().ID()]
				b := index[[2]int{g.id, to.id}]
				if b == nil {
					b = &bundle{from: g, to: to}
					index[[2]int{g.id, to.id}] = b
					list = append(list, b)
				}
				b.links++
				b.bad[linkState(p)]++
				most = max(most, b.links)
			}
		}
	}
	var lines []line
	for _, b := range list {
		from, ok := boxes[b.from]
		to, too := boxes[b.to]
		if !ok || !too || len(lines) == maxLines {
			continue
		}
		l := line{X1: from.X + from.W/2, Y1: from.Y, X2: to.X + to.W/2, Y2: to.Y + boxHeight, Class: words[b.worst()]}
		if from.Y == to.Y {
			l.Y1, l.Y2 = from.Y+boxHeight/2, to.Y+boxHeight/2
		}
		width := 10 + 50*b.links/most
		l.Width = fmt.Sprintf("%d.%d", width/10, width%10)
		l.Title = fmt.Sprintf("%s to %s: %s", b.from.name(), b.to.name(), fabric.Plural(b.links, "link", "links"))
		for s := unread; s <= down; s++ {
			if b.bad[s] > 0 {
				l.Title += fmt.Sprintf(", %d %s", b.bad[s], stateText[s])
			}
		}
		if n := t.missing[[2]int{b.from.id, b.to.id}]; n > 0 {
			l.Class = words[down]
			l.Title += fmt.Sprintf(", %d missing", n)
		}
		lines = append(lines, l)
	}
	return lines
}

// stateText is how a link is.
var stateText = [...]string{"up", "of unknown state", "slower than both ends could be", "not active"}
