package routing

import (
	"slices"

	"fabsh/mad"
)

// Numbering numbers LIDs for d-mod-k, by LID: each class from 0, in the order of
// the switches given and their ports. The further LIDs of a port (LMC) follow its
// first. A nil order is that of the tree, each subtree in one piece. -1 is no LID.
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

// Order are the LIDs of compute nodes in the order of d-mod-k. In this order shifts
// meet no contention, so the ranks of an MPI job should be in it (Zahavi, "Fat-trees
// routing and node ordering providing contention free traffic for MPI global
// collectives", 2012).
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

// prepareDModK finds the numbers of LIDs, the dividers and the parents.
func (a *assigner) prepareDModK() {
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
		a.byLID = g.Numbering(l.leafOrder())
		number = func(lid mad.LID) int { return a.byLID[lid] }
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

// findParents finds the next hop of each digit: slots[i] is the group of ports to
// parent i of a whole tree, or -1 if it is no next hop. Where none of the next hops
// is a parent, as on the way down, digit i is the i-th next hop.
func (a *assigner) findParents(s int, ports []uint8) {
	list, place := a.next[s].list, a.h.place
	if a.Prefer == nil && len(list.slots) > 0 {
		return
	}
	list.slots = list.slots[:0]
	// Prefer and a PortOrder take the place of the order of parents.
	ordered := a.Prefer != nil || a.routes.graph.order != nil && a.routes.graph.order[s] != nil
	if a.Prefer != nil { // each port is a group
		list.valid = false
		list.groups = list.groups[:0]
		for i := range ports {
			list.groups = append(list.groups, Neighbour{Ports: ports[i : i+1]})
		}
	}
	if len(ports) == 1 { // of any digit
		list.slots = append(list.slots, 0)
		return
	}
	i, found := 0, false
	for _, p := range a.parents[s] {
		if p < 0 { // missing, see treeBasis
			list.slots = append(list.slots, -1)
			continue
		}
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

// digit chooses a next hop by the lowest digit of number, and one of its parallel
// links by the rest. On the way up the digits are those of a whole tree: the
// destinations of a missing parent are spread over the other parents, in the same
// way by all switches, and all other destinations stay where they are. (Dmodc
// divides by the number of parents that are left instead, which moves nearly all
// destinations; Gliksberg et al., "High-quality fault resiliency in fat trees",
// 2020.)
func (a *assigner) digit(s int, number int) uint8 {
	n := len(a.next[s].list.slots)
	return a.next[s].list.pick(number%n, number/n)
}

// pick is the port of a digit and the rest of the number.
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

// digits writes the entries for dests[from:to] by their digits. Most numbers are one
// more than the number before, so a counter does in place of divisions.
func (a *assigner) digits(s, from, to int, row Row) {
	list, weight := a.next[s].list, a.divider[s]
	n := len(list.slots)
	var digit, rest, below int // of the number: its digit of that weight, and what is above and below
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
