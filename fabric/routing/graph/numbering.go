package graph

import (
	"slices"

	"fabsh/mad"
)

// Numbering numbers LIDs for d-mod-k, by LID: each class from 0, in the order of
// the switches given and their ports. The further LIDs of a port (LMC) follow its
// first. A nil order is that of the tree, each subtree in one piece. -1 is no LID.
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
