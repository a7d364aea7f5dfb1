// Package picture draws fabrics: switches by their distance from the hosts, and how
// many links there are between them.
//
// A Ladder has the tiers of a fabric, the groups of nodes in them and the edges between groups;
// Ladder.SVG and Ladder.DOT write it. A Matrix has the links between two lists of nodes, in rows
// and columns; a Scale divides figures of its cells into classes of colour. Names of nodes are
// untrusted: Text and NodeName make them printable.
package picture

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
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

// GroupOf returns the group that a node is in; nil if it is not drawn.
func (l *Ladder) GroupOf(n *fabric.Node) *Group {
	if id := l.group[n.ID()]; id >= 0 {
		return l.groups[id]
	}
	return nil
}

// Tier is the nodes at one distance from the hosts.
type Tier struct {
	// Num is the distance from the hosts: 0 for hosts, 1 for leaves, -1 for nodes that no
	// host can reach.
	Num    int
	Groups []*Group
}

// Group are nodes that are drawn as one, for they are connected alike.
type Group struct {
	ID    int // from 0, by tiers from the top
	Tier  int
	Nodes []*fabric.Node // in the order of their names
	// MinUp and MaxUp are the fewest and the most links that a node of it has to the next
	// tier, MinDown and MaxDown to the tier below; 0 where not all its links are drawn.
	MinUp, MaxUp, MinDown, MaxDown int
	// Missing is how many links of it cells of matrices have less than most.
	Missing int
}

// Uneven reports whether links of g are missing, up or down: its switches have different numbers
// of them, or cells of matrices have less than most. Leaves may have different numbers of hosts.
func (g *Group) Uneven() bool {
	return g.Missing > 0 || g.MinUp != g.MaxUp || g.Tier > 1 && g.MinDown != g.MaxDown
}

// Bad reports whether links of e are missing, slow or not active.
func (e *Edge) Bad() bool { return e.Missing > 0 || e.States.Worst() >= Slow }

// Edge is the links between two groups, of which A is the higher one, or the links within a group.
type Edge struct {
	A, B    *Group
	Links   int
	States  States // of these
	Missing int    // how many links cells of matrices have less than most
}

// LadderOptions choose what is drawn.
type LadderOptions struct {
	Around []*fabric.Node // their links alone, and who is at the other end; nil: all
	// Single is the largest number of nodes that are each drawn alone. If there are more,
	// nodes with the same neighbours are drawn as one.
	Single int
}

// NewLadder puts the nodes of f in tiers and groups.
//
// Time: O(P + N log N) for N nodes with P ports.
func NewLadder(ctx context.Context, f *fabric.Fabric, o LadderOptions) (*Ladder, error) {
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
	l.gather(l.groupNumbers(n <= o.Single), n <= o.Single)
	notes := []string(nil)
	if o.Around == nil {
		l.Matrices, notes = l.matrices()
	}
	l.Notes = append(l.Notes, notes...)
	l.connect()
	return l, ctx.Err()
}

// Groups returns all groups, by ID.
func (l *Ladder) Groups() []*Group { return l.groups }

// TierWords are tiers in a word, from the hosts up; there may be more tiers.
var TierWords = []string{"host", "leaf", "spine", "core"}

// Tiers returns the nodes of f by their distance from the hosts, which are tier 0; the nodes of
// a tier are sorted by name. Nodes without a path to a host are left out.
func Tiers(ctx context.Context, f *fabric.Fabric) ([][]*fabric.Node, error) {
	l, err := NewLadder(ctx, f, LadderOptions{})
	if err != nil {
		return nil, err
	}
	var tiers [][]*fabric.Node
	for _, t := range l.Tiers {
		for t.Num >= len(tiers) {
			tiers = append(tiers, nil)
		}
		if t.Num < 0 {
			continue
		}
		for _, g := range t.Groups {
			tiers[t.Num] = append(tiers[t.Num], g.Nodes...)
		}
	}
	for _, nodes := range tiers {
		slices.SortFunc(nodes, byName)
	}
	return tiers, nil
}

// State is the state of a link, the worst last.
type State int

const (
	Up      State = iota
	Unknown       // nothing is known of one of its ends
	Slow          // slower than both ends could be
	Down          // an end is not active
	states
)

// String returns s in words.
func (s State) String() string {
	return [...]string{"up", "of unknown state", "slower than both ends could be", "not active"}[s]
}

// Class returns the style sheet class of s.
func (s State) Class() string { return [...]string{"up", "unknown", "slow", "down"}[s] }

