package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// manyLeaves is the number of leaves from which on a name does not identify one host:
// several hosts have it.
const manyLeaves = 64

// overlaps are the hosts that leaves have in common.
type overlaps struct {
	hosts  []int          // by leaf
	common map[[2]int]int // by pair of leaves, the lower first
}

// overlaps counts hosts of leaves. A host of whose name there may be several counts for no pair.
func (n *network) overlaps() *overlaps {
	leaves := map[string][]int{}
	doubtful := map[string]bool{}
	nodes := map[string]*fabric.Node{} // by their whole names
	for _, a := range n.adapters {
		leaves[a.host] = append(leaves[a.host], a.leaf)
		if b, found := nodes[a.whole]; found && b != a.node {
			doubtful[a.host] = true
		}
		nodes[a.whole] = a.node
	}
	o := &overlaps{make([]int, len(n.names)), map[[2]int]int{}}
	for host, list := range leaves {
		slices.Sort(list)
		list = slices.Compact(list)
		for i, a := range list {
			o.hosts[a]++
			if doubtful[host] || len(list) >= manyLeaves {
				continue
			}
			for _, b := range list[i+1:] {
				o.common[[2]int{a, b}]++
			}
		}
	}
	return o
}

// both returns how many hosts two leaves have in common.
func (o *overlaps) both(a, b int) int { return o.common[[2]int{min(a, b), max(a, b)}] }

// alike reports whether leaves have in common more than half of the hosts of the smaller one: a cable at
// the wrong leaf, or a host with two adapters among others that have one, makes no leaves alike.
func (o *overlaps) alike(a, b int) bool { return 2*o.both(a, b) > min(o.hosts[a], o.hosts[b]) }

// joinUnits joins leaves that are alike: where hosts have an adapter for each rail, each at a leaf of
// its own, these leaves are one place to a scheduler.
func (n *network) joinUnits(o *overlaps) {
	for pair := range o.common {
		if o.alike(pair[0], pair[1]) {
			n.unit.join(pair[0], pair[1])
		}
	}
}

// placeHosts are the hosts by the unit that most of their adapters are at; of units
// with as many, the first. The error is that hosts have the same name.
func (n *network) placeHosts() (map[string]int, error) {
	list := slices.Clone(n.adapters)
	slices.SortStableFunc(list, func(a, b adapter) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(n.unit.of(a.leaf), n.unit.of(b.leaf)), cmp.Compare(a.whole, b.whole))
	})
	hosts, double := map[string]int{}, []string{}
	for len(list) > 0 {
		end := slices.IndexFunc(list, func(a adapter) bool { return a.host != list[0].host })
		if end < 0 {
			end = len(list)
		}
		own := list[:end]
		list = list[end:]
		if text := n.duplicate(own); text != "" {
			double = append(double, text)
		}
		hosts[own[0].host] = n.placeHost(own)
	}
	if len(double) > 0 {
		slices.SortFunc(double, fabric.CompareNames)
		more := ""
		if len(double) > maxNoteNames {
			more = fmt.Sprintf(" and %d more", len(double)-maxNoteNames)
			double = double[:maxNoteNames]
		}
		return nil, fmt.Errorf("several hosts have the same name: %s%s; give them names of their own (--node-name-map FILE), or leave them out (--class 'GUID=io')", strings.Join(double, "; "), more)
	}
	return hosts, nil
}

// duplicate names two adapters of one name that cannot be of one host, "" without such: in
// different systems if the names have an adapter ("n7 mlx5_0"), else at leaves of several units.
func (n *network) duplicate(own []adapter) string {
	first := map[string]adapter{}
	for _, a := range own {
		b, found := first[a.whole]
		if !found {
			first[a.whole] = a
			continue
		}
		system := a.node.Info().SystemImageGUID
		one := system != 0 && system == b.node.Info().SystemImageGUID
		if a.node == b.node || one || !strings.Contains(strings.TrimSpace(a.whole), " ") && n.unit.of(a.leaf) == n.unit.of(b.leaf) {
			continue
		}
		return fmt.Sprintf("%.80q (%s at %.80q, %s at %.80q)", a.whole, b.node.GUID(), b.port, a.node.GUID(), a.port)
	}
	return ""
}

// placeHost is the unit of the host that has these adapters, which are sorted by units.
func (n *network) placeHost(own []adapter) int {
	best, most, units := 0, 0, 0
	for i := 0; i < len(own); {
		u, first := n.unit.of(own[i].leaf), i
		for i < len(own) && n.unit.of(own[i].leaf) == u {
			i++
		}
		units++
		if i-first > most {
			best, most = u, i-first
		}
	}
	if units > 1 {
		n.notes.add("adapters at leaves of several units: host placed where most of them are, or at the first", own[0].host)
	}
	return best
}

// disjointSets are sets of numbers, which are joined (union-find).
type disjointSets []int

func newDisjointSets(n int) disjointSets {
	j := make(disjointSets, n)
	for i := range j {
		j[i] = i
	}
	return j
}

// of is the lowest number of the set that i is in.
func (j disjointSets) of(i int) int {
	for j[i] != i {
		j[i] = j[j[i]]
		i = j[i]
	}
	return i
}

