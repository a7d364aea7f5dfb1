package traffic

import (
	"cmp"
	"math"
	"slices"

	"fabsh/fabric/sim/state"
)

// share is a part of a link's rate: of a virtual lane, of an input port, or of a flow. The
// switch serves the parts of a share in turn, by their weights, and skips those that have
// nothing to send (IBA 7.6.9 for lanes).
type share struct {
	weight float64
	demand float64 // bytes per second: of a flow, what the rest of its way carries
	offer  float64 // what it would get if it demanded more than that
	parts  []*share
}

// want sums up the demands of the parts.
func (s *share) want() float64 {
	if len(s.parts) > 0 {
		s.demand = 0
		for _, p := range s.parts {
			s.demand += p.want()
		}
	}
	return s.demand
}

// distribute computes the offers of the parts of s, whose demands are known.
func (s *share) distribute() {
	var parts []*share
	for _, p := range s.parts {
		if p.weight > 0 {
			parts = append(parts, p)
			continue
		}
		p.offer = 0 // its lane is in neither table
		p.distribute()
	}
	slices.SortFunc(parts, func(a, b *share) int { return cmp.Compare(a.level(), b.level()) })
	// Below a level, the parts up to i get their demands, and the others the level times
	// their weights.
	demands, weights := make([]float64, len(parts)+1), make([]float64, len(parts)+1)
	for i, p := range parts {
		demands[i+1] = demands[i] + p.demand
		weights[i+1] = weights[i] + p.weight
	}
	total := weights[len(parts)]
	for own, p := range parts {
		// The level at which the others and p, without a limit, use all of s.
		i, _ := slices.BinarySearchFunc(parts, 0, func(other *share, _ int) int {
			at, _ := slices.BinarySearchFunc(parts, other.level(), func(x *share, level float64) int { return cmp.Compare(x.level(), level) })
			used := demands[at] + other.level()*(total-weights[at])
			if other.level() > p.level() {
				used += other.level()*p.weight - p.demand
			}
			return cmp.Compare(used, s.offer)
		})
		taken, rest := demands[i], total-weights[i]
		if own < i {
			taken, rest = taken-p.demand, rest+p.weight
		}
		p.offer = max(0, s.offer-taken) / rest * p.weight
		p.distribute()
	}
}

// level returns the level at which s gets its demand.
func (s *share) level() float64 { return s.demand / s.weight }

// link is a link that flows want more of than it carries.
type link struct {
	share
	flows []crossing
}

// crossing is a flow at a link.
type crossing struct {
	*share
	way, hop int
}

// maxRounds bounds the time for rates; each round settles the flows of at least one link.
const maxRounds = 64

// carried returns the rates of flows, in bytes per second, and for each the hop that limits
// it; -1: none does. At each link, lanes share by their weights, then input ports equally,
// then the flows of an input port as they arrive there; those of a sender equally. So a flow
// that joins late gets as much as all that came before it (the parking lot problem).
func carried(flows []flow, ways []way) (rates []float64, limits []int) {
	load := map[*state.Port]float64{}
	for i := range ways {
		for _, h := range ways[i].hops {
			load[h.out] += flows[i].Rate
		}
	}
	links := map[*state.Port]*link{}
	var order []*link
	for i := range ways {
		for n, h := range ways[i].hops {
			if load[h.out] <= h.capacity && h.weight > 0 {
				continue
			}
			l := links[h.out]
			if l == nil {
				l = &link{share: share{weight: 1, offer: h.capacity}}
				links[h.out] = l
				order = append(order, l)
			}
			l.flows = append(l.flows, crossing{&share{weight: 1, demand: flows[i].Rate}, i, n})
		}
	}
	byWay := make([][]crossing, len(ways))
	for _, l := range order {
		l.arrange(ways)
		for _, c := range l.flows {
			byWay[c.way] = append(byWay[c.way], c)
		}
	}
	for range maxRounds {
		for _, l := range order {
			l.want()
			l.distribute()
		}
		changed := false
		for way, crossings := range byWay {
			rate := flows[way].Rate
			for _, c := range crossings {
				demand, arrives := rate, rate
				for _, other := range crossings {
					if other.share != c.share {
						demand = min(demand, other.offer)
					}
					if other.hop < c.hop {
						arrives = min(arrives, other.offer)
					}
				}
				changed = changed || math.Abs(demand-c.demand) > 1e-9*rate
				c.demand = demand
				if c.hop > 0 { // first in, first out: as they arrive
					weight := max(arrives, 1)
					changed = changed || math.Abs(weight-c.weight) > 1e-9*rate
					c.weight = weight
				}
			}
		}
		if !changed {
			break
		}
	}
	rates, limits = make([]float64, len(ways)), make([]int, len(ways))
	for i := range ways {
		rates[i], limits[i] = flows[i].Rate, -1
		for _, c := range byWay[i] {
			if c.offer < rates[i]*(1-1e-9) || c.offer == 0 && rates[i] > 0 {
				rates[i], limits[i] = c.offer, c.hop
			}
		}
	}
	for _, l := range order { // rounding must not exceed a link
		total := 0.0
		for _, c := range l.flows {
			total += rates[c.way]
		}
		if total > l.offer {
			for _, c := range l.flows {
				rates[c.way] *= l.offer / total
			}
		}
	}
	return rates, limits
}

// arrange makes the tree of a link's shares: lanes, input ports, flows.
func (l *link) arrange(ways []way) {
	type input struct {
		vl uint8
		in *state.Port
	}
	lanes, inputs := map[uint8]*share{}, map[input]*share{}
	for _, c := range l.flows {
		h := &ways[c.way].hops[c.hop]
		lane := lanes[h.vl]
		if lane == nil {
			lane = &share{weight: h.weight}
			lanes[h.vl] = lane
			l.parts = append(l.parts, lane)
		}
		from := inputs[input{h.vl, h.in}]
		if from == nil {
			from = &share{weight: 1}
			inputs[input{h.vl, h.in}] = from
			lane.parts = append(lane.parts, from)
		}
		from.parts = append(from.parts, c.share)
	}
}
