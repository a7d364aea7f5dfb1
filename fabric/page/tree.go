package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// tree is a fabric by tiers. Switches of a tier that are joined by the tiers below, or
// leaves by the tier above them, are a group: a pod, or all spines.
type tree struct {
	f      *fabric.Fabric
	tier   []int    // by node, as of Fabric.Tiers
	of     []*group // by node; nil of what is no switch
	place  []int    // by node: of a switch among those of its tier
	within []int    // by node: of a switch among those of its group
	groups []*group // by tier, the lowest first, then as they stand side by side
	top    int      // tier
	// missing is how many links a group lacks to another, by their ids: matrix counts
	// them.
	missing map[[2]int]int
}

// group is switches of one tier.
type group struct {
	id       int // from 1 on
	tier     int // -1: there is no way to a host
	switches []*fabric.Node
	hosts    int // ports of CAs at them
	found    int // findings about them
	pos      int // among those of the tier
}

func newTree(f *fabric.Fabric) *tree {
	nodes := f.Nodes()
	t := &tree{f: f, tier: f.Tiers(), of: make([]*group, len(nodes)), place: make([]int, len(nodes)), within: make([]int, len(nodes)), missing: map[[2]int]int{}}
	switches := f.OfType(mad.NodeTypeSwitch)
	for i := range switches {
		t.top = max(t.top, t.tier[switches[i].ID()])
	}
	joined := make([]int, len(nodes))
	for i := range joined {
		joined[i] = i
	}
	root := func(i int) int {
		for joined[i] != i {
			joined[i] = joined[joined[i]]
			i = joined[i]
		}
		return i
	}
	// From the lowest tier up: what tiers up to this one join is a group in it.
	for tier := -1; tier <= t.top; tier++ {
		upTo := tier
		if tier == 1 {
			upTo = 2
		}
		for i := range switches {
			n := &switches[i]
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && q.Node().IsSwitch() {
					a, b := t.tier[n.ID()], t.tier[q.Node().ID()]
					if max(a, b) <= upTo && (a < 0) == (b < 0) {
						x, y := root(n.ID()), root(q.Node().ID())
						joined[max(x, y)] = min(x, y)
					}
				}
			}
		}
		byRoot := map[int]*group{}
		var found []*group
		for i := range switches {
			n := &switches[i]
			if t.tier[n.ID()] != tier {
				continue
			}
			g := byRoot[root(n.ID())]
			if g == nil {
				g = &group{tier: tier}
				byRoot[root(n.ID())] = g
				found = append(found, g)
			}
			g.switches = append(g.switches, n)
			t.of[n.ID()] = g
		}
		t.arrange(found)
	}
	return t
}

// arrange puts the groups of a tier in order, by the first switch below them, and the
// switches in these, by the place in their groups that most of those below them have,
// as of cores: one link that is not there changes no order. Else names decide.
func (t *tree) arrange(found []*group) {
	first := map[*group]int{} // place below
	for _, g := range found {
		same := make(map[*fabric.Node]int, len(g.switches))
		first[g] = math.MaxInt
		for _, n := range g.switches {
			var below []int
			for p := range n.Ports() {
				q := p.Peer()
				switch {
				case q == nil:
				case !q.Node().IsSwitch():
					g.hosts++
				case t.tier[q.Node().ID()] < g.tier && t.tier[q.Node().ID()] > 0:
					below = append(below, t.within[q.Node().ID()])
					first[g] = min(first[g], t.place[q.Node().ID()])
				}
			}
			slices.Sort(below)
			if i := len(below) / 2; i > 0 && 2*count(below, below[i]) > len(below) {
				same[n] = below[i]
			}
		}
		slices.SortFunc(g.switches, func(a, b *fabric.Node) int {
			return cmp.Or(cmp.Compare(same[a], same[b]), fabric.CompareNames(a.Name(), b.Name()), cmp.Compare(a.ID(), b.ID()))
		})
	}
	slices.SortFunc(found, func(a, b *group) int {
		x, y := a.switches[0], b.switches[0]
		return cmp.Or(cmp.Compare(first[a], first[b]), fabric.CompareNames(x.Name(), y.Name()), cmp.Compare(x.ID(), y.ID()))
	})
	at := 0
	for pos, g := range found {
		g.pos = pos
		t.groups = append(t.groups, g)
		g.id = len(t.groups)
		for i, n := range g.switches {
			t.within[n.ID()], t.place[n.ID()] = i, at
			at++
		}
	}
}

// count is how often v is in list.
func count(list []int, v int) (n int) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

// anchor is where the page tells of g; "" where it does not.
func (g *group) anchor() string {
	if g == nil || g.id > maxGroups {
		return ""
	}
	return fmt.Sprintf("g%d", g.id)
}

// groupOf is the anchor of the group that a subject is in: of a host, that of its leaf.
func (t *tree) groupOf(s *audit.Subject) string {
	if g := t.groupAt(s); g != nil {
		return g.anchor()
	}
	return ""
}

func (t *tree) groupAt(s *audit.Subject) *group {
	for _, e := range s.Ends {
		for _, n := range t.f.NodeByGUID(e.Node) {
			if g := t.of[n.ID()]; g != nil {
				return g
			}
			for p := range n.Ports() {
				if q := p.Peer(); q != nil && (e.Num == audit.NoPort || e.Num == p.Num()) && t.of[q.Node().ID()] != nil {
					return t.of[q.Node().ID()]
				}
			}
		}
	}
	return nil
}

// tierName is what the switches of a tier are.
func (t *tree) tierName(tier int) string {
	switch {
	case tier < 0:
		return "no way to a host"
	case t.top == 1:
		return "switches"
	case tier == 1:
		return "leaves"
	case tier == t.top:
		return "tier " + fmt.Sprint(tier) + ", the top"
	}
	return "tier " + fmt.Sprint(tier)
}

func (g *group) name() string { return span(g.switches) }

// span names nodes by the first and the last.
func span(list []*fabric.Node) string {
	byName := func(a, b *fabric.Node) int { return fabric.CompareNames(a.Name(), b.Name()) }
	first, last := name(slices.MinFunc(list, byName)), name(slices.MaxFunc(list, byName))
	if len(list) == 1 {
		return first
	}
	return first + " … " + last
}

// name is what a node is called; its GUID where it has no name.
func name(n *fabric.Node) string {
	if s := n.Name(); strings.TrimSpace(s) != "" {
		return clean(s)
	}
	return n.GUID().String()
}

// state is what is known of a link, the worst last.
type state int

const (
	up state = iota
	unread
	slow
	down
)

// words are those of the classes in the style sheet.
var words = [...]string{"up", "unknown", "slow", "down"}

// linkState is the state of the link at p.
func linkState(p *fabric.Port) state {
	q := p.Peer()
	switch {
	case p.Info() == nil || q.Info() == nil || p.State() == 0 || q.State() == 0:
		return unread
	case p.State() != mad.PortStateActive || q.State() != mad.PortStateActive:
		return down
	case p.BestSpeed() == "" || p.BestWidth() == "" || p.Speed() == "" || p.Width() == "":
		return unread
	case p.Speed() != p.BestSpeed() || p.Width() != p.BestWidth():
		return slow
	}
	return up
}
