package routing

import (
	"cmp"
	"fmt"
	"slices"

	"fabsh/mad"
)

// Tree is a network of switches in levels, where links join neighbouring levels
// only: a fat tree, perhaps with parts missing. Its shape is that of the
// smallest parallel-ports generalised fat tree that holds it, PGFT(h; m; w; p)
// (Zahavi, "Fat-trees routing and node ordering", 2012): switches of level i
// have m[i] children and, but for the top, w[i+1] parents, and p[i] links join
// such a pair. Level 0 are the switches with compute nodes.
type Tree struct {
	Height  int     // levels of switches
	M, W, P []int   // of each level
	Level   []int   // by switch
	Digits  [][]int // by switch: which subtree, from the top, and then which of the equals in it
	// Regular: nothing is missing. Missing says what, or "".
	Regular bool
	Missing string
}

// Tree recognises a fat tree. The error says what is in the way.
func (g *Graph) Tree() (*Tree, error) {
	l := g.levels()
	if err := l.check(); err != nil {
		return nil, err
	}
	t := &Tree{Height: l.height, Level: l.level}
	t.M, t.W, t.P = make([]int, l.height), make([]int, l.height), make([]int, l.height)
	t.W[0], t.P[0] = 1, 1
	t.digits(l)
	t.shape(l)
	return t, nil
}

// levels are the distances of switches from those with compute nodes.
type levels struct {
	g      *Graph
	level  []int
	height int
	// below[k] and above[k] are, by switch, the lowest switch of its part of
	// what is left of the network when only levels < k, or >= k, are: the
	// subtrees and the planes of a tree. -1: not among them.
	below, above [][]int32
}

func (g *Graph) levels() *levels {
	return g.levelsFrom(g.leaves())
}

