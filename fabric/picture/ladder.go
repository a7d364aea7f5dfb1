// Package picture draws fabrics: switches by their distance from the hosts, and how
// many links there are between them.
//
//	ladder.go  Ladder: tiers, groups of nodes in them, edges between these
//	part.go    the tiers of a fabric, and the part of it that is drawn
//	group.go   which nodes are drawn as one
//	matrix.go  links between switches, in rows and columns
//	value.go   a figure of each cell of a matrix, and its classes of colour
//	state.go   what is known of a link
//	svg.go     Ladder.SVG; svgmatrix.go, its matrices
//	dot.go     Ladder.DOT
//	label.go   names of nodes, which are anybody's text
package picture

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric"
)

// Ladder is a fabric, or the neighbourhood of some nodes, as tiers of groups.
type Ladder struct {
	Fabric *fabric.Fabric
	Around []*fabric.Node // whose neighbourhood it is; nil: all is drawn
	Tiers  []Tier         // the top first
	Edges  []Edge         // by group A, then B
	Notes  []string       // what is drawn in a simplified form
	// Matrices are the links between switches; none of a neighbourhood, of which they
	// would not be whole.
	Matrices []*Matrix

	shown  []bool // by node id
	links  []link
	groups []*Group
	group  []int // by node id; -1: not drawn
	tier   []int // by node id
}

// GroupOf is the group that a node is in; nil if it is not drawn.
func (l *Ladder) GroupOf(n *fabric.Node) *Group {
	if id := l.group[n.ID()]; id >= 0 {
		return l.groups[id]
	}
	return nil
}

// Tier is what is as far from the hosts.
type Tier struct {
	// Num is the distance from the hosts: 0 for themselves, 1 for leaves, -1 for what
	// no host can reach.
	Num    int
	Groups []*Group
}

// Group are nodes that are drawn as one, for they are connected alike.
type Group struct {
	ID    int // from 0, by tiers from the top
	Tier  int
	Nodes []*fabric.Node // in the order of their names
	// MinUp and MaxUp are the fewest and the most links that a node of it has to the next
	// tier; 0 where not all its links are drawn.
	MinUp, MaxUp int
}

// Edge is the links between two groups, of which A is the higher one, or those within a group.
type Edge struct {
	A, B    *Group
	Links   int
	States  States // of these
	Missing int    // how many links cells of matrices have less than most
}

// LadderOptions choose what is drawn.
type LadderOptions struct {
	Around []*fabric.Node // their links alone, and who is at the other end; nil: all
	// Single is up to how many nodes each is drawn for itself. Of more, those that are
	// connected alike are drawn as one.
	Single int
}

// maxGroups is how many groups of a tier are drawn; of more, the tier is one.
const maxGroups = 72

// link is a cable between two nodes that are drawn.
type link struct {
	a, b  *fabric.Node
	state State
}

// New puts the nodes of f in tiers and groups.
//
// Time: O(P + N log N) for N nodes with P ports.
func New(ctx context.Context, f *fabric.Fabric, o LadderOptions) (*Ladder, error) {
	l := &Ladder{Fabric: f, Around: o.Around, tier: f.Tiers(), shown: make([]bool, len(f.Nodes()))}
	l.choose(o.Around)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := 0
	for _, shown := range l.shown {
		if shown {
			n++
		}
	}
	l.gather(l.together(n <= o.Single), n <= o.Single)
	notes := []string(nil)
	if o.Around == nil {
		l.Matrices, notes = l.matrices()
	}
	l.Notes = append(l.Notes, notes...)
	l.connect()
	return l, ctx.Err()
}

// choose collects the links that are drawn, and the nodes.
func (l *Ladder) choose(around []*fabric.Node) {
	centre := make([]bool, len(l.shown))
	for _, n := range around {
		centre[n.ID()], l.shown[n.ID()] = true, true
	}
	if around == nil {
		for i := range l.shown {
			l.shown[i], centre[i] = true, true
		}
	}
	ports := l.Fabric.Ports()
	for i := range ports {
		p := &ports[i]
		q := p.Peer()
		if q == nil || q.ID() < p.ID() || !centre[p.Node().ID()] && !centre[q.Node().ID()] {
			continue
		}
		l.shown[p.Node().ID()], l.shown[q.Node().ID()] = true, true
		l.links = append(l.links, link{p.Node(), q.Node(), StateOf(p)})
	}
}

// connect counts the links between groups, and those of switches to the next tier.
func (l *Ladder) connect() {
	groups := l.groups
	up := make([]int, len(l.shown))
	edges := map[[2]int]*Edge{}
	edge := func(x, y *fabric.Node) *Edge {
		a, b := l.group[x.ID()], l.group[y.ID()]
		e := edges[[2]int{min(a, b), max(a, b)}]
		if e == nil {
			e = &Edge{A: groups[min(a, b)], B: groups[max(a, b)]}
			edges[[2]int{min(a, b), max(a, b)}] = e
		}
		return e
	}
	for _, k := range l.links {
		e := edge(k.a, k.b)
		e.Links++
		e.States[k.state]++
		switch i, j := k.a.ID(), k.b.ID(); {
		case l.tier[i] == l.tier[j]+1:
			up[j]++
		case l.tier[j] == l.tier[i]+1:
			up[i]++
		}
	}
	for _, m := range l.Matrices {
		for r, n := range m.Rows {
			for c, o := range m.Columns {
				if missing := m.Missing(r, c); missing > 0 {
					edge(n, o).Missing += missing
				}
			}
		}
	}
	for _, e := range edges {
		l.Edges = append(l.Edges, *e)
	}
	slices.SortFunc(l.Edges, func(x, y Edge) int { return cmp.Or(x.A.ID-y.A.ID, x.B.ID-y.B.ID) })
	for _, g := range groups {
		if l.Around != nil && !l.isCentre(g) {
			continue
		}
		for i, n := range g.Nodes {
			if x := up[n.ID()]; i == 0 {
				g.MinUp, g.MaxUp = x, x
			} else {
				g.MinUp, g.MaxUp = min(g.MinUp, x), max(g.MaxUp, x)
			}
		}
	}
}

// isCentre reports whether g is one of the nodes whose neighbourhood is drawn.
func (l *Ladder) isCentre(g *Group) bool {
	return len(g.Nodes) == 1 && slices.Contains(l.Around, g.Nodes[0])
}

// Groups are all groups, by ID.
func (l *Ladder) Groups() []*Group { return l.groups }