func (j disjointSets) join(a, b int) {
	a, b = j.of(a), j.of(b)
	j[max(a, b)] = min(a, b)
}

// partitions are the groups of each level, from level 0 up to the roots: each has, by
// switch, the lowest number of its group, which says something of leaves alone. On
// level 0 these are the units. A group of a level above has the leaves between which
// packets need not climb beyond the switches that are so many links away from leaves:
// the subtrees of a tree. A level on which nothing comes together is left out.
//
// noTree says why there are no levels between.
func (n *network) partitions(levels int) (list []disjointSets, noTree string) {
	distance := n.distances()
	height := slices.Max(distance)
	list = []disjointSets{n.unit}
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

// distances are the distances of switches from the nearest leaf, in links; -1: no path.
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

// within joins, beyond the units, linked switches that are at most so many links away from
// leaves.
func (n *network) within(distance []int, most int) disjointSets {
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
func (n *network) parts(p disjointSets) int {
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
func (n *network) build(g *Groups, hosts map[string]int, parts []disjointSets) {
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

// namer gives groups their names: after their first leaf, so that they stay where
// others come and go.
type namer struct {
	n     *network
	taken map[string]bool // folded
}

// maxSwitchPart is the maximum length of the switch's name in the name of a group: with the text
// before and behind it, a name fits a label of Kubernetes (63 characters) and Slurm (64).
const maxSwitchPart = 40

// leaves names groups of level 0: by its switch, where there is one, else after the
// first of them. Switches of one name are distinguished by GUIDs.
func (m *namer) leaves(groups map[int]*Group) {
	first := map[int]int{} // switch by group
	for s, is := range m.n.leaf() {
		u := m.n.unit.of(s)
		if f, ok := first[u]; is && (!ok || m.before(s, f)) {
			first[u] = s
		}
	}
	used := map[string]int{}
	for u := range groups {
		used[foldCase(m.plain(first[u]))]++
	}
	m.inOrder(groups, func(a, b int) int { return cmp.Compare(first[a], first[b]) }, func(u int, g *Group) string {
		s := first[u]
		name := m.plain(s)
		if used[foldCase(name)] > 1 {
			name = withGUID(name, m.n.guids[s])
		}
		if len(g.Switches) > 1 {
			name = "unit-" + name
		}
		return name
	})
}

// groups names groups of a level between.
func (m *namer) groups(groups map[int]*Group) {
	m.byLeaf(groups, func(g *Group) string {
		pod := "pod-"
		if g.Level > 1 {
			pod = fmt.Sprintf("pod%d-", g.Level)
		}
		return pod + strings.TrimPrefix(g.first().Name, "unit-")
	})
}

// roots names roots. The one with the most hosts is the network, and others have
// been cut off.
func (m *namer) roots(groups map[int]*Group) {
	var main *Group
	for _, g := range groups {
		if main == nil || len(g.Hosts) > len(main.Hosts) || len(g.Hosts) == len(main.Hosts) && fabric.CompareNames(g.first().Name, main.first().Name) < 0 {
			main = g
		}
	}
	m.byLeaf(groups, func(g *Group) string {
		if g == main {
			return "root"
		}
		return "root-" + strings.TrimPrefix(g.first().Name, "unit-")
	})
}

func (m *namer) byLeaf(groups map[int]*Group, name func(*Group) string) {
	m.inOrder(groups, func(a, b int) int { return fabric.CompareNames(groups[a].first().Name, groups[b].first().Name) }, func(_ int, g *Group) string { return name(g) })
}

// inOrder names groups in an order. A name that is taken has a number behind it.
func (m *namer) inOrder(groups map[int]*Group, order func(a, b int) int, name func(int, *Group) string) {
	for _, u := range slices.SortedFunc(maps.Keys(groups), order) {
		g := groups[u]
		g.Name = name(u, g)
		for i := 2; m.taken[foldCase(g.Name)]; i++ {
			g.Name = fmt.Sprintf("%s-%d", name(u, g), i)
		}
		m.taken[foldCase(g.Name)] = true
	}
}

// before orders switches by name, then GUID.
func (m *namer) before(a, b int) bool {
	return cmp.Or(fabric.CompareNames(m.n.names[a], m.n.names[b]), cmp.Compare(m.n.guids[a], m.n.guids[b]), cmp.Compare(a, b)) < 0
}

// plain is the name of a switch in the letters that all schedulers take.
func (m *namer) plain(s int) string {
	var b strings.Builder
	gap := false
	for _, c := range []byte(strings.Replace(m.n.names[s], "GUID=0x", "", 1)) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteByte(c)
			gap = false
		case c == '_' && b.Len() > 0 && !gap:
			b.WriteByte(c)
		default:
			gap = true
		}
	}
	name := strings.TrimRight(b.String(), "_")
	switch {
	case name == "":
		return withGUID("switch", m.n.guids[s])
	case len(name) > maxSwitchPart:
		return withGUID(name, m.n.guids[s])
	}
	return name
}

// withGUID is the beginning of name, with a GUID behind it.
func withGUID(name string, g mad.GUID) string {
	return fmt.Sprintf("%s-%016x", strings.TrimRight(name[:min(len(name), maxSwitchPart-17)], "-_"), uint64(g))
}

// foldCase returns the form of a name in which names must differ.
func foldCase(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
