package state

import (
	"math"
	"slices"
)

// link is a link that flows want more of than it carries.
type link struct {
	share
	flows []crossing
	stale bool // demands or weights have changed
}

// crossing is a flow at a link.
type crossing struct {
	*share
	at       *link
	way, hop int
}

// tolerance is the relative error of rates.
const tolerance = 1e-9

// spread is the ratio of the rates of flows that are settled together, where none can be
// settled alone because each waits for another. It grows each time, which bounds the time.
const spread = 1.1

// filling computes the rates of flows by progressive filling: flows whose rates are settled
// leave the rest of their links to the others.
type filling struct {
	links   []*link
	byWay   [][]crossing // of each flow, in the order of its way
	rates   []float64    // of each flow: demanded, or settled; bytes per second
	limits  []int        // the hop that limits the flow; -1: none does
	settled []bool
	longest int     // hops of the longest way
	spread  float64 // the ratio for settleLeast
}

// carried returns the rates of flows, in bytes per second, and for each the hop that limits
// it; -1: none does. At each link, lanes share by VL arbitration, then input ports equally,
// then the flows of an input port as they arrive there; those of a sender equally. So a flow
// that joins late gets as much as all that came before it (the parking lot problem).
func carried(demands []float64, ways []way) (rates []float64, limits []int) {
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
		f := newFilling(rest, ways, left)
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

// fill settles all flows. It reports whether links may have something left, because flows
// wait for each other.
func (f *filling) fill() (cycle bool) {
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

// newFilling returns the filling of what links have left.
func newFilling(demands []float64, ways []way, left map[*Port]float64) *filling {
	f := &filling{spread: 1, rates: slices.Clone(demands), limits: make([]int, len(ways)), settled: make([]bool, len(ways)), byWay: make([][]crossing, len(ways))}
	load := map[*Port]float64{}
	for i := range ways {
		f.limits[i] = -1
		f.longest = max(f.longest, len(ways[i].hops))
		for _, h := range ways[i].hops {
			load[h.out] += demands[i]
		}
	}
	links := map[*Port]*link{}
	for i := range ways {
		for n, h := range ways[i].hops {
			if load[h.out] <= left[h.out] && h.arbitration.high+h.arbitration.low > 0 {
				continue
			}
			l := links[h.out]
			if l == nil {
				l = &link{share: share{gets: left[h.out]}, stale: true}
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
func (l *link) arrange(ways []way) {
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
func (f *filling) distribute() (changed bool) {
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
				if weight := max(arrives, 1e-9); math.Abs(weight-c.weight) > tolerance*weight {
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
func (f *filling) least(way int) (rate float64, limit int) {
	rate, limit = f.rates[way], -1
	for _, c := range f.byWay[way] {
		if c.gets < rate*(1-tolerance) {
			rate, limit = c.gets, c.hop
		}
	}
	return rate, limit
}

// settle settles the flows that get what they demand, and those of links that limit all
// their flows. It reports whether there are any.
func (f *filling) settle() (any bool) {
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
			if !before[c.way] && c.gets > rates[c.way]*(1+tolerance) {
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
func (f *filling) settleLeast() {
	f.spread *= spread
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

func (f *filling) finish(way int, rate float64, limit int) {
	f.rates[way], f.limits[way], f.settled[way] = rate, limit, true
	for _, c := range f.byWay[way] {
		c.at.stale = c.at.stale || c.demand != rate
		c.demand = rate
	}
}

// fit reduces the rates where they would exceed a link, by rounding or in a cycle. It
// reports whether the latter has occurred.
func (f *filling) fit() (cycle bool) {
	for _, l := range f.links {
		total := 0.0
		for _, c := range l.flows {
			total += f.rates[c.way]
		}
		if total > l.gets {
			cycle = cycle || total > l.gets*(1+tolerance)
			for _, c := range l.flows {
				f.rates[c.way] *= l.gets / total
			}
		}
	}
	return cycle
}
