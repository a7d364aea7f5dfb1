package state

import (
	"cmp"
	"math"
	"slices"
)

// carriedRates returns the rates of flows, in bytes per second, and for each the hop that limits
// it; -1: none does. At each link, lanes share by VL arbitration, then input ports equally,
// then the flows of an input port as they arrive there; the flows of a sender equally. So a flow
// that joins late gets as much as all that came before it (the parking lot problem).
func carriedRates(demands []float64, ways []way) (rates []float64, limits []int) {
	rates, limits = make([]float64, len(ways)), slices.Repeat([]int{-1}, len(ways))
	left := map[*Port]float64{} // of each link
	for i := range ways {
		for _, h := range ways[i].hops {
			left[h.out] = h.capacity
		}
	}
	rest := slices.Clone(demands)
	grow := func(way int, by float64) {
		rates[way] += by
		rest[way] -= by
		for _, h := range ways[way].hops {
			left[h.out] = max(0, left[h.out]-by)
		}
	}
	for range maxPasses {
		f := newRateSolver(rest, ways, left)
		again := f.fill()
		for i := range ways {
			grow(i, f.rates[i])
		}
		if limits = f.limits; !again {
			return rates, limits
		}
	}
	for i := range ways { // the little that the passes have left
		if limits[i] < 0 {
			continue
		}
		by := rest[i]
		for n, h := range ways[i].hops {
			if h.arbitration.high+h.arbitration.low == 0 {
				by = 0
			}
			if left[h.out] < by {
				by, limits[i] = left[h.out], n
			}
		}
		grow(i, by)
	}
	return rates, limits
}

// maxPasses bounds the time for rates of flows that wait for each other. Each pass shares
// what the one before has left.
const maxPasses = 4

// contendedLink is a link that flows want more of than it carries.
type contendedLink struct {
	share
	flows []crossing
	stale bool // demands or weights have changed
}

// crossing is a flow at a link.
type crossing struct {
	*share
	at       *contendedLink
	way, hop int
}

// rateTolerance is the relative error of rates.
const rateTolerance = 1e-9

// settleSpread is the ratio of the rates of flows that are settled together, where none can be
// settled alone because each waits for another. It grows each time, which bounds the time.
const settleSpread = 1.1

// rateSolver computes the rates of flows by progressive filling: flows whose rates are settled
// leave the rest of their links to the others.
type rateSolver struct {
	links   []*contendedLink
	byWay   [][]crossing // of each flow, in the order of its way
	rates   []float64    // of each flow: demanded, or settled; bytes per second
	limits  []int        // the hop that limits the flow; -1: none does
	settled []bool
	longest int     // hops of the longest way
	spread  float64 // the ratio for settleLeast
}

// fill settles all flows. It reports whether links may have something left, because flows
// wait for each other.
func (f *rateSolver) fill() (cycle bool) {
	rounds := 2 * f.longest
	for slices.Contains(f.settled, false) {
		// How flows arrive at a link follows from the links before it.
		changed := true
		for i := 0; i < rounds && changed; i++ {
			changed = f.distribute()
		}
		if changed { // it follows from itself, in a cycle
			rounds = 2
		}
		if !f.settle() {
			f.settleLeast()
			cycle = true
		}
	}
	return f.fit() || cycle
}

// newRateSolver returns a solver for what links have left.
func newRateSolver(demands []float64, ways []way, left map[*Port]float64) *rateSolver {
	f := &rateSolver{spread: 1, rates: slices.Clone(demands), limits: make([]int, len(ways)), settled: make([]bool, len(ways)), byWay: make([][]crossing, len(ways))}
	load := map[*Port]float64{}
	for i := range ways {
		f.limits[i] = -1
		f.longest = max(f.longest, len(ways[i].hops))
		for _, h := range ways[i].hops {
			load[h.out] += demands[i]
		}
	}
	links := map[*Port]*contendedLink{}
	for i := range ways {
		for n, h := range ways[i].hops {
			if load[h.out] <= left[h.out] && h.arbitration.high+h.arbitration.low > 0 {
				continue
			}
			l := links[h.out]
			if l == nil {
				l = &contendedLink{share: share{gets: left[h.out]}, stale: true}
				links[h.out] = l
				f.links = append(f.links, l)
			}
			c := crossing{&share{weight: 1, demand: demands[i]}, l, i, n}
			l.flows = append(l.flows, c)
			f.byWay[i] = append(f.byWay[i], c)
		}
		f.settled[i] = len(f.byWay[i]) == 0
	}
	for _, l := range f.links {
		l.arrange(ways)
	}
	return f
}

