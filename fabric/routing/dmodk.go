package routing

import (
	"slices"

	"fabsh/mad"
)

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

func (a *assigner) numbers() {
	g := a.routes.graph
	l := a.levels
	if l == nil {
		l = g.levels()
	}
	if a.h.place == nil {
		h := *a.h
		h.place = l.places()
		a.h = &h
	}
	a.parents = l.parents(a.h.place)
	number, divider := a.Number, a.Divider
	if number == nil {
		numbers := g.Numbering(l.leafOrder())
		number = func(lid mad.LID) int { return numbers[lid] }
	}
	if divider == nil {
		dividers := l.dividers(a.parents)
		divider = func(s int) int { return dividers[s] }
	}
	a.number, a.divider = make([]int, len(g.dests)), make([]int, len(g.switches))
	for i, d := range g.dests {
		a.number[i] = max(0, number(d.lid))
	}
	for s := range a.divider {
		a.divider[s] = max(1, divider(s))
	}
}

// findParents finds which of the parents of a whole tree the next hops at hand
// are: slots has their places among them. Where they are none of these, as down
// a tree, they stand for themselves.
func (a *assigner) findParents(s int, ports []uint8) {
	list, place := &a.hops[s].list, a.h.place
	list.slots = list.slots[:0]
	ordered := a.Prefer != nil || a.routes.graph.order != nil && a.routes.graph.order[s] != nil // not by place
	if a.Prefer != nil {                                                                        // each port on its own
		list.groups = list.groups[:0]
		for i := range ports {
			list.groups = append(list.groups, Neighbour{Ports: ports[i : i+1]})
		}
	}
	if len(ports) == 1 { // whatever the digit
		list.slots = append(list.slots, 0)
		return
	}
	i, found := 0, false
	for _, p := range a.parents[s] {
		for i < len(list.groups) && place[list.groups[i].To] < place[p] {
			i++
		}
		if i < len(list.groups) && list.groups[i].To == p && !ordered {
			list.slots = append(list.slots, int16(i))
			found = true
		} else {
			list.slots = append(list.slots, -1)
		}
	}
	if !found {
		list.slots = list.slots[:0]
		for i := range list.groups {
			list.slots = append(list.slots, int16(i))
		}
	}
}

// digit chooses a next hop by the lowest digit of number, and one of its ports
// by what is left. Up a tree the digit is that of a whole one: destinations
// whose parent is missing are shared out among the others, in the same way by
// all switches, and all others stay where they are. (Counting the parents that
// are left, as Dmodc does (Gliksberg et al., "High-quality fault resiliency in
// fat trees", 2019), moves nearly all of them, apart from each other.)
func (a *assigner) digit(s int, number int) uint8 {
	n := len(a.hops[s].list.slots)
	return a.hops[s].list.pick(number%n, number/n)
}

// pick chooses by the digit, and what is left of the number.
func (l *portList) pick(digit, rest int) uint8 {
	n := len(l.slots)
	slot := l.slots[digit]
	for k := 0; slot < 0; k++ {
		slot = l.slots[(digit+1+(rest+k)%(n-1))%n]
	}
	ports := l.groups[slot].Ports
	if len(ports) == 1 {
		return ports[0]
	}
	return ports[rest%len(ports)]
}

// digits writes the entries for dests[from:to] by their digits. Their numbers
// mostly follow each other, so that there is little to divide.
func (a *assigner) digits(s, from, to int, row Row) {
	list, weight := &a.hops[s].list, a.divider[s]
	n := len(list.slots)
	var digit, rest, below int // of the number, and what the digits below it are
	before := -2
	for i, d := range a.routes.graph.dests[from:to] {
		number := a.number[from+i]
		if number != before+1 {
			below, rest = number%weight, number/weight
			digit, rest = rest%n, rest/n
		} else if below++; below == weight {
			below = 0
			if digit++; digit == n {
				digit, rest = 0, rest+1
			}
		}
		before = number
		row[d.lid] = list.pick(digit, rest)
	}
}
