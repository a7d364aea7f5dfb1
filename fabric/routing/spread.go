package routing

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

// first are the ports to the neighbour of the lowest port, or the best one
// where there is a PortOrder.
func (a *assigner) first(s int, ports []uint8) []uint8 {
	g := a.routes.graph
	groups := a.hops[s].list.groups
	switch {
	case a.Prefer != nil:
		return ports[:1]
	case g.order != nil && g.order[s] != nil:
		return groups[0].Ports
	}
	best := 0
	for i := range groups {
		if groups[i].Ports[0] < groups[best].Ports[0] {
			best = i
		}
	}
	return groups[best].Ports
}

// filler deals LIDs to the ports of a switch, to one with the least load each,
// and to those in their order. It looks for the least load only when all have
// more than it was.
type filler struct {
	loads []int32
	ports []uint8
	at    int
	level int32
}

func (f *filler) start(ports []uint8) {
	f.ports, f.at, f.level = ports, 0, -1
	if len(ports) > 0 {
		f.level = f.lowest()
	}
}

func (f *filler) lowest() int32 {
	low := f.loads[f.ports[0]]
	for _, p := range f.ports[1:] {
		low = min(low, f.loads[p])
	}
	return low
}

func (f *filler) next(weight int32) uint8 {
	for {
		for f.at < len(f.ports) {
			p := f.ports[f.at]
			f.at++
			if f.loads[p] <= f.level {
				f.loads[p] += weight
				return p
			}
		}
		f.at, f.level = 0, f.lowest()
	}
}

// mix is a random number that a, b and c determine (SplitMix64's finish).
func mix(a, b, c uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b*0xbf58476d1ce4e5b9 ^ c*0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
