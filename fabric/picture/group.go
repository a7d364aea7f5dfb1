package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"fabsh/fabric"
)

// together has which nodes are drawn as one, by node id: those of a tier that have the
// same number.
//
// Of switches it is those that links between two tiers join: a leaf and the next
// tier, any other and the tier below. So the leaves of a pod are one group, the
// switches above these another, and so are those at the top that have the same
// neighbours. A link that is missing changes nothing: Group.MinUp shows it. Of CAs and
// routers it is those at the switches of the same groups.
func (l *Ladder) together(single bool) []int {
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
	l.hosts(of)
	return of
}

// hosts are together where they are at the same groups of switches.
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

// order puts groups of leaves in the order of their names, and those of the tiers above,
// and of the hosts, where the middle of their neighbours is, so that few lines cross
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
// is in two: of one with the tier above, of another with that below.
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

// lower is the number of the set that a node is in with the tier above, and upper of that
// with the tier below.
func (s pairs) lower(node int) int { return s.first(2 * node) }
func (s pairs) upper(node int) int { return s.first(2*node + 1) }

func (s pairs) first(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}