// arrange makes the tree of a link's shares: tables, lanes, input ports, flows.
func (l *contendedLink) arrange(ways []way) {
	type input struct {
		vl uint8
		in *Port
	}
	lanes, inputs := map[uint8]*share{}, map[input]*share{}
	var list []*share
	var arbiters []arbitration
	for _, c := range l.flows {
		h := &ways[c.way].hops[c.hop]
		lane := lanes[h.vl]
		if lane == nil {
			lane = new(share)
			lanes[h.vl] = lane
			list, arbiters = append(list, lane), append(arbiters, h.arbitration)
		}
		from := inputs[input{h.vl, h.in}]
		if from == nil {
			from = &share{weight: 1}
			inputs[input{h.vl, h.in}] = from
			lane.parts = append(lane.parts, from)
		}
		from.parts = append(from.parts, c.share)
	}
	l.parts = arbitrate(list, arbiters)
}

// distribute computes what flows get at their links, and how they arrive at them. It
// reports whether the latter has changed.
func (f *rateSolver) distribute() (changed bool) {
	for _, l := range f.links {
		if l.stale {
			l.sum()
			l.distribute()
			l.stale = false
		}
	}
	for i, crossings := range f.byWay {
		if f.settled[i] {
			continue
		}
		arrives := f.rates[i]
		for _, c := range crossings {
			if c.hop > 0 { // first in, first out: as they arrive
				if weight := max(arrives, 1e-9); math.Abs(weight-c.weight) > rateTolerance*weight {
					c.weight, c.at.stale, changed = weight, true, true
				}
			}
			arrives = min(arrives, c.gets)
		}
	}
	return changed
}

// least returns what a flow gets at all its links, and the hop where it gets least; -1: it
// gets what it demands.
func (f *rateSolver) least(way int) (rate float64, limit int) {
	rate, limit = f.rates[way], -1
	for _, c := range f.byWay[way] {
		if c.gets < rate*(1-rateTolerance) {
			rate, limit = c.gets, c.hop
		}
	}
	return rate, limit
}

// settle settles the flows that get what they demand, and the flows of links that limit all
// their flows. It reports whether there are any.
func (f *rateSolver) settle() (any bool) {
	rates, limits := make([]float64, len(f.rates)), make([]int, len(f.rates))
	for i := range f.rates {
		if !f.settled[i] {
			if rates[i], limits[i] = f.least(i); limits[i] < 0 {
				f.finish(i, rates[i], -1)
				any = true
			}
		}
	}
	if any { // they leave more to the others
		return true
	}
	before := slices.Clone(f.settled)
	for _, l := range f.links {
		limitsAll := true
		for _, c := range l.flows {
			if !before[c.way] && c.gets > rates[c.way]*(1+rateTolerance) {
				limitsAll = false
				break
			}
		}
		for _, c := range l.flows {
			if limitsAll && !f.settled[c.way] {
				f.finish(c.way, rates[c.way], c.hop)
				any = true
			}
		}
	}
	return any
}

// settleLeast settles the flows that get least: none can be settled otherwise where links
// favor different flows, and each waits for another.
func (f *rateSolver) settleLeast() {
	f.spread *= settleSpread
	least := math.Inf(1)
	for i := range f.rates {
		if !f.settled[i] {
			rate, _ := f.least(i)
			least = min(least, rate)
		}
	}
	for i := range f.rates {
		if !f.settled[i] {
			if rate, limit := f.least(i); rate <= least*f.spread {
				f.finish(i, rate, limit)
			}
		}
	}
}

