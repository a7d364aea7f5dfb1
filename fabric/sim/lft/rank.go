package lft

import (
	"fmt"
	"slices"
)

// rankSwitches ranks the switches. It sets rank only if all links join neighbouring
// ranks.
func (r *router) rankSwitches() {
	rank := slices.Repeat([]int{-1}, len(r.links))
	var queue []int32
	for i := range r.links {
		if r.leaf[i] {
			rank[i] = 0
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range r.links[at].to {
			if rank[to] < 0 {
				rank[to] = rank[at] + 1
				queue = append(queue, int32(to))
			}
		}
	}
	highest := 0
	for i := range r.links {
		for _, to := range r.links[i].to {
			if d := rank[i] - rank[to]; rank[i] < 0 || d != 1 && d != -1 {
				return
			}
		}
		highest = max(highest, rank[i])
	}
	r.rank = rank
	r.order = make([]int32, len(rank))
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return rank[b] - rank[a] })
	// d-mod-k: rank i chooses its up port by the digit of the destination's
	// number that the ranks below have not used.
	ups := make([]int, highest+1)
	r.ups = make([]Links, len(rank))
	r.group = make([]int32, len(rank))
	known := map[string]int32{}
	for i := range r.links {
		for k, to := range r.links[i].to {
			if rank[to] > rank[i] {
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
		stride *= max(1, n)
	}
}
