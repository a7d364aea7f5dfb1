package graph

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// Levels are the levels of switches in what may be a fat tree.
type Levels struct {
	g      *Graph
	Level  []int // by switch; -1: no path
	Height int   // number of levels
	// subtree[k] and plane[k] are, by switch, its component among the levels below
	// k, and among the levels from k up; -1: it is on none of these. divide finds
	// them.
	subtree, plane [][]int32
}

// FindLevels are the distances from leaves; in a fat tree, counted from its tops, so that a
// leaf without compute nodes is at level 0, too.
func FindLevels(g *Graph) *Levels {
	leaves := Leaves(g)
	l := LevelsOf(g, DistancesFrom(g, leaves))
	if l.Check() != nil {
		return l
	}
	tops := l.tops()
	if len(tops) == 0 {
		return l
	}
	down := DistancesFrom(g, tops)
	height, level := down[leaves[0]], make([]int, len(down))
	for s, x := range down {
		if level[s] = -1; x >= 0 {
			level[s] = height - x
		}
		if level[s] < 0 && l.Level[s] >= 0 || level[s] > 0 && l.Level[s] == 0 {
			return l // the tops do not belong to one tree
		}
	}
	return LevelsOf(g, level)
}

// LevelsOf makes levels of a number for each switch.
func LevelsOf(g *Graph, level []int) *Levels {
	return &Levels{g: g, Level: level, Height: 1 + slices.Max(append([]int{-1}, level...))}
}

