package routing

import (
	"cmp"
	"fmt"
	"slices"
)

// levels are the levels of switches in what may be a fat tree: their distances from
// the switches with compute nodes.
type levels struct {
	g      *Graph
	level  []int // by switch; -1: no path
	height int   // number of levels
	// subtree[k] and plane[k] are, by switch, its component among the levels below
	// k, and among the levels from k up; -1: it is on none of these. divide finds
	// them.
	subtree, plane [][]int32
}

// levels are the distances from leaves.
func (g *Graph) levels() *levels { return g.levelsOf(g.distancesFrom(g.leaves())) }

// levelsOf makes levels of a number for each switch.
func (g *Graph) levelsOf(level []int) *levels {
	return &levels{g: g, level: level, height: 1 + slices.Max(append([]int{-1}, level...))}
}

// leaves are the switches with compute nodes, or, where there are no compute nodes,
// those with any CA or router.
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

// check is nil for a fat tree, perhaps with parts missing: all switches with links have
// a level, and links join neighbouring levels only.
func (l *levels) check() error {
	g := l.g
	if l.height == 0 {
		return fmt.Errorf("no fat tree: no switch has a compute node")
	}
	for s, level := range l.level {
		if level < 0 && len(g.Neighbours(s)) > 0 {
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
				"if a host there should not count, as one for I/O, give it another class than cn (fabsh route ftree --io FILE)", port.Label(), port.Peer().Label(), where)
		}
	}
	return nil
}

// divide finds the subtrees and planes, in O(H*(S + N)) for height H.
func (l *levels) divide() {
	if l.subtree != nil {
		return
	}
	for k := range l.height + 1 {
		l.subtree = append(l.subtree, l.g.components(func(s int) bool { return 0 <= l.level[s] && l.level[s] < k }))
		l.plane = append(l.plane, l.g.components(func(s int) bool { return l.level[s] >= k }))
	}
}

// connected are the components of all switches.
func (g *Graph) connected() []int32 {
	return g.components(func(int) bool { return true })
}

// components are the connected components of the graph of those switches for which
// among is true: by switch the lowest switch of its component, or -1. It is a
// breadth-first search, O(S + N).
func (g *Graph) components(among func(s int) bool) []int32 {
	component := slices.Repeat([]int32{-1}, len(g.switches))
	var queue []int32
	for s := range component {
		if component[s] >= 0 || !among(s) {
			continue
		}
		component[s] = int32(s)
		queue = append(queue[:0], int32(s))
		for i := 0; i < len(queue); i++ {
			for _, t := range g.nbrTo[g.nbrBase[queue[i]]:g.nbrBase[queue[i]+1]] {
				if component[t] < 0 && among(int(t)) {
					component[t] = int32(s)
					queue = append(queue, t)
				}
			}
		}
	}
	return component
}

// places order the switches by level and plane, so that the switches at the same
// places of two subtrees come in the same order.
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
			if c := cmp.Compare(l.plane[k][s], l.plane[k][t]); c != 0 {
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

// parents are, by switch, the parents it would have if nothing were missing: those
// of all switches at its place of the tree, in the order of places. Where these are
// more than twice as many as any one of the switches has, it is no place of a tree,
// and each has its own.
func (l *levels) parents(place []int32) [][]int32 {
	l.divide()
	type position struct{ level, subtree, plane int32 }
	of := func(s int) position {
		p := position{level: int32(l.level[s]), subtree: -1, plane: -1}
		if k := l.level[s] + 2; k <= l.height {
			p.subtree = l.subtree[k][s]
		}
		if l.level[s] > 0 {
			p.plane = l.plane[l.level[s]][s]
		}
		return p
	}
	inOrder := func(list []int32) []int32 {
		slices.SortFunc(list, func(s, t int32) int { return cmp.Compare(place[s], place[t]) })
		return slices.Compact(list)
	}
	own := make([][]int32, len(l.level))
	all, most := map[position][]int32{}, map[position]int{}
	for s, level := range l.level {
		if level < 0 {
			continue
		}
		for _, n := range l.g.Neighbours(s) {
			if l.level[n.To] == level+1 {
				own[s] = append(own[s], n.To)
			}
		}
		p := of(s)
		all[p], most[p] = append(all[p], own[s]...), max(most[p], len(own[s]))
	}
	for p, list := range all {
		all[p] = inOrder(list)
	}
	for s, level := range l.level {
		if level < 0 {
			continue
		}
		if p := of(s); len(all[p]) <= 2*most[p] {
			own[s] = all[p]
		} else {
			own[s] = inOrder(own[s])
		}
	}
	return own
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

// leafOrder has the switches with compute nodes, each subtree in one piece, and then
// all others.
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
			if c := cmp.Compare(l.subtree[k][s], l.subtree[k][t]); c != 0 {
				return c
			}
		}
		return cmp.Compare(s, t)
	})
	return order
}

// Tree is a fat tree, perhaps with parts missing: a network of switches in levels,
// where links join neighbouring levels only. Its shape is the smallest
// parallel-ports generalised fat tree that contains it, PGFT(h; m; w; p) (Zahavi,
// "Fat-trees routing and node ordering providing contention free traffic for MPI
// global collectives", 2012): a switch of level i has m[i] children and, below the
// top, w[i+1] parents, and p[i] parallel links join a child and a parent. Level 0
// are the switches with compute nodes.
type Tree struct {
	Height  int     // levels of switches
	M, W, P []int   // of each level
	Level   []int   // by switch
	Digits  [][]int // by switch: number of its subtree, from the top down, then of its plane
	// Regular says that nothing is missing. Missing says what is, or is "".
	Regular bool
	Missing string
}

// Tree recognises a fat tree. The error says why it is none.
//
// Time: O(H*(S*log S + N)) for height H.
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

// digits numbers the subtrees in each subtree, and the planes in each plane.
func (t *Tree) digits(l *levels) {
	l.divide()
	type place struct {
		digit, level int // level of planes; -1: subtrees
		within       int32
	}
	parts := map[place][]int32{}
	// visit goes from the top down through the subtrees, then planes, of s.
	visit := func(s int, do func(p place, part int32)) {
		level, within := l.level[s], int32(-1)
		for i := range t.Height - 1 {
			p := place{i, -1, within}
			if k := t.Height - 1 - i; k > level {
				within = l.subtree[k][s]
			} else {
				p.level = level
				within = l.plane[level+1-k][s]
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
