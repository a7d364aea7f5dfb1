package state

import (
	"fmt"
	"math"
	"slices"
)

// rankSwitches ranks the switches by their distance from hosts, and reports whether all
// links join neighbouring ranks. Else they stay without ranks.
func (r *router) rankSwitches() bool {
	rank := slices.Repeat([]int{-1}, len(r.links))
	var leaves []int32
	for i := range r.links {
		if r.leaf[i] {
			rank[i] = 0
			leaves = append(leaves, int32(i))
		}
	}
	r.searchRanks(rank, leaves)
	for i := range r.links {
		for _, to := range r.links[i].to {
			if d := rank[i] - rank[to]; rank[i] < 0 || d != 1 && d != -1 {
				return false
			}
		}
	}
	r.arrange(rank)
	return true
}

// rankFromRoots ranks the switches of any network for up*/down* routes: by their distance
// from a root, and of equal ones by their number, lower ones up. Each part of a network that
// is not connected has the root from which its farthest switch is the nearest.
func (r *router) rankFromRoots() {
	level := slices.Repeat([]int{-1}, len(r.links))
	for i := range r.links {
		if level[i] >= 0 {
			continue
		}
		part := r.searchRanks(slices.Repeat([]int{-1}, len(r.links)), []int32{int32(i)})
		slices.Sort(part)
		root, nearest := int32(i), len(r.links)
		for _, candidate := range part {
			distance := slices.Repeat([]int{-1}, len(r.links))
			distance[candidate] = 0
			reached := r.searchRanks(distance, []int32{candidate})
			if far := distance[reached[len(reached)-1]]; far < nearest {
				root, nearest = candidate, far
			}
		}
		level[root] = 0
		r.searchRanks(level, []int32{root})
	}
	highest := slices.Max(append(level, 0))
	for i := range level {
		level[i] = highest - level[i]
	}
	r.arrange(level)
}

// searchRanks ranks the switches without a rank by their distance from those of queue, and
// returns the switches that it has reached.
func (r *router) searchRanks(rank []int, queue []int32) []int32 {
	for _, at := range queue {
		rank[at] = max(rank[at], 0)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for _, to := range r.links[at].to {
			if rank[to] < 0 {
				rank[to] = rank[at] + 1
				queue = append(queue, int32(to))
			}
		}
	}
	return queue
}

// above reports whether switch b is above a.
func (r *router) above(b, a int32) bool {
	return r.rank[b] > r.rank[a] || r.rank[b] == r.rank[a] && b < a
}

// arrange prepares routes by ranks.
func (r *router) arrange(rank []int) {
	highest := slices.Max(append(rank, 0))
	r.rank = rank
	r.order = make([]int32, len(rank))
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return rank[b] - rank[a] })
	// d-mod-k: rank i chooses its up port by the digit of the destination's
	// number that the ranks below have not used.
	ups := make([]int, highest+1)
	r.ups = make([]lftLinks, len(rank))
	r.group = make([]int32, len(rank))
	known := map[string]int32{}
	for i := range r.links {
		for k, to := range r.links[i].to {
			if r.above(int32(to), int32(i)) {
				r.ups[i].Add(to, r.links[i].port[k])
			}
		}
		key := fmt.Sprint(r.ups[i])
		if _, ok := known[key]; !ok {
			known[key] = int32(len(r.groups))
			r.groups = append(r.groups, r.ups[i])
		}
		r.group[i] = known[key]
		if rank[i] >= 0 {
			ups[rank[i]] = max(ups[rank[i]], len(r.ups[i].to))
		}
	}
	hosts := int32(0)
	for _, list := range r.destinations {
		for _, t := range list {
			hosts = max(hosts, t.Number+1)
		}
	}
	stride := 1
	for _, n := range ups {
		digits := make([]int32, hosts)
		for number := range digits {
			digits[number] = int32(number / stride)
		}
		r.stride, r.digits = append(r.stride, stride), append(r.digits, digits)
		stride = min(stride*max(1, n), math.MaxInt32) // more than the numbers of hosts
	}
}
