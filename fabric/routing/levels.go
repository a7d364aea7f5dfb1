package routing

import (
	"cmp"
	"fmt"
	"slices"
)

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
