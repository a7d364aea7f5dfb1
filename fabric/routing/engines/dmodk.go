package engines

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Tree is the fat tree by whose digits DModK has chosen, as it was at first: what it has lost
// since then keeps its place. It is immutable.
type Tree struct {
	Graph   *graph.Graph
	Place   []int32   // by switch: as Levels.Places
	Parents [][]int32 // by switch: the parents in a whole tree; -1: a missing parent
	Number  []int     // by LID: as graph.Numbering
	Divider []int     // by switch: the weight of its digit
	Own     [][]Span  // by switch and digit: the rests of compute nodes below the switch; nil: see findOwn
}

// Span are the numbers from First up to, not including, End.
type Span struct{ First, End int }

// Digits chooses among next hops by the digits of the destinations' numbers. Several
// goroutines may use it at once.
type Digits struct {
	dests   []graph.Dest
	number  []int  // by index in dests
	compute []bool // by index in dests: a compute node
	tree    *Tree
	g       *graph.Graph
	wide    map[int32][]uint8 // by FirstPort and the first of parallel ports of different rates: ports in proportion to these
}

// On are the digits of t for the destinations of g, all of which t has: its switches
// have the numbers of g.
func (t *Tree) On(g *graph.Graph) *Digits {
	return t.on(g, func(lid mad.LID) int { return t.Number[lid] })
}

// on is On where LIDs have these numbers.
func (t *Tree) on(g *graph.Graph, number func(mad.LID) int) *Digits {
	d := &Digits{g.Dests(), make([]int, len(g.Dests())), make([]bool, len(g.Dests())), t, g, parallelByRate(g)}
	for i, dest := range d.dests {
		d.number[i] = max(0, number(dest.LID))
		d.compute[i] = g.Terminals()[dest.Terminal].Class&graph.ClassCN != 0
	}
	return d
}

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
	t := &Tree{Graph: g, Place: a.h.Place, Parents: l.Parents(a.h.Place), Divider: make([]int, len(g.Switches()))}
	number, divider := a.Number, a.Divider
	if g.Capacity().Costs() != nil {
		t.Parents = parentsByRate(g, t.Parents)
	}
	if number == nil {
		digits := 1
		for _, s := range graph.Leaves(g) {
			if a.aligned {
				digits = max(digits, len(t.Parents[s]))
			}
		}
		t.Number = graph.Numbering(g, l.LeafOrder(), digits)
		number = func(lid mad.LID) int { return t.Number[lid] }
	}
	if divider == nil {
		dividers := l.Dividers(t.Parents)
		divider = func(s int) int { return dividers[s] }
	}
	for s := range t.Divider {
		t.Divider[s] = max(1, divider(s))
	}
	a.digits = t.on(g, number)
	a.digits.findOwn(g, l)
}

// parentsByRate repeats parents in proportion to the rates of a switch's links to them, where these
// differ: with as many digits, more destinations go to a parent with faster links. A missing parent counts
// as the one with the fastest.
func parentsByRate(g *graph.Graph, parents [][]int32) [][]int32 {
	out := slices.Clone(parents)
	c := g.Capacity()
	for s, list := range parents {
		rates, most := make([]float64, len(list)), 0.0
		for _, n := range g.Neighbours(s) {
			i := slices.Index(list, n.To)
			if i < 0 {
				continue
			}
			for _, port := range n.Ports {
				rates[i] += c.Rates[g.Target(int32(s), port).Channel()]
			}
			most = max(most, rates[i])
		}
		for i := range rates {
			if rates[i] == 0 {
				rates[i] = most
			}
		}
		if most == 0 || !mixedRates(g, s) {
			continue
		}
		out[s] = nil
		for i, n := range graph.Shares(rates) {
			out[s] = append(out[s], slices.Repeat([]int32{list[i]}, n)...)
		}
	}
	return out
}

// mixedRates reports whether the links between switch s and others have different rates.
func mixedRates(g *graph.Graph, s int) bool {
	rates := g.Capacity().Rates[g.FirstChannel(s):g.FirstChannel(s+1)]
	return slices.ContainsFunc(rates, func(r float64) bool { return r != rates[0] })
}