func (f *rateSolver) finish(way int, rate float64, limit int) {
	f.rates[way], f.limits[way], f.settled[way] = rate, limit, true
	for _, c := range f.byWay[way] {
		c.at.stale = c.at.stale || c.demand != rate
		c.demand = rate
	}
}

// fit reduces the rates where they would exceed a link, by rounding or in a cycle. It
// reports whether the latter has occurred.
func (f *rateSolver) fit() (cycle bool) {
	for _, l := range f.links {
		total := 0.0
		for _, c := range l.flows {
			total += f.rates[c.way]
		}
		if total > l.gets {
			cycle = cycle || total > l.gets*(1+rateTolerance)
			for _, c := range l.flows {
				f.rates[c.way] *= l.gets / total
			}
		}
	}
	return cycle
}

// share is a part of a link's rate: of a table of VL arbitration, a virtual lane, an input
// port, or a flow. The switch serves the parts of a share in turn, by their weights, and
// skips the parts that have nothing to send (IBA 7.6.9 for lanes).
type share struct {
	weight float64
	demand float64 // bytes per second
	gets   float64 // bytes per second, at most demand
	parts  []*share
}

// sum computes the demands of the parts from the demands of the flows.
func (s *share) sum() float64 {
	if len(s.parts) > 0 {
		s.demand = 0
		for _, p := range s.parts {
			s.demand += p.sum()
		}
	}
	return s.demand
}

// distribute gives the parts of s what s gets: each as much as its weight allows, and what
// it does not demand to the others. Parts without weight get nothing.
func (s *share) distribute() {
	slices.SortStableFunc(s.parts, func(a, b *share) int { return cmp.Compare(a.demand*b.weight, b.demand*a.weight) })
	rest, weights := s.gets, 0.0
	for _, p := range s.parts {
		weights += p.weight
	}
	for _, p := range s.parts {
		if p.gets = 0; p.weight > 0 {
			p.gets = max(0, min(p.demand, rest/weights*p.weight))
			rest -= p.gets
			weights -= p.weight
		}
		p.distribute()
	}
}

// unlimitedWeight is the weight of the high-priority table beside the low-priority one where
// VLHighLimit is 255.
const unlimitedWeight = 1e12

// arbitration is what decides how the lanes of a port share its link: the entry of a lane
// in both tables, and how much the high-priority one may send before a packet of the
// low-priority one.
type arbitration struct {
	high, low float64 // weights of the lane: sums of its entries
	limit     float64 // bytes; unlimited: strict priority
	packet    float64 // bytes
}

// arbitrate weighs the lanes of a link, which arbiters describes in the order of lanes, and
// returns them as parts of their tables. While both tables have packets, the high-priority
// one sends limit bytes for each packet of the low-priority one (IBA 7.6.9.2). A lane in
// both is a part of the high-priority table, with the sum of what it gets by both while
// all lanes have packets.
func arbitrate(lanes []*share, arbiters []arbitration) []*share {
	var sumHigh, sumLow float64
	for _, a := range arbiters {
		sumHigh += a.high
		sumLow += a.low
	}
	high, low := new(share), new(share)
	for i, a := range arbiters {
		byLow := 0.0
		if sumLow > 0 {
			byLow = a.packet * a.low / sumLow
		}
		class := low
		lanes[i].weight = byLow
		if a.high > 0 {
			class = high
			lanes[i].weight += a.limit * a.high / sumHigh
		}
		class.weight += lanes[i].weight
		class.parts = append(class.parts, lanes[i])
	}
	return []*share{high, low}
}

// A receiver that takes no packets returns no credits: packets for it fill the buffers of
// their lane on the whole way, and what is behind them in these buffers, for whichever
// receiver, waits until HOQLife discards them. So the flows of a lane before such a receiver
// keep the proportions in which the ports before it send them, and flows that wait fill the
// buffers on their own ways.

