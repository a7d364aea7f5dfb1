package state

import (
	"cmp"
	"slices"
)

// share is a part of a link's rate: of a table of VL arbitration, a virtual lane, an input
// port, or a flow. The switch serves the parts of a share in turn, by their weights, and
// skips those that have nothing to send (IBA 7.6.9 for lanes).
type share struct {
	weight float64
	demand float64 // bytes per second
	gets   float64 // bytes per second, at most demand
	parts  []*share
}

// sum computes the demands from those of the flows.
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

// unlimited is the weight of the high-priority table beside the low-priority one where
// VLHighLimit is 255.
const unlimited = 1e12

// arbitration is what decides how the lanes of a port share its link: the entry of a lane
// in both tables, and how much the high-priority one may send before a packet of the
// low-priority one.
type arbitration struct {
	high, low float64 // weights of the lane: sums of its entries
	limit     float64 // bytes; unlimited: strict priority
	packet    float64 // bytes
}

// arbitrate weighs the lanes of a link, which arbiters describes in the same order, and
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
