package graph

import (
	"slices"

	"fabsh/mad"
)

// Numbering numbers LIDs for d-mod-k, by LID: each class from 0, in the order of
// the switches given and their ports. The further LIDs of a port (LMC) follow its
// first. A nil order is that of the tree, each subtree in one piece. -1 is no LID. stride, if not
// nil, is a number of which the first of those on the next switch is a multiple.
func Numbering(g *Graph, order []int, stride func(s int) int) []int {
	if order == nil {
		order = FindLevels(g).LeafOrder()
	}
	number := slices.Repeat([]int{-1}, int(g.Top())+1)
	next := map[Class]int{}
	for _, s := range order {
		for _, d := range g.DestsOf(s) {
			t := &g.terminals[d.Terminal]
			if d.LID != t.LID {
				continue
			}
			class := t.Class &^ ClassSM
			for i := range t.Count {
				number[int(t.LID)+i] = next[class] + i
			}
			next[class]++
		}
		if stride == nil {
			continue
		}
		for class, n := range next {
			next[class] = (n + stride(s) - 1) / stride(s) * stride(s)
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