// queuedFlow is a flow in the queue of a lane.
type queuedFlow struct{ way, hop int }

// creditSolver finds the flows that wait for credits.
type creditSolver struct {
	ways    []way
	rates   []float64 // of each flow: demanded, or what credits allow; bytes per second
	waits   []int     // the hop where a flow waits for credits; -1: nowhere
	members map[lane][]queuedFlow
}

// maxCredits bounds how often a queue is computed again: where queues wait for each other,
// rates decrease without end.
const maxCredits = 64

// creditRates returns the rates of flows that credits allow, and for each the hop where it
// waits for them; -1: none.
func creditRates(demands []float64, ways []way) (rates []float64, waits []int) {
	c := &creditSolver{ways: ways, rates: append([]float64(nil), demands...), waits: make([]int, len(ways))}
	var open []lane         // whose members have changed
	gone := map[*Port]int{} // flows to each receiver
	for i := range ways {
		c.waits[i] = -1
		if w := &ways[i]; w.gone {
			gone[w.last().out]++
		}
	}
	if len(gone) == 0 {
		return c.rates, c.waits
	}
	c.members = map[lane][]queuedFlow{}
	for i := range ways {
		for n := range ways[i].hops {
			q := ways[i].hops[n].lane()
			c.members[q] = append(c.members[q], queuedFlow{i, n})
		}
	}
	for i := range ways { // flows to one receiver share what it discards
		if w := &ways[i]; w.gone {
			if rate := w.last().capacity / float64(gone[w.last().out]); rate < c.rates[i] {
				open = append(open, c.hold(i, rate, len(w.hops)-1)...)
			}
		}
	}
	count := map[lane]int{}
	for len(open) > 0 {
		q := open[0]
		open = open[1:]
		if count[q]++; count[q] <= maxCredits {
			open = append(open, c.wait(q)...)
		}
	}
	return c.rates, c.waits
}

// hold limits a flow that waits at a hop, and returns the queues before it, which it fills.
func (c *creditSolver) hold(way int, rate float64, hop int) (filled []lane) {
	c.rates[way], c.waits[way] = rate, hop
	for i := range c.ways[way].hops[:hop] {
		filled = append(filled, c.ways[way].hops[i].lane())
	}
	return filled
}

// wait limits the flows of a queue to what passes between the flows that fill it: a sender sends
// its flows in turn, and a switch what comes from its input ports. It returns the queues
// that have changed by that.
func (c *creditSolver) wait(q lane) (changed []lane) {
	inputs := map[lane][]queuedFlow{} // by the queue before
	var order []lane
	for _, m := range c.members[q] {
		var from lane // none: the sender
		if m.hop > 0 {
			from = c.ways[m.way].hops[m.hop-1].lane()
		}
		if inputs[from] == nil {
			order = append(order, from)
		}
		inputs[from] = append(inputs[from], m)
	}
	least := math.Inf(1) // of the inputs that fill it
	total := map[lane]float64{}
	for _, from := range order {
		level, fills := math.Inf(1), false
		for _, m := range inputs[from] {
			if c.waits[m.way] > m.hop {
				level, fills = min(level, c.rates[m.way]), true
			}
		}
		for _, m := range inputs[from] {
			if from.out == nil {
				changed = append(changed, c.limit(m, level)...)
			}
			total[from] += c.rates[m.way]
		}
		if fills {
			least = min(least, total[from])
		}
	}
	for _, from := range order {
		if total[from] > least*(1+rateTolerance) {
			for _, m := range inputs[from] {
				changed = append(changed, c.limit(m, c.rates[m.way]*least/total[from])...)
			}
		}
	}
	return changed
}

// limit limits a flow to what passes its queue.
func (c *creditSolver) limit(m queuedFlow, rate float64) []lane {
	if rate >= c.rates[m.way]*(1-rateTolerance) {
		return nil
	}
	return c.hold(m.way, rate, m.hop)
}
