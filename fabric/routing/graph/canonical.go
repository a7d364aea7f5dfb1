package graph

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// Canonical is g with its switches and channels numbered by their place in the network, so that what is
// computed with it depends neither on GUIDs nor on the ports that cables are in. Rows of tables are the
// same, for they have ports and LIDs.
//
// Each switch has a colour, which is equal for switches that look equal: they have equally many endpoints,
// and links of equal rates to switches of equal colours (McKay, Piperno, "Practical graph isomorphism, II",
// 2014). While several switches have a colour, one of them gets a new one, by which others may change too. All
// of them are tried, and the one is taken whose result has the least sum of colours. That those with equal sums
// can be exchanged is likely, not proven: if not, or if the network is too large (canonicalWork), GUIDs decide.
// g itself is returned if its links have weights or preferred ports.
//
// Time: for each switch that gets a new colour, O(D*C) for each of its colour.
func Canonical(ctx context.Context, g *Graph) (*Graph, error) {
	if g.weighted || g.order != nil {
		return g, nil
	}
	x := newColouring(g)
	for x.work > 0 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cell := x.smallest()
		if cell == nil {
			break
		}
		if err := x.divide(ctx, cell); err != nil {
			return nil, err
		}
	}
	return g.numbered(x.order()), nil
}

// canonicalWork is how many channels are met at most to find colours: some tenths of a second.
const canonicalWork = 1 << 26

// colouring has the colours of switches.
type colouring struct {
	g      *Graph
	colour []uint64 // by switch
	count  int      // of different colours
	work   int      // channels that may still be met
	cells  []int    // memory of smallest
}

// mix is a one-to-one function whose results look random (Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func newColouring(g *Graph) *colouring {
	x := &colouring{g: g, colour: make([]uint64, len(g.switches)), work: canonicalWork}
	for s, n := range g.Endpoints() {
		x.colour[s] = mix(uint64(n)<<32 | uint64(len(g.DestsOf(s))))
	}
	x.count, _ = x.refine(x.colour)
	return x
}

// cost is the cost of the channel out of that port where rates differ.
func (g *Graph) cost(s int, port uint8) int64 {
	if costs := g.capacity.costs; costs != nil {
		return costs[g.targets[int(g.portBase[s])+int(port)]]
	}
	return 0
}

// refine makes colours differ where neighbours have different colours, until that changes nothing, and
// returns how many there are, and how many channels it met.
func (x *colouring) refine(colour []uint64) (count, met int) {
	sorted, next := make([]uint64, len(colour)), make([]uint64, len(colour))
	for {
		copy(sorted, colour)
		slices.Sort(sorted)
		n := len(slices.Compact(sorted))
		if n == count || n == len(colour) {
			return n, met
		}
		count, met = n, met+len(x.g.channels)
		for s, own := range colour {
			sum := uint64(0)
			for c := x.g.chanBase[s]; c < x.g.chanBase[s+1]; c++ {
				kind := uint64(0)
				if costs := x.g.capacity.costs; costs != nil {
					kind = uint64(costs[c])
				}
				sum += mix(colour[x.g.chanTo[c]] + kind)
			}
			next[s] = mix(own ^ bits.RotateLeft64(mix(sum), 1))
		}
		copy(colour, next)
	}
}

// smallest are the switches of the colour that the fewest have, but more than one; of equally many, of the
// least colour. nil: all colours differ.
func (x *colouring) smallest() []int {
	if x.count == len(x.colour) {
		return nil
	}
	x.cells = x.cells[:0]
	for s := range x.colour {
		x.cells = append(x.cells, s)
	}
	slices.SortFunc(x.cells, func(s, t int) int { return cmp.Or(cmp.Compare(x.colour[s], x.colour[t]), cmp.Compare(s, t)) })
	var best []int
	for i := 0; i < len(x.cells); {
		j := i
		for j < len(x.cells) && x.colour[x.cells[j]] == x.colour[x.cells[i]] {
			j++
		}
		if n := j - i; n > 1 && (best == nil || n < len(best)) {
			best = x.cells[i:j]
		}
		i = j
	}
	return best
}

// divide gives one of the switches of a colour another. If that divides no other colour, all of them have the
// same neighbours, and each gets a colour of its own.
func (x *colouring) divide(ctx context.Context, cell []int) error {
	first := x.try(cell[0])
	if x.work -= first.met; first.count == x.count+1 {
		for i, s := range cell {
			x.colour[s] = mix(x.colour[s] + uint64(i))
		}
		x.count += len(cell) - 1
		return nil
	}
	cell = cell[:min(len(cell), 1+max(0, x.work)/max(1, first.met))]
	trials := make([]trial, len(cell))
	err := Each(ctx, x.g.workers, len(cell), func(_, i int) { trials[i] = x.try(cell[i]) })
	if err != nil {
		return err
	}
	best := 0
	for i, t := range trials {
		if x.work -= t.met; t.sum < trials[best].sum {
			best = i
		}
	}
	x.colour, x.count = trials[best].colour, trials[best].count
	return nil
}

