package graph

import (
	"fmt"
	"slices"

	"fabsh/mad"
)

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
	// Regular reports that nothing is missing. Missing describes what is, or is "".
	Regular bool
	Missing string
}

// FindTree recognises a fat tree. The error is the reason why it is not one.
//
// Time: O(H*(S*log S + N)) for height H.
func FindTree(g *Graph) (*Tree, error) {
	l := FindLevels(g)
	if err := l.Check(); err != nil {
		return nil, err
	}
	t := &Tree{Height: l.Height, Level: l.Level}
	t.M, t.W, t.P = make([]int, l.Height), make([]int, l.Height), make([]int, l.Height)
	t.W[0], t.P[0] = 1, 1
	t.digits(l)
	t.shape(l)
	return t, nil
}

// digits numbers the subtrees in each subtree, and the planes in each plane.
func (t *Tree) digits(l *Levels) {
	l.divide()
	type place struct {
		digit, level int // level of planes; -1: subtrees
		within       int32
	}
	parts := map[place][]int32{}
	// visit goes from the top down through the subtrees, then planes, of s.
	visit := func(s int, do func(p place, part int32)) {
		level, within := l.Level[s], int32(-1)
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
	for s := range l.Level {
		visit(s, func(p place, part int32) { parts[p] = append(parts[p], part) })
	}
	for p, list := range parts {
		slices.Sort(list)
		parts[p] = slices.Compact(list)
	}
	t.Digits = make([][]int, len(l.Level))
	for s := range l.Level {
		visit(s, func(p place, part int32) {
			digit, _ := slices.BinarySearch(parts[p], part)
			t.Digits[s] = append(t.Digits[s], digit)
		})
	}
}

// shape finds m, w, p, and what is missing from a tree of that shape.
func (t *Tree) shape(l *Levels) {
	g := l.g
	up, down := make([]int, len(l.Level)), make([]int, len(l.Level))
	for s, level := range l.Level {
		for _, d := range g.DestsOf(s) {
			if level == 0 && g.terminals[d.Terminal].Class&ClassCN != 0 && g.terminals[d.Terminal].LID == d.LID {
				down[s]++
			}
		}
		for _, n := range g.Neighbours(s) {
			if l.Level[n.To] > level {
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
	for s, level := range l.Level {
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
			if l.Level[n.To] > level && len(n.Ports) < t.P[level+1] {
				missing("links to "+g.switches[n.To].Label(), len(n.Ports), t.P[level+1], s)
			}
		}
	}
	t.Regular = t.Missing == ""
}

// Numbering numbers LIDs for d-mod-k, by LID: each class from 0, in the order of
// the switches given and their ports. The further LIDs of a port (LMC) follow its
// first. A nil order is Levels.LeafOrder, each subtree in one piece. -1 is no LID.
//
// digits, if more than 1, is how many lowest digits there are: a switch with more LIDs of a class
// begins with the first, and the rests of the numbers of each digit have no gaps.
func Numbering(g *Graph, order []int, digits int) []int {
	if order == nil {
		order = FindLevels(g).LeafOrder()
	}
	number := slices.Repeat([]int{-1}, int(g.Top())+1)
	digits = max(1, digits)
	type counter struct {
		on    int // LIDs on the present switch, before the first of them has a number
		digit int
		rests []int // by digit: the next
	}
	counters := map[Class]*counter{}
	for _, s := range order {
		of := func(d Dest) (*Terminal, *counter) {
			t := &g.terminals[d.Terminal]
			class := t.Class &^ ClassSM
			if counters[class] == nil {
				counters[class] = &counter{rests: make([]int, digits)}
			}
			return t, counters[class]
		}
		for _, d := range g.DestsOf(s) {
			if t, c := of(d); d.LID == t.LID {
				c.on++
			}
		}
		for _, d := range g.DestsOf(s) {
			t, c := of(d)
			if d.LID != t.LID {
				continue
			}
			if c.on > digits {
				c.digit = 0
			}
			c.on = 0
			for i := range t.Count {
				number[int(t.LID)+i] = c.digit + digits*c.rests[c.digit] + i
			}
			c.rests[c.digit]++
			c.digit = (c.digit + 1) % digits
		}
	}
	return number
}

// Order are the LIDs of compute nodes in the order of d-mod-k. In this order shifts
// meet no contention, so the ranks of an MPI job should be in it (Zahavi, "Fat-trees
// routing and node ordering providing contention free traffic for MPI global
// collectives", 2012).
func Order(g *Graph) []mad.LID {
	var lids []mad.LID
	for _, s := range FindLevels(g).LeafOrder() {
		for _, d := range g.DestsOf(s) {
			if t := &g.terminals[d.Terminal]; t.Class&ClassCN != 0 && t.LID == d.LID {
				lids = append(lids, d.LID)
			}
		}
	}
	return lids
}
