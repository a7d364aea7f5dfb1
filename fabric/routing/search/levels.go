package search

import (
	"cmp"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
)

// levels is the state of a search without cycle tests: of paths of so many hops after those of
// fewer, which needs no queue. It adds no dependencies; finish does.
type levels struct {
	bucket  [][]int32 // by hops: switches with a path of so many
	hops    int       // all paths of fewer are known
	reached int64     // ports of CAs that have a path
	excess  int64     // links of paths beyond those of shortest paths, as far as is known
	swept   bool      // the present paths are of such a search
	found   bool      // the paths to the LID that comes next are found
}

// sweep finds the cheapest paths that need no cycle test.
func (n *nueSearch) sweep(home int) {
	n.beginLevels(home)
	for n.left > 0 && n.hops < len(n.bucket) {
		n.advance()
	}
}

// beginLevels starts a search without cycle tests.
func (n *nueSearch) beginLevels(home int) {
	n.reset(home)
	n.swept, n.hops, n.reached, n.excess = true, 0, 0, 0
	if len(n.bucket) == 0 {
		n.bucket = [][]int32{nil}
	}
	for i := range n.bucket {
		n.bucket[i] = n.bucket[i][:0]
	}
	n.bucket[0] = append(n.bucket[0], int32(home))
	n.cost[home] = 0
}

// advance settles the switches whose paths have the next number of hops.
func (n *nueSearch) advance() {
	for _, s := range n.bucket[n.hops] {
		if !n.settled[s] && int(n.cost[s]/hopCost) == n.hops { // else it has a shorter path
			n.fix(s, n.via[s], n.cost[s])
			n.reached += n.endpoints[s]
		}
	}
	if n.left > 0 {
		for _, s := range n.bucket[n.hops] {
			if int(n.cost[s]/hopCost) == n.hops {
				n.spread(s)
			}
		}
	}
	n.hops++
}

// spread finds paths by way of a switch that is settled. Among those of the same cost it
// takes that by way of the cheapest switch, as search does.
func (n *nueSearch) spread(t int32) {
	g, via := n.g, n.via[t]
	channels := g.Channels()
	for c := g.FirstChannel(int(t)); c < g.FirstChannel(int(t+1)); c++ {
		s, back := g.ChannelTo(c), channels[c].Reverse
		if n.settled[s] || via >= 0 && !n.order.Agrees(back, via) {
			continue
		}
		cost, was := n.cost[t]+hopCost*int64(channels[back].Weight)+n.load[back], n.cost[s]
		if was >= 0 && (cost > was || cost == was && !n.before(t, g.ChannelTo(n.via[s]))) {
			continue
		}
		n.cost[s], n.via[s] = cost, back
		if hops := int(cost / hopCost); was < 0 || int(was/hopCost) != hops {
			for len(n.bucket) <= hops {
				n.bucket = append(n.bucket, nil)
			}
			n.bucket[hops] = append(n.bucket[hops], s)
		}
	}
}

// before reports whether search settles s before t.
func (n *nueSearch) before(s, t int32) bool {
	return n.cost[s] < n.cost[t] || n.cost[s] == n.cost[t] && n.via[s] < n.via[t]
}

// within goes on until all paths are found, and reports whether they have no more than limit
// links beyond shortest paths; or until it is known that they have more. near are the ports
// of CAs to which shortest paths have so many hops at most. A path that is missing counts as
// the longest.
func (n *nueSearch) within(limit int64, near []int64, connected *graph.Hops) bool {
	for n.left > 0 && n.hops < len(n.bucket) && n.excess <= limit {
		n.advance()
		n.excess += near[min(n.hops, len(near))-1] - n.reached
	}
	if n.left > 0 && n.excess <= limit {
		n.excess = 0
		for s, endpoints := range n.endpoints {
			switch x := connected.Distance(s, n.home); {
			case x < 0:
			case n.settled[s]:
				n.excess += endpoints * (n.cost[s]/hopCost - int64(x))
			default:
				n.excess += endpoints * graph.MaxDistance
			}
		}
	}
	return n.excess <= limit
}

// shortestLane is the first lane on which paths to switch d are as short as can be, or
// shortest, without cycle tests: those would take most of the time.
func shortestLane(searches []*nueSearch, d int, connected *graph.Hops) (lane int) {
	if len(searches) == 1 {
		return 0
	}
	defer func() { searches[lane].found = true }()
	near := nearby(searches[0], d, connected)
	order := make([]int, len(searches))
	for i, n := range searches {
		n.beginLevels(d)
		if n.within(0, near, connected) {
			return i
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(searches[i].excess, searches[j].excess) })
	least := int64(math.MaxInt64)
	for _, i := range order {
		limit := least
		if i > lane {
			limit--
		}
		if n := searches[i]; n.within(limit, near, connected) {
			lane, least = i, n.excess
		}
	}
	return lane
}

// nearby are the ports of CAs from which shortest paths to switch d have so many hops at most.
func nearby(n *nueSearch, d int, connected *graph.Hops) (near []int64) {
	for s, endpoints := range n.endpoints {
		x := connected.Distance(s, d)
		for ; len(near) <= x; near = append(near, 0) {
		}
		if x >= 0 {
			near[x] += endpoints
		}
	}
	for i := range near[1:] {
		near[i+1] += near[i]
	}
	return near
}