// trial is what the colours are when a switch has got another.
type trial struct {
	colour     []uint64
	count, met int
	sum        uint64 // of all, mixed: equal if the switches that have colours are
}

func (x *colouring) try(s int) (t trial) {
	t.colour = slices.Clone(x.colour)
	t.colour[s] = mix(t.colour[s] + 1)
	t.count, t.met = x.refine(t.colour)
	for _, c := range t.colour {
		t.sum += mix(c)
	}
	return t
}

// order is DenseOrder from the switch of the least colour; of equally dense ones, the least colour is next.
func (x *colouring) order() []int {
	switches := make([]int, len(x.colour))
	for s := range switches {
		switches[s] = s
	}
	slices.SortStableFunc(switches, func(s, t int) int { return cmp.Compare(x.colour[s], x.colour[t]) })
	place := make([]int, len(switches))
	for i, s := range switches {
		place[s] = i
	}
	return DenseOrder(x.g, slices.Index(place, 0), place)
}

// DenseOrder is an order of the switches from root in which the next one has the most neighbours before it, of
// equal ones the least tie, then number: so dense parts, such as the groups of a dragonfly, stay together
// (Tarjan, Yannakakis, "Simple linear-time algorithms to test chordality of graphs", 1984). Components that root
// is not in follow. A negative root gives no order.
//
// Time: O(S*S + C).
func DenseOrder(g *Graph, root int, tie []int) (order []int) {
	n := len(g.switches)
	before, in := make([]int, n), make([]bool, n)
	for s := root; s >= 0; {
		order = append(order, s)
		in[s] = true
		for _, t := range g.Neighbours(s) {
			before[t.To]++
		}
		s = -1
		for t := range n {
			if !in[t] && (s < 0 || cmp.Or(cmp.Compare(before[s], before[t]), cmp.Compare(tie[t], tie[s])) < 0) {
				s = t
			}
		}
	}
	return order
}

// numbered is g with its switches in that order, and the channels of a switch in the order of the switches
// that they lead to.
func (g *Graph) numbered(order []int) *Graph {
	h := &Graph{fabric: g.fabric, options: g.options, notes: g.notes, leftOut: g.leftOut, workers: g.workers, byGUID: g.byGUID, byLID: g.byLID}
	place := make([]int32, len(order))
	for i, s := range order {
		place[s] = int32(i)
	}
	h.index = slices.Clone(g.index)
	for i, s := range h.index {
		if s >= 0 {
			h.index[i] = place[s]
		}
	}
	h.terminals = slices.Clone(g.terminals)
	for i := range h.terminals {
		if t := &h.terminals[i]; t.Switch >= 0 {
			t.Switch = int(place[t.Switch])
		}
	}
	for _, s := range order {
		h.switches = append(h.switches, g.switches[s])
		h.portBase, h.destBase, h.chanBase = append(h.portBase, int32(len(h.targets))), append(h.destBase, int32(len(h.dests))), append(h.chanBase, int32(len(h.channels)))
		h.targets, h.dests = append(h.targets, g.targets[g.portBase[s]:g.portBase[s+1]]...), append(h.dests, g.DestsOf(s)...)
		first := len(h.channels)
		for _, c := range g.channels[g.chanBase[s]:g.chanBase[s+1]] {
			c.From, c.To = place[c.From], place[c.To]
			h.channels = append(h.channels, c)
		}
		slices.SortFunc(h.channels[first:], func(a, b Channel) int {
			return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(g.cost(s, a.Port), g.cost(s, b.Port)), cmp.Compare(a.lowerPort(), b.lowerPort()))
		})
	}
	h.portBase, h.destBase, h.chanBase = append(h.portBase, int32(len(h.targets))), append(h.destBase, int32(len(h.dests))), append(h.chanBase, int32(len(h.channels)))
	for i, c := range h.channels {
		h.targets[h.portBase[c.From]+int32(c.Port)] = Target(i)
		h.chanTo = append(h.chanTo, c.To)
	}
	for i := range h.channels {
		c := &h.channels[i]
		c.Reverse = h.targets[h.portBase[c.To]+int32(c.PeerPort)].Channel()
	}
	h.addNeighbours()
	h.findCapacity()
	return h
}

// lowerPort is the port of the link at the end with the lower number.
func (c *Channel) lowerPort() uint8 {
	if c.From < c.To {
		return c.Port
	}
	return c.PeerPort
}