// StateOf returns the state of the link at p, which has a peer.
func StateOf(p *fabric.Port) State {
	a, b := p.State(), p.Peer().State()
	down := func(s mad.PortState) bool { return s != 0 && s != mad.PortStateActive }
	switch slow, known := p.Degraded(); {
	case down(a) || down(b):
		return Down
	case slow:
		return Slow
	case !known || a == 0 || b == 0:
		return Unknown
	}
	return Up
}

// States is how many links are in each state.
type States [states]int

// Worst returns the worst state that some links are in.
func (s *States) Worst() State {
	for w := Down; w > Up; w-- {
		if s[w] > 0 {
			return w
		}
	}
	return Up
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

// connect counts the links between groups, and the links of nodes to the next tiers.
func (l *Ladder) connect() {
	groups := l.groups
	up, down := make([]int, len(l.shown)), make([]int, len(l.shown))
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
			down[i]++
		case l.tier[j] == l.tier[i]+1:
			up[i]++
			down[j]++
		}
	}
	for _, m := range l.Matrices {
		for r, n := range m.Rows {
			for c, o := range m.Columns {
				if missing := m.Missing(r, c); missing > 0 {
					e := edge(n, o)
					e.Missing += missing
					e.A.Missing += missing
					if e.A != e.B {
						e.B.Missing += missing
					}
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
			x, y := up[n.ID()], down[n.ID()]
			if i == 0 {
				g.MinUp, g.MinDown = x, y
			}
			g.MinUp, g.MaxUp = min(g.MinUp, x), max(g.MaxUp, x)
			g.MinDown, g.MaxDown = min(g.MinDown, y), max(g.MaxDown, y)
		}
	}
}

// isCentre reports whether g is one of the nodes whose neighbourhood is drawn.
func (l *Ladder) isCentre(g *Group) bool {
	return len(g.Nodes) == 1 && slices.Contains(l.Around, g.Nodes[0])
}

// link is a cable between two nodes that are drawn.
type link struct {
	a, b  *fabric.Node
	state State
}

// maxGroups is how many groups of a tier are drawn; a tier with more is drawn as one group.
const maxGroups = 72

// groupNumbers returns a number for each node, by node id: nodes of a tier with one number are
// drawn as one.
//
// Switches have one number if links between two tiers join them: leaves by the links to the next
// tier, other switches by the links to the tier below. So the leaves of a pod are one group, the
// switches above these another, and switches at the top with the same neighbours a third. A
// missing link changes nothing: Group.MinUp shows it. Switches without such links have one number
// if they are all linked to each other, as in the groups of a dragonfly. CAs and routers have one
// number if their switches are in the same groups.
func (l *Ladder) groupNumbers(single bool) []int {
	of := make([]int, len(l.shown))
	for i := range of {
		of[i] = i
	}
	if single {
		return of
	}
	joined := newPairs(len(of))
	for _, k := range l.links {
		a, b := k.a.ID(), k.b.ID()
		if l.tier[a] > l.tier[b] {
			a, b = b, a
		}
		if k.a.IsSwitch() && k.b.IsSwitch() && l.tier[a] > 0 && l.tier[b] == l.tier[a]+1 {
			joined.join(a, b)
		}
	}
	for i, t := range l.tier {
		switch {
		case t == 1:
			of[i] = joined.lower(i)
		case t > 1:
			of[i] = joined.upper(i)
		}
	}
	l.cliques(of)
	l.hosts(of)
	return of
}

// cliques numbers switches that are in a group alone: those that are all, or nearly all, linked to
// each other get one number. A link within such a group closes triangles with the others, a link
// between two groups closes few. It changes nothing in a tier of whose switches it would leave more
// than a quarter alone, or join all.
//
// Time: O(L D) for L links and D links at a switch.
func (l *Ladder) cliques(of []int) {
	members := map[[2]int]int{} // by tier and number
	for i, t := range l.tier {
		members[[2]int{t, of[i]}]++
	}
	switches := map[int]int{} // by tier
	for i := range l.Fabric.Nodes() {
		if l.Fabric.Nodes()[i].IsSwitch() && l.shown[i] {
			switches[l.tier[i]]++
		}
	}
	beside := make([][]int, len(of)) // switches of its tier, by node id
	for _, k := range l.links {
		a, b := k.a.ID(), k.b.ID()
		t := l.tier[a]
		if a != b && t == l.tier[b] && k.a.IsSwitch() && k.b.IsSwitch() && members[[2]int{t, of[a]}] == 1 && members[[2]int{t, of[b]}] == 1 {
			beside[a], beside[b] = append(beside[a], b), append(beside[b], a)
		}
	}
	for i := range beside {
		slices.Sort(beside[i])
		beside[i] = slices.Compact(beside[i])
	}
	triangles := func(a, b int) (n int) {
		for i, j := 0, 0; i < len(beside[a]) && j < len(beside[b]); {
			switch x, y := beside[a][i], beside[b][j]; {
			case x == y:
				n, i, j = n+1, i+1, j+1
			case x < y:
				i++
			default:
				j++
			}
		}
		return n
	}
	most := make([]int, len(of))
	for a, list := range beside {
		for _, b := range list {
			most[a] = max(most[a], triangles(a, b))
		}
	}
	joined := newPairs(len(of))
	for a := range beside {
		joined.join(a, a)
	}
	for a, list := range beside {
		for _, b := range list {
			if a < b && 2*triangles(a, b) > max(most[a], most[b]) {
				joined.join(a, b)
			}
		}
	}
	joinLone(joined, beside)
	type clique struct{ tier, nodes, ends int }
	found := map[int]*clique{}
	for a, list := range beside {
		if len(list) == 0 {
			continue
		}
		c := found[joined.lower(a)]
		if c == nil {
			c = &clique{tier: l.tier[a]}
			found[joined.lower(a)] = c
		}
		c.nodes++
		for _, b := range list {
			if joined.lower(b) == joined.lower(a) {
				c.ends++
			}
		}
	}
	grouped := map[int]int{} // switches in cliques, by tier
	dense := func(c *clique) bool {
		return c != nil && c.nodes > 2 && 3*c.ends >= 2*c.nodes*(c.nodes-1)
	}
	for _, c := range found {
		if dense(c) && c.nodes < switches[c.tier] {
			grouped[c.tier] += c.nodes
		}
	}
	for a := range beside {
		t := l.tier[a]
		if c := found[joined.lower(a)]; dense(c) && 4*grouped[t] >= 3*switches[t] {
			of[a] = of[joined.lower(a)/2] // of the first of them
		}
	}
}

// joinLone joins each node that is alone with the set of which it is beside two thirds: a missing
// link leaves few triangles in a small set.
func joinLone(joined pairs, beside [][]int) {
	size := map[int]int{}
	for a := range beside {
		size[joined.lower(a)]++
	}
	for a, list := range beside {
		if size[joined.lower(a)] > 1 {
			continue
		}
		links := map[int]int{}
		for _, b := range list {
			set := joined.lower(b)
			if links[set]++; size[set] > 1 && 3*links[set] >= 2*size[set] {
				n := size[set] + 1
				joined.join(a, b)
				size[joined.lower(a)] = n
				break
			}
		}
	}
}

// hosts numbers hosts: those with links to the same groups of switches get one number.
func (l *Ladder) hosts(of []int) {
	at := map[int][]int{}
	for _, k := range l.links {
		for _, end := range [2][2]*fabric.Node{{k.a, k.b}, {k.b, k.a}} {
			if !end[0].IsSwitch() && end[1].IsSwitch() {
				// Above the leaves, groups of two tiers may have the same number.
				at[end[0].ID()] = append(at[end[0].ID()], l.tier[end[1].ID()]*2*len(of)+of[end[1].ID()])
			}
		}
	}
	first := map[string]int{}
	for i := range l.Fabric.Nodes() {
		n := &l.Fabric.Nodes()[i]
		if n.IsSwitch() || !l.shown[i] {
			continue
		}
		slices.Sort(at[i])
		key := strconv.Itoa(int(n.Kind())) + fmt.Sprint(slices.Compact(at[i]))
		if _, ok := first[key]; !ok {
			first[key] = i
		}
		of[i] = first[key]
	}
}

// gather makes tiers of groups.
func (l *Ladder) gather(of []int, single bool) {
	type key struct{ tier, of int }
	groups := map[key]*Group{}
	tiers := map[int][]*Group{}
	for i := range l.Fabric.Nodes() {
		if !l.shown[i] {
			continue
		}
		k := key{l.tier[i], of[i]}
		if groups[k] == nil {
			groups[k] = &Group{Tier: k.tier}
			tiers[k.tier] = append(tiers[k.tier], groups[k])
		}
		groups[k].Nodes = append(groups[k].Nodes, &l.Fabric.Nodes()[i])
	}
	l.group = slices.Repeat([]int{-1}, len(l.shown))
	for t, list := range tiers {
		if len(list) > maxGroups && !single {
			one := &Group{Tier: t}
			for _, g := range list {
				one.Nodes = append(one.Nodes, g.Nodes...)
			}
			tiers[t] = []*Group{one}
			l.Notes = append(l.Notes, fmt.Sprintf("%s: %d groups are drawn as one", TierName(t), len(list)))
		}
		for _, g := range tiers[t] {
			slices.SortFunc(g.Nodes, byName)
		}
		slices.SortFunc(tiers[t], func(x, y *Group) int { return byName(x.Nodes[0], y.Nodes[0]) })
		l.Tiers = append(l.Tiers, Tier{t, tiers[t]})
	}
	slices.Sort(l.Notes)
	slices.SortFunc(l.Tiers, func(x, y Tier) int { return y.Num - x.Num })
	l.order()
	for _, t := range l.Tiers {
		l.groups = append(l.groups, t.Groups...)
	}
	for id, g := range l.groups {
		g.ID = id
		for _, n := range g.Nodes {
			l.group[n.ID()] = id
		}
	}
}

// order sorts groups of leaves by name, and groups of the tiers above and of hosts by the
// middle of their neighbours, so that few lines cross
// (the barycenter method of Sugiyama, Tagawa and Toda, 1981, in one pass).
func (l *Ladder) order() {
	at := make([]int, len(l.shown)) // by node id, the place of its group
	var tiers []int                 // of Tiers, leaves first, hosts last
	for i := len(l.Tiers) - 1; i >= 0; i-- {
		if l.Tiers[i].Num > 0 {
			tiers = append(tiers, i)
		}
	}
	for i := range l.Tiers {
		if l.Tiers[i].Num == 0 {
			tiers = append(tiers, i)
		}
	}
	links := map[int][][2]int{} // by tier: a node of it, and a neighbour that has its place before
	for _, k := range l.links {
		a, b := k.a.ID(), k.b.ID()
		if l.tier[a] > l.tier[b] {
			a, b = b, a
		}
		switch {
		case l.tier[a] == 0 && l.tier[b] == 1: // hosts have leaves next to them
			links[0] = append(links[0], [2]int{a, b})
		case l.tier[a] > 0 && l.tier[b] == l.tier[a]+1:
			links[l.tier[b]] = append(links[l.tier[b]], [2]int{b, a})
		}
	}
	for _, i := range tiers {
		t := &l.Tiers[i]
		of := map[int]int{} // by node, which of t.Groups
		for j, g := range t.Groups {
			for _, n := range g.Nodes {
				of[n.ID()] = j
			}
		}
		// Each neighbour counts once, so that a link that is missing moves nothing.
		type pair struct{ group, place int }
		seen := map[pair]bool{}
		sum, count := make([]int, len(t.Groups)), make([]int, len(t.Groups))
		for _, k := range links[t.Num] {
			if p := (pair{of[k[0]], at[k[1]]}); !seen[p] {
				seen[p] = true
				sum[p.group] += p.place
				count[p.group]++
			}
		}
		middle := map[*Group]float64{}
		for j, g := range t.Groups {
			switch {
			case count[j] > 0:
				middle[g] = float64(sum[j]) / float64(count[j])
			case t.Num != 1: // what has no neighbour stands last
				middle[g] = float64(len(l.shown))
			}
		}
		slices.SortStableFunc(t.Groups, func(x, y *Group) int { return cmp.Compare(middle[x], middle[y]) })
		for j, g := range t.Groups {
			for _, n := range g.Nodes {
				at[n.ID()] = j
			}
		}
	}
}

func byName(a, b *fabric.Node) int {
	return cmp.Or(fabric.CompareNames(a.Name(), b.Name()), cmp.Compare(a.ID(), b.ID()))
}

// pairs are disjoint sets of nodes, by node id, that links between two tiers join. A node
// is in two sets: one with the tier above, another with the tier below.
type pairs []int

func newPairs(nodes int) pairs {
	s := make(pairs, 2*nodes)
	for i := range s {
		s[i] = i
	}
	return s
}

// join joins a node and one of the next tier.
func (s pairs) join(low, high int) {
	a, b := s.first(2*low), s.first(2*high+1)
	s[max(a, b)] = min(a, b)
}

// lower returns the number of the set that a node is in with the tier above.
func (s pairs) lower(node int) int { return s.first(2 * node) }

// upper returns the number of the set that a node is in with the tier below.
func (s pairs) upper(node int) int { return s.first(2*node + 1) }

func (s pairs) first(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}