// parallelByRate are Digits.wide.
func parallelByRate(g *graph.Graph) map[int32][]uint8 {
	c := g.Capacity()
	if c.Costs() == nil {
		return nil
	}
	wide := map[int32][]uint8{}
	for s := range g.Switches() {
		for _, n := range g.Neighbours(s) {
			list := graph.Proportional(c, n.Ports, func(port uint8) int32 { return g.Target(int32(s), port).Channel() })
			if len(list) > len(n.Ports) {
				wide[g.FirstPort(s)+int32(n.Ports[0])] = list
			}
		}
	}
	return wide
}

// findOwn finds Own of switches with parallel links to a parent: compute nodes below a switch do not
// use its links up, so the others are spread over parallel ones without them.
func (d *Digits) findOwn(g *graph.Graph, l *graph.Levels) {
	t := d.tree
	t.Own = make([][]Span, len(t.Parents))
	for s, parents := range t.Parents {
		if !slices.ContainsFunc(g.Neighbours(s), func(n graph.Neighbour) bool { return l.Level[n.To] == l.Level[s]+1 && len(n.Ports) > 1 }) {
			continue
		}
		t.Own[s] = make([]Span, len(parents))
		for below := range l.Below(s) {
			for i := g.FirstDest(below); i < g.FirstDest(below+1); i++ {
				if !d.compute[i] {
					continue
				}
				digit, rest := d.split(s, int(i), len(parents))
				own := &t.Own[s][digit]
				if own.End == 0 {
					own.First = rest
				}
				own.First, own.End = min(own.First, rest), max(own.End, rest+1)
			}
		}
	}
}

// offerDigits makes ports the next hops of switch s to choose from. Prefer and a PortOrder take
// the place of the order of parents.
func (a *assigner) offerDigits(s int, ports []uint8) {
	list := a.next[s].List()
	if a.Prefer != nil { // each port is a group
		list.Slots = list.Slots[:0]
		list.Regroup(ports)
	}
	a.digits.FindParents(s, list, len(ports), a.Prefer != nil || a.routes.Graph().HasPortOrder(s))
}

// FindParents finds the next hop of each digit: list.Slots[i] is the group of ports to
// parent i of a whole tree, or -1 if it is not a next hop. Where none of the next hops
// is a parent, as on the way down, or they have another order, digit i is the i-th next
// hop. ports is how many ports are in list.
func (d *Digits) FindParents(s int, list *graph.PortList, ports int, ordered bool) {
	if len(list.Slots) > 0 { // they are known
		return
	}
	d.findSlots(s, list, ports, ordered)
	list.Direct = list.Direct[:0]
	for _, slot := range list.Slots {
		if slot < 0 || len(list.Groups[slot].Ports) > 1 {
			list.Direct = list.Direct[:0]
			return
		}
		list.Direct = append(list.Direct, list.Groups[slot].Ports[0])
	}
}

