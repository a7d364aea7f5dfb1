// Package paths finds several paths between two switches, for those who choose routes by
// hand, or spread them over more than the shortest.

package graph

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
)

// MaxPaths is the greatest number of paths that Shortest finds.
const MaxPaths = 10_000

// SimplePath is a path between two switches that visits no switch twice.
type SimplePath struct {
	Cost     int     // its links, or the sum of their weights
	Channels []int32 // as Graph.Channels numbers them
}

func compare(a, b SimplePath) int {
	return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(len(a.Channels), len(b.Channels)), slices.Compare(a.Channels, b.Channels))
}

// ShortestPaths finds k of the cheapest paths from a switch to another, cheapest first; of
// equal ones those with fewer links stand first, then those over lower channels. There
// may be fewer than k. Parallel links make different paths.
//
// Each path found is left at each of its switches in turn, by another link than all
// paths found that came the same way, and the cheapest rest of the way is looked for
// (Yen, "Finding the k shortest loopless paths in a network", 1971), beginning at the
// switch where it left its predecessor (Lawler, 1972). The rest is found by A*, bounded
// by the distances of the whole graph, so that it mostly goes straight.
//
// Time: O(k*D) searches of O(C*log C) at most, D switches on a path, C channels.
func ShortestPaths(ctx context.Context, g *Graph, from, to, k int) ([]SimplePath, error) {
	n := len(g.Switches())
	switch {
	case k < 1 || k > MaxPaths:
		return nil, fmt.Errorf("%d paths: want from 1 to %d", k, MaxPaths)
	case from < 0 || from >= n || to < 0 || to >= n:
		return nil, fmt.Errorf("unknown switches %d and %d; switches: 0 to %d", from, to, n-1)
	case from == to:
		return []SimplePath{{}}, nil
	}
	x, err := newSearch(g, to)
	if err != nil {
		return nil, err
	}
	first, ok := x.rest(from, nil)
	if !ok {
		return nil, nil
	}
	type candidate struct {
		SimplePath
		left int // where it left the path before: the links up to there are that one's
	}
	var found []SimplePath
	waiting := []candidate{{SimplePath: first}}
	for len(waiting) > 0 {
		best := waiting[0]
		waiting = waiting[1:]
		found = append(found, best.SimplePath)
		room := k - len(found)
		if room == 0 {
			break
		}
		for i := best.left; i < len(best.Channels); i++ {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			root := best.Channels[:i]
			var taken []int32
			for _, p := range found {
				if len(p.Channels) > i && slices.Equal(p.Channels[:i], root) {
					taken = append(taken, p.Channels[i])
				}
			}
			at := x.walkTo(from, root)
			rest, ok := x.rest(at, taken)
			x.forget(from, root)
			if !ok {
				continue
			}
			c := candidate{SimplePath{x.cost(root) + rest.Cost, slices.Concat(root, rest.Channels)}, i}
			place, known := slices.BinarySearchFunc(waiting, c, func(a, b candidate) int { return compare(a.SimplePath, b.SimplePath) })
			if known || place >= room {
				continue
			}
			waiting = slices.Insert(waiting, place, c)
			waiting = waiting[:min(len(waiting), room)]
		}
	}
	slices.SortFunc(found, compare)
	return found, nil
}

// search finds the cheapest rest of a way to one switch.
type search struct {
	channels []Channel
	base     []int32 // first channel of a switch, and the end
	to       int
	bound    []int64 // by switch: what the cheapest way to to costs, on any switches; -1: none

	used    []bool  // by switch: it is on the way so far
	paid    []int64 // by switch, of the present search; -1: not reached
	via     []int32 // by switch: the channel that it was reached over
	reached []int32
	queue   queue
}

func newSearch(g *Graph, to int) (*search, error) {
	n := len(g.Switches())
	x := &search{channels: g.Channels(), to: to, base: make([]int32, n+1), used: make([]bool, n), paid: slices.Repeat([]int64{-1}, n), via: make([]int32, n)}
	weight := make([]int64, len(x.channels))
	for c, ch := range x.channels {
		weight[c] = int64(ch.Weight)
		x.base[ch.From+1]++
	}
	for s := range n {
		x.base[s+1] += x.base[s]
	}
	var err error
	x.bound, _, err = Dijkstra(g, to, weight)
	return x, err
}

// walkTo marks the switches on root, and is where it ends.
func (x *search) walkTo(from int, root []int32) int {
	for _, c := range root {
		x.used[from] = true
		from = int(x.channels[c].To)
	}
	return from
}

// forget takes the marks of walkTo away.
func (x *search) forget(from int, root []int32) {
	for _, c := range root {
		x.used[from] = false
		from = int(x.channels[c].To)
	}
}

func (x *search) cost(way []int32) (sum int) {
	for _, c := range way {
		sum += int(x.channels[c].Weight)
	}
	return sum
}

// rest is the cheapest way from switch at on, over none of the switches that are used,
// whose first channel is not among taken.
func (x *search) rest(at int, taken []int32) (SimplePath, bool) {
	for _, s := range x.reached {
		x.paid[s] = -1
	}
	x.reached, x.queue = append(x.reached[:0], int32(at)), x.queue[:0]
	x.paid[at] = 0
	heap.Push(&x.queue, item{x.bound[at], 0, int32(at)})
	for len(x.queue) > 0 {
		it := heap.Pop(&x.queue).(item)
		s := int(it.at)
		if it.paid != x.paid[s] {
			continue
		}
		if s == x.to {
			return x.path(at), true
		}
		for c := x.base[s]; c < x.base[s+1]; c++ {
			to, paid := x.channels[c].To, it.paid+int64(x.channels[c].Weight)
			if x.used[to] || int(to) == at || x.bound[to] < 0 || s == at && slices.Contains(taken, c) || x.paid[to] >= 0 && x.paid[to] <= paid {
				continue
			}
			if x.paid[to] < 0 {
				x.reached = append(x.reached, to)
			}
			x.paid[to], x.via[to] = paid, c
			heap.Push(&x.queue, item{paid + x.bound[to], paid, to})
		}
	}
	return SimplePath{}, false
}

// path is the way that the search has found from switch at.
func (x *search) path(at int) SimplePath {
	p := SimplePath{Cost: int(x.paid[x.to])}
	for s := x.to; s != at; s = int(x.channels[x.via[s]].From) {
		p.Channels = append(p.Channels, x.via[s])
	}
	slices.Reverse(p.Channels)
	return p
}

// item is a switch that a search has reached: the least that a way through it costs, and
// what it costs up to there.
type item struct {
	least, paid int64
	at          int32
}

type queue []item

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].least, q[j].least), cmp.Compare(q[j].paid, q[i].paid), cmp.Compare(q[i].at, q[j].at)) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
