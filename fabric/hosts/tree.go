package hosts

import (
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// partitions are the groups of each level, from level 0 up to the roots: each has, by
// switch, the lowest number of its group, which says something of leaves alone. On
// level 0 these are the units. A group of a level above has the leaves between which
// packets need not climb beyond the switches that are so many links away from leaves:
// the subtrees of a tree. A level on which nothing comes together is left out.
//
// noTree says why there are no levels between.
func (n *network) partitions(levels int) (list []joined, noTree string) {
	distance := n.distances()
	height := slices.Max(distance)
	list = []joined{n.unit}
	if levels != 1 {
		noTree = n.noTree(distance)
	}
	whole := n.within(distance, height)
	if levels != 1 && noTree == "" {
		for k := 1; k < height && (levels == 0 || len(list) < levels); k++ {
			p := n.within(distance, k)
			if parts := n.parts(p); parts < n.parts(list[len(list)-1]) && parts > n.parts(whole) {
				list = append(list, p)
			}
		}
	}
	if n.parts(whole) < n.parts(list[len(list)-1]) {
		list = append(list, whole)
	}
	return list, noTree
}

// leaf has, by switch, whether it has an adapter.
func (n *network) leaf() []bool {
	leaf := make([]bool, len(n.names))
	for _, a := range n.adapters {
		leaf[a.leaf] = true
	}
	return leaf
}

// distances are those of switches from the nearest leaf, in links; -1: no path.
func (n *network) distances() []int {
	distance := slices.Repeat([]int{-1}, len(n.names))
	var queue []int
	for s, is := range n.leaf() {
		if is {
			distance[s] = 0
			queue = append(queue, s)
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, e := range n.links[queue[i]] {
			if distance[e.to] < 0 {
				distance[e.to] = distance[queue[i]] + 1
				queue = append(queue, e.to)
			}
		}
	}
	return distance
}

// within joins, beyond the units, switches that are linked, of those that are at most
// so far from leaves.
func (n *network) within(distance []int, most int) joined {
	p := slices.Clone(n.unit)
	for s, d := range distance {
		for _, e := range n.links[s] {
			if 0 <= d && d <= most && distance[e.to] <= most {
				p.join(s, e.to)
			}
		}
	}
	return p
}

// parts is how many groups of leaves there are.
func (n *network) parts(p joined) int {
	found := map[int]bool{}
	for s, is := range n.leaf() {
		if is {
			found[p.of(s)] = true
		}
	}
	return len(found)
}

// noTree describes a link that does not belong to a tree, in which links join
// neighbouring levels; "" without such a link.
func (n *network) noTree(distance []int) string {
	for s, d := range distance {
		for _, e := range n.links[s] {
			if d < 0 || distance[e.to] != d || n.unit.of(s) == n.unit.of(e.to) && d == 0 {
				continue
			}
			where := "have hosts"
			if d > 0 {
				where = "are " + plural.Count(d, "link", "links") + " away from hosts"
			}
			return fmt.Sprintf("the switches do not form a tree: %s and %s are linked, and both switches %s", e.port.Name(), e.port.Peer().Name(), where)
		}
	}
	return ""
}

// build makes the groups of the partitions.
func (n *network) build(g *Groups, hosts map[string]int, parts []joined) {
	names := &namer{n, map[string]bool{}}
	below := map[int]*Group{} // by the number of a group
	for host, unit := range hosts {
		x := below[unit]
		if x == nil {
			x = &Group{}
			below[unit] = x
		}
		x.Hosts = append(x.Hosts, host)
	}
	for _, x := range below {
		slices.SortFunc(x.Hosts, fabric.CompareNames)
	}
	for s, is := range n.leaf() {
		if x := below[n.unit.of(s)]; is && x != nil {
			x.Switches = append(x.Switches, n.names[s])
		}
	}
	for _, x := range below {
		slices.SortFunc(x.Switches, fabric.CompareNames)
	}
	names.leaves(below)
	for level, p := range parts[1:] {
		above := map[int]*Group{}
		for s, x := range below {
			up := above[p.of(s)]
			if up == nil {
				up = &Group{Level: level + 1}
				above[p.of(s)] = up
			}
			up.Groups = append(up.Groups, x)
		}
		for _, x := range above {
			x.sort()
		}
		if level+2 == len(parts) {
			names.roots(above)
		} else {
			names.groups(above)
		}
		below = above
	}
	for _, x := range below {
		g.Roots = append(g.Roots, x)
	}
	sortGroups(g.Roots)
}

// sort puts the groups of a group in order, and its hosts in theirs.
func (g *Group) sort() {
	sortGroups(g.Groups)
	for _, x := range g.Groups {
		g.Hosts = append(g.Hosts, x.Hosts...)
	}
}

// sortGroups orders by the first group of level 0, so that groups of all levels are in
// the order of the leaves.
func sortGroups(list []*Group) {
	slices.SortFunc(list, func(a, b *Group) int { return fabric.CompareNames(a.first().Name, b.first().Name) })
}

// first is the first group of level 0.
func (g *Group) first() *Group {
	for g.Level > 0 {
		g = g.Groups[0]
	}
	return g
}