// leaves are the switches with compute nodes, or, where there are none of
// these, with any CA or router.
func (g *Graph) leaves() []int {
	for _, class := range []Class{ClassCN, ClassCN | ClassIO | ClassAN | ClassGateway | ClassSM} {
		var found []int
		for s := range g.switches {
			for _, d := range g.destsOf(s) {
				if g.terminals[d.terminal].Class&class != 0 {
					found = append(found, s)
					break
				}
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func (g *Graph) levelsFrom(leaves []int) *levels {
	l := &levels{g: g, level: g.distancesFrom(leaves)}
	for _, level := range l.level {
		l.height = max(l.height, level+1)
	}
	return l
}

// check tells why this is no tree.
func (l *levels) check() error {
	g := l.g
	if l.height == 0 {
		return fmt.Errorf("no fat tree: no switch has a compute node")
	}
	for s, level := range l.level {
		if level < 0 {
			return fmt.Errorf("no fat tree: %s is cut off from all compute nodes", g.switches[s].Label())
		}
		for _, n := range g.Neighbours(s) {
			if l.level[n.To] != level {
				continue
			}
			port := g.switches[s].Port(int(n.Ports[0]))
			where := "on switches with compute nodes"
			if level > 0 {
				where = fmt.Sprintf("on switches of level %d", level)
			}
			return fmt.Errorf("no fat tree: %s and %s are linked, but both %s; "+
				"if there is a host that should not count, give it another class than cn", port.Label(), port.Peer().Label(), where)
		}
	}
	return nil
}

// divide finds the subtrees and planes.
func (l *levels) divide() {
	if l.below != nil {
		return
	}
	for k := range l.height + 1 {
		l.below = append(l.below, l.parts(func(level int) bool { return 0 <= level && level < k }))
		l.above = append(l.above, l.parts(func(level int) bool { return level >= k }))
	}
}

func (l *levels) parts(among func(level int) bool) []int32 {
	part := slices.Repeat([]int32{-1}, len(l.level))
	var queue []int32
	for s := range part {
		if part[s] >= 0 || !among(l.level[s]) {
			continue
		}
		part[s] = int32(s)
		queue = append(queue[:0], int32(s))
		for i := 0; i < len(queue); i++ {
			for _, n := range l.g.Neighbours(int(queue[i])) {
				if part[n.To] < 0 && among(l.level[n.To]) {
					part[n.To] = int32(s)
					queue = append(queue, n.To)
				}
			}
		}
	}
	return part
}

// places order the switches so that those in the same place of different
// subtrees stand in the same order: by their planes.
func (l *levels) places() []int32 {
	l.divide()
	order := make([]int32, len(l.level))
	for s := range order {
		order[s] = int32(s)
	}
	slices.SortFunc(order, func(s, t int32) int {
		if c := cmp.Compare(l.level[s], l.level[t]); c != 0 {
			return c
		}
		for k := 1; k <= l.level[s]; k++ {
			if c := cmp.Compare(l.above[k][s], l.above[k][t]); c != 0 {
				return c
			}
		}
		return cmp.Compare(s, t)
	})
	place := make([]int32, len(order))
	for i, s := range order {
		place[s] = int32(i)
	}
	return place
}

// parents are, by switch, those it would have if nothing were missing: all that
// any switch has that is in the same place of the tree, in the order of places.
func (l *levels) parents(place []int32) [][]int32 {
	l.divide()
	type position struct{ level, subtree, plane int32 }
	of := func(s int) position {
		p := position{level: int32(l.level[s]), subtree: -1, plane: -1}
		if k := l.level[s] + 2; k <= l.height {
			p.subtree = l.below[k][s]
		}
		if l.level[s] > 0 {
			p.plane = l.above[l.level[s]][s]
		}
		return p
	}
	all := map[position][]int32{}
	for s, level := range l.level {
		for _, n := range l.g.Neighbours(s) {
			if level >= 0 && l.level[n.To] == level+1 {
				all[of(s)] = append(all[of(s)], n.To)
			}
		}
	}
	for p, list := range all {
		slices.SortFunc(list, func(s, t int32) int { return cmp.Compare(place[s], place[t]) })
		all[p] = slices.Compact(list)
	}
	parents := make([][]int32, len(l.level))
	for s, level := range l.level {
		if level >= 0 {
			parents[s] = all[of(s)]
		}
	}
	return parents
}

// dividers are the weights of the digits of d-mod-k, by switch: the product of
// the numbers of parents on the way up to it, the largest where they differ.
func (l *levels) dividers(parents [][]int32) []int {
	divider := slices.Repeat([]int{1}, len(l.level))
	byLevel := make([][]int, l.height)
	for s, level := range l.level {
		if level >= 0 {
			byLevel[level] = append(byLevel[level], s)
		}
	}
	for _, switches := range byLevel {
		for _, s := range switches {
			for _, p := range parents[s] {
				divider[p] = max(divider[p], min(divider[s]*len(parents[s]), 1<<30))
			}
		}
	}
	return divider
}

// leafOrder is the order of the switches with compute nodes, those of a subtree
// side by side, and then of all others.
func (l *levels) leafOrder() []int {
	l.divide()
	order := make([]int, len(l.level))
	for s := range order {
		order[s] = s
	}
	slices.SortFunc(order, func(s, t int) int {
		if c := cmp.Compare(uint(l.level[s]), uint(l.level[t])); c != 0 { // -1 last
			return c
		}
		for k := l.height; k > 0; k-- {
			if c := cmp.Compare(l.below[k][s], l.below[k][t]); c != 0 {
				return c
			}
		}
		return cmp.Compare(s, t)
	})
	return order
}

// Numbering numbers LIDs for d-mod-k, by LID: each class from 0, in the order of
// the switches given, and their ports. The further LIDs of a port follow its
// first. A nil order is that of the tree, subtrees side by side. -1 is no LID.
func (g *Graph) Numbering(order []int) []int {
	if order == nil {
		order = g.levels().leafOrder()
	}
	number := slices.Repeat([]int{-1}, len(g.byLID))
	next := map[Class]int{}
	for _, s := range order {
		for _, d := range g.destsOf(s) {
			t := &g.terminals[d.terminal]
			if d.lid != t.LID {
				continue
			}
			class := t.Class &^ ClassSM
			for i := range t.Count {
				number[int(t.LID)+i] = next[class] + i
			}
			next[class]++
		}
	}
	return number
}

// Order are the LIDs of compute nodes in the order of d-mod-k: the one in which
// shifts meet no contention, and the ranks of an MPI job should be.
func (g *Graph) Order() []mad.LID {
	var lids []mad.LID
	for _, s := range g.levels().leafOrder() {
		for _, d := range g.destsOf(s) {
			if t := &g.terminals[d.terminal]; t.Class&ClassCN != 0 && t.LID == d.lid {
				lids = append(lids, d.lid)
			}
		}
	}
	return lids
}

// digits numbers, in each part of the tree, the parts of it.
func (t *Tree) digits(l *levels) {
	l.divide()
	type place struct {
		digit, level int // level of planes; -1: subtrees
		within       int32
	}
	parts := map[place][]int32{}
	// visit goes down through the parts that s is in.
	visit := func(s int, do func(p place, part int32)) {
		level, within := l.level[s], int32(-1)
		for i := range t.Height - 1 {
			p := place{i, -1, within}
			if k := t.Height - 1 - i; k > level {
				within = l.below[k][s]
			} else {
				p.level = level
				within = l.above[level+1-k][s]
			}
			do(p, within)
		}
	}
	for s := range l.level {
		visit(s, func(p place, part int32) { parts[p] = append(parts[p], part) })
	}
	for p, list := range parts {
		slices.Sort(list)
		parts[p] = slices.Compact(list)
	}
	t.Digits = make([][]int, len(l.level))
	for s := range l.level {
		visit(s, func(p place, part int32) {
			digit, _ := slices.BinarySearch(parts[p], part)
			t.Digits[s] = append(t.Digits[s], digit)
		})
	}
}

// shape finds m, w, p, and what is missing from a tree of that shape.
func (t *Tree) shape(l *levels) {
	g := l.g
	up, down := make([]int, len(l.level)), make([]int, len(l.level))
	for s, level := range l.level {
		for _, d := range g.destsOf(s) {
			if level == 0 && g.terminals[d.terminal].Class&ClassCN != 0 && g.terminals[d.terminal].LID == d.lid {
				down[s]++
			}
		}
		for _, n := range g.Neighbours(s) {
			if l.level[n.To] > level {
				up[s]++
				t.P[level+1] = max(t.P[level+1], len(n.Ports))
			} else {
				down[s]++
			}
		}
		t.M[level] = max(t.M[level], down[s])
		if level+1 < t.Height {
			t.W[level+1] = max(t.W[level+1], up[s])
		}
	}
	missing := func(what string, n, of int, s int) {
		if t.Missing == "" {
			t.Missing = fmt.Sprintf("%s has %d of %d %s", g.switches[s].Label(), n, of, what)
		}
	}
	for s, level := range l.level {
		if level == 0 && down[s] < t.M[0] {
			missing("compute nodes", down[s], t.M[0], s)
		}
		if level > 0 && down[s] < t.M[level] {
			missing("children", down[s], t.M[level], s)
		}
		if level+1 < t.Height && up[s] < t.W[level+1] {
			missing("parents", up[s], t.W[level+1], s)
		}
		for _, n := range g.Neighbours(s) {
			if l.level[n.To] > level && len(n.Ports) < t.P[level+1] {
				missing("links to "+g.switches[n.To].Label(), len(n.Ports), t.P[level+1], s)
			}
		}
	}
	t.Regular = t.Missing == ""
}