// Leaves are the switches with compute nodes or, where there are no compute nodes, the
// switches with any CA or router.
func Leaves(g *Graph) []int {
	for _, class := range []Class{ClassCN, ClassCN | ClassIO | ClassAN | ClassGateway | ClassSM} {
		var found []int
		for s := range g.switches {
			for _, d := range g.DestsOf(s) {
				if g.terminals[d.Terminal].Class&class != 0 {
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

// Ranks are ranks for up*/down* where up is away from level 0.
func (l *Levels) Ranks() *Ranks { return (&Ranks{l.Level}).Reverse() }

// Check is nil for a fat tree, perhaps with parts missing: all switches with links have
// a level, and links join neighbouring levels only.
func (l *Levels) Check() error {
	g := l.g
	if l.Height == 0 {
		return fmt.Errorf("not a fat tree: no switch has a compute node")
	}
	for s, level := range l.Level {
		if level < 0 && len(g.Neighbours(s)) > 0 {
			return fmt.Errorf("not a fat tree: %s is cut off from all compute nodes", g.switches[s].Label())
		}
		for _, n := range g.Neighbours(s) {
			if l.Level[n.To] != level {
				continue
			}
			port := g.switches[s].Port(int(n.Ports[0]))
			where := "on switches with compute nodes"
			if level > 0 {
				where = fmt.Sprintf("on switches of level %d", level)
			}
			return fmt.Errorf("not a fat tree: %s and %s are linked, but both %s; "+
				"give hosts that should not count, such as those for I/O, another class than cn (fabsh route ftree --io FILE)", port.Label(), port.Peer().Label(), where)
		}
	}
	return nil
}

// divide finds the subtrees and planes, in O(H*(S + N)) for height H.
func (l *Levels) divide() {
	if l.subtree != nil {
		return
	}
	for k := range l.Height + 1 {
		l.subtree = append(l.subtree, components(l.g, func(s int) bool { return 0 <= l.Level[s] && l.Level[s] < k }))
		l.plane = append(l.plane, components(l.g, func(s int) bool { return l.Level[s] >= k }))
	}
}

// Components are the connected components of all switches: by switch the lowest switch of
// its component.
func Components(g *Graph) []int32 {
	return components(g, func(int) bool { return true })
}

// components are the connected components of the graph of the switches for which among
// is true: by switch the lowest switch of its component, or -1. It is a
// breadth-first search, O(S + N).
func components(g *Graph, among func(s int) bool) []int32 {
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

// Below are the switches of level 0 in the subtree of switch s; of others, none.
func (l *Levels) Below(s int) iter.Seq[int] {
	l.divide()
	return func(yield func(int) bool) {
		k := l.Level[s] + 1
		if k <= 0 {
			return
		}
		for t, level := range l.Level {
			if level == 0 && l.subtree[k][t] == l.subtree[k][s] && !yield(t) {
				return
			}
		}
	}
}

// Places order the switches by level and plane, so that switches at corresponding places
// of two subtrees come in corresponding order.
func (l *Levels) Places() []int32 {
	l.divide()
	order := make([]int32, len(l.Level))
	for s := range order {
		order[s] = int32(s)
	}
	slices.SortFunc(order, func(s, t int32) int {
		if c := cmp.Compare(l.Level[s], l.Level[t]); c != 0 {
			return c
		}
		for k := 1; k <= l.Level[s]; k++ {
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

// Parents are, by switch, the parents it would have if nothing were missing: the parents
// of all switches at its place of the tree, in the order of places. Where these are
// more than twice as many as any one of the switches has, it is not a place of a tree,
// and each has its own.
func (l *Levels) Parents(place []int32) [][]int32 {
	l.divide()
	type position struct{ level, subtree, plane int32 }
	of := func(s int) position {
		p := position{level: int32(l.Level[s]), subtree: -1, plane: -1}
		if k := l.Level[s] + 2; k <= l.Height {
			p.subtree = l.subtree[k][s]
		}
		if l.Level[s] > 0 {
			p.plane = l.plane[l.Level[s]][s]
		}
		return p
	}
	inOrder := func(list []int32) []int32 {
		slices.SortFunc(list, func(s, t int32) int { return cmp.Compare(place[s], place[t]) })
		return slices.Compact(list)
	}
	own := make([][]int32, len(l.Level))
	all, most := map[position][]int32{}, map[position]int{}
	for s, level := range l.Level {
		if level < 0 {
			continue
		}
		for _, n := range l.g.Neighbours(s) {
			if l.Level[n.To] == level+1 {
				own[s] = append(own[s], n.To)
			}
		}
		p := of(s)
		all[p], most[p] = append(all[p], own[s]...), max(most[p], len(own[s]))
	}
	for p, list := range all {
		all[p] = inOrder(list)
	}
	for s, level := range l.Level {
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

// Dividers are the weights of the digits of d-mod-k, by switch: the product of
// the numbers of parents on the way up to it, the largest where they differ.
func (l *Levels) Dividers(parents [][]int32) []int {
	divider := slices.Repeat([]int{1}, len(l.Level))
	byLevel := make([][]int, l.Height)
	for s, level := range l.Level {
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

// LeafOrder has the switches with compute nodes, each subtree in one piece, and then
// all others.
func (l *Levels) LeafOrder() []int {
	l.divide()
	order := make([]int, len(l.Level))
	for s := range order {
		order[s] = s
	}
	slices.SortFunc(order, func(s, t int) int {
		if c := cmp.Compare(uint(l.Level[s]), uint(l.Level[t])); c != 0 { // -1 last
			return c
		}
		for k := l.Height; k > 0; k-- {
			if c := cmp.Compare(l.subtree[k][s], l.subtree[k][t]); c != 0 {
				return c
			}
		}
		return cmp.Compare(s, t)
	})
	return order
}

// tops finds the switches at the top of what Check takes for a fat tree: the switches of the
// highest level that join two leaves which no lower switch joins. Distance alone puts a leaf whose
// compute nodes are missing, or not there yet, as high as a spine, or higher. So a switch is not at
// the top if another joins all leaves that it does, and at least as many more. Nil: nothing joins
// leaves.
//
// Time: O(N*D/64) for D leaves, and O(D*S*D/64) where the highest level joins nothing new.
func (l *Levels) tops() []int {
	c := newCover(l)
	for level := l.Height - 1; level > 0; level-- {
		var found []int
		most := 0
		joined := make([][]uint64, len(c.leaves))
		for s, at := range l.Level {
			if at == level && c.joinsMore(s, joined) {
				found = append(found, s)
				most = max(most, c.count(s))
			}
		}
		if len(found) > 0 {
			return slices.DeleteFunc(slices.Clone(found), func(s int) bool {
				twice := 2 * c.count(s)
				return twice <= most && slices.ContainsFunc(found, func(t int) bool { return twice <= c.count(t) && c.hasAll(t, s) })
			})
		}
	}
	return nil
}

// cover has the leaves that switches reach by going down.
type cover struct {
	l      *Levels
	leaves []int
	words  int
	below  []uint64 // words for each switch: a bit for each leaf
}

func newCover(l *Levels) *cover {
	c := &cover{l: l}
	byLevel := make([][]int, l.Height)
	for s, level := range l.Level {
		if level >= 0 {
			byLevel[level] = append(byLevel[level], s)
		}
	}
	c.leaves = byLevel[0]
	c.words = (len(c.leaves) + 63) / 64
	c.below = make([]uint64, c.words*len(l.Level))
	for i, s := range c.leaves {
		c.of(s)[i/64] |= 1 << (i % 64)
	}
	for level, switches := range byLevel[1:] {
		for _, s := range switches {
			into := c.of(s)
			for _, n := range l.g.Neighbours(s) {
				if l.Level[n.To] == level {
					add(into, c.of(int(n.To)))
				}
			}
		}
	}
	return c
}

// of are the leaves below s.
func (c *cover) of(s int) []uint64 { return c.below[s*c.words:][:c.words] }

func (c *cover) count(s int) (n int) {
	for _, word := range c.of(s) {
		n += bits.OnesCount64(word)
	}
	return n
}

// hasAll reports whether all leaves below t are below s.
func (c *cover) hasAll(s, t int) bool {
	above := c.of(s)
	for i, word := range c.of(t) {
		if word&^above[i] != 0 {
			return false
		}
	}
	return true
}

// joinsMore reports whether two of the leaves below s are below no switch of a lower level. joined
// has, by leaf, the leaves that such switches join with it; nil: unknown yet.
func (c *cover) joinsMore(s int, joined [][]uint64) bool {
	own := c.of(s)
	for i := range c.leaves {
		if own[i/64]>>(i%64)&1 == 0 {
			continue
		}
		if joined[i] == nil {
			joined[i] = make([]uint64, c.words)
			for t, level := range c.l.Level {
				if below := c.of(t); 0 <= level && level < c.l.Level[s] && below[i/64]>>(i%64)&1 != 0 {
					add(joined[i], below)
				}
			}
		}
		for w, word := range own {
			if word&^joined[i][w] != 0 {
				return true
			}
		}
	}
	return false
}

// add adds the bits of b to a.
func add(a, b []uint64) {
	for i, word := range b {
		a[i] |= word
	}
}
