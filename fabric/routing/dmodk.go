package routing

import (
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// prepareDModK finds the numbers of LIDs, the dividers and the parents.
func (a *assigner) prepareDModK() {
	g := a.routes.Graph()
	l := a.levels
	if l == nil {
		l = graph.FindLevels(g)
	}
	if a.h.Place == nil {
		h := *a.h
		h.Place = l.Places()
		a.h = &h
	}
	a.parents = l.Parents(a.h.Place)
	number, divider := a.Number, a.Divider
	if number == nil {
		a.byLID = graph.Numbering(g, l.LeafOrder())
		number = func(lid mad.LID) int { return a.byLID[lid] }
	}
	if divider == nil {
		dividers := l.Dividers(a.parents)
		divider = func(s int) int { return dividers[s] }
	}
	a.number, a.divider = make([]int, len(g.Dests())), make([]int, len(g.Switches()))
	for i, d := range g.Dests() {
		a.number[i] = max(0, number(d.LID))
	}
	for s := range a.divider {
		a.divider[s] = max(1, divider(s))
	}
}

// findParents finds the next hop of each digit: slots[i] is the group of ports to
// parent i of a whole tree, or -1 if it is no next hop. Where none of the next hops
// is a parent, as on the way down, digit i is the i-th next hop.
func (a *assigner) findParents(s int, ports []uint8) {
	list, place := a.next[s].List(), a.h.Place
	if a.Prefer == nil && len(list.Slots) > 0 {
		return
	}
	list.Slots = list.Slots[:0]
	// Prefer and a PortOrder take the place of the order of parents.
	ordered := a.Prefer != nil || a.routes.Graph().HasPortOrder(s)
	if a.Prefer != nil { // each port is a group
		list.Regroup(ports)
	}
	if len(ports) == 1 { // of any digit
		list.Slots = append(list.Slots, 0)
		return
	}
	i, found := 0, false
	for _, p := range a.parents[s] {
		if p < 0 { // missing, see treeBasis
			list.Slots = append(list.Slots, -1)
			continue
		}
		for i < len(list.Groups) && place[list.Groups[i].To] < place[p] {
			i++
		}
		if i < len(list.Groups) && list.Groups[i].To == p && !ordered {
			list.Slots = append(list.Slots, int16(i))
			found = true
		} else {
			list.Slots = append(list.Slots, -1)
		}
	}
	if !found {
		list.Slots = list.Slots[:0]
		for i := range list.Groups {
			list.Slots = append(list.Slots, int16(i))
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
	n := len(a.next[s].List().Slots)
	return pick(a.next[s].List(), number%n, number/n)
}

// pick is the port of a digit and the rest of the number.
func pick(l *graph.PortList, digit, rest int) uint8 {
	n := len(l.Slots)
	slot := l.Slots[digit]
	for k := 0; slot < 0; k++ {
		slot = l.Slots[(digit+1+(rest+k)%(n-1))%n]
	}
	ports := l.Groups[slot].Ports
	if len(ports) == 1 {
		return ports[0]
	}
	return ports[rest%len(ports)]
}

// digits writes the entries for dests[from:to] by their digits. Most numbers are one
// more than the number before, so a counter does in place of divisions.
func (a *assigner) digits(s, from, to int, row routes.Row) {
	list, weight := a.next[s].List(), a.divider[s]
	n := len(list.Slots)
	var digit, rest, below int // of the number: its digit of that weight, and what is above and below
	before := -2
	for i, d := range a.routes.Graph().Dests()[from:to] {
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
		row[d.LID] = pick(list, digit, rest)
	}
}