// findSlots finds list.Slots for FindParents.
func (d *Digits) findSlots(s int, list *graph.PortList, ports int, ordered bool) {
	if ports == 1 { // of any digit
		list.Slots = append(list.Slots, 0)
		return
	}
	i, found := 0, false
	place := d.tree.Place
	for _, p := range d.tree.Parents[s] {
		if p < 0 { // missing
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

// digit chooses a next hop of switch s for dests[i] by the digit of its number, and one of its parallel
// links by the rest. On the way up the digits are the digits of a whole tree: all switches
// spread the destinations of a missing parent over the other parents in one way, and
// all other destinations stay where they are. (Dmodc
// divides by the number of parents that are left instead, which moves nearly all
// destinations; Gliksberg et al., "High-quality fault resiliency in fat trees",
// 2020.)
func (d *Digits) digit(s, i int, list *graph.PortList) uint8 {
	digit, rest := d.split(s, i, len(list.Slots))
	return d.pick(s, i, list, digit, rest)
}

// split are the digit of dests[i], of n, at switch s, and the rest of its number.
func (d *Digits) split(s, i, n int) (digit, rest int) {
	number := d.number[i] / d.tree.Divider[s]
	return number % n, number / n
}

// pick is the port of switch s for dests[i], of that digit and rest of the number.
func (d *Digits) pick(s, i int, l *graph.PortList, digit, rest int) uint8 {
	n := len(l.Slots)
	slot := l.Slots[digit]
	for k := 0; slot < 0; k++ {
		slot = l.Slots[(digit+1+(rest+k)%(n-1))%n]
	}
	ports := l.Groups[slot].Ports
	if len(ports) == 1 {
		return ports[0]
	}
	if d.wide != nil {
		if wide := d.wide[d.g.FirstPort(s)+int32(ports[0])]; wide != nil {
			ports = wide
		}
	}
	if own := d.tree.Own[s]; len(own) == n && d.compute[i] && rest >= own[digit].End {
		rest -= own[digit].End - own[digit].First
	}
	return ports[rest%len(ports)]
}

// Write writes the entries of switch s for dests[from:to] by their digits. Most numbers are one
// more than the number before, so a counter does in place of divisions.
func (d *Digits) Write(s, from, to int, list *graph.PortList, row routes.Row) {
	direct := list.Direct
	if len(direct) == 1 {
		for _, dest := range d.dests[from:to] {
			row[dest.LID] = direct[0]
		}
		return
	}
	weight := d.tree.Divider[s]
	n := len(list.Slots)
	var digit, rest, below int // of the number: its digit of that weight, and what is above and below
	before := -2
	for i := from; i < to; i++ {
		number := d.number[i]
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
		if len(direct) > 0 {
			row[d.dests[i].LID] = direct[digit]
			continue
		}
		row[d.dests[i].LID] = d.pick(s, i, list, digit, rest)
	}
}

// assignDigits is assign by DModK. Each leaf begins with its first parent if that spreads shifts better,
// with no more load: if leaves have more hosts than parents, and not a multiple of them, the rest of one
// leaf takes the parents at which the next begins. Which of the two it is does not depend on tables to
// keep.
func assignDigits(ctx context.Context, g *graph.Graph, h *graph.Hops, choice AssignOptions) (*routes.Routes, *assigner, error) {
	keep := choice.Keep
	plain := routes.New(g, 0)
	if !isUneven(g, choice.levels) {
		a, err := assign(ctx, plain, h, choice)
		return plain, a, err
	}
	choice.Keep = nil
	a, err := assign(ctx, plain, h, choice)
	if err != nil {
		return nil, nil, err
	}
	choice.next, choice.aligned = a.next, true
	aligned := routes.New(g, 0)
	b, err := newAssigner(aligned, h, choice)
	if err != nil {
		return nil, nil, err
	}
	better := false
	if !slices.Equal(a.digits.number, b.digits.number) {
		if err := b.run(ctx); err != nil {
			return nil, nil, err
		}
		if better, err = spreadsBetter(ctx, aligned, plain); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case keep != nil:
		choice.Keep, choice.aligned = keep, better
		r := routes.New(g, 0)
		a, err := assign(ctx, r, h, choice)
		return r, a, err
	case better:
		return aligned, b, nil
	}
	return plain, a, nil
}

// isUneven reports whether some leaf has more hosts than parents, and not a multiple of them.
func isUneven(g *graph.Graph, l *graph.Levels) bool {
	for s, hosts := range g.Endpoints() {
		ups := int64(0)
		for _, t := range g.Neighbours(s) {
			if l.Level[t.To] > l.Level[s] {
				ups++
			}
		}
		if l.Level[s] == 0 && ups > 0 && hosts > ups && hosts%ups != 0 {
			return true
		}
	}
	return false
}

// spreadsBetter reports whether r has more bandwidth of shifts than before, with no more load.
func spreadsBetter(ctx context.Context, r, before *routes.Routes) (bool, error) {
	was, err := shiftBandwidth(ctx, before)
	if err != nil {
		return false, err
	}
	is, err := shiftBandwidth(ctx, r)
	if err != nil || is <= was*(1+1e-9) { // not by rounding alone
		return false, err
	}
	load, err := largestLoad(ctx, before)
	if err != nil {
		return false, err
	}
	least, err := largestLoad(ctx, r)
	return least <= load, err
}
