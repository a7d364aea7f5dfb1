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

// compare orders paths by cost, then by the number of links, then by channels.
func compare(a, b SimplePath) int {
	return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(len(a.Channels), len(b.Channels)), slices.Compare(a.Channels, b.Channels))
}

// ShortestPaths finds k of the cheapest paths from a switch to another, cheapest first; of
// equal cost, paths with fewer links stand first, then paths over lower channels. There
// may be fewer than k. Parallel links make different paths.
//
// Each path found is left at each of its switches in turn, by another link than all
// paths found with an equal beginning, and the search looks for the cheapest rest of the
// way (Yen, "Finding the k shortest loopless paths in a network", 1971), beginning at the
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
		left int // number of leading links that it shares with the path that it left
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

// MaxWeight is the greatest weight of a channel for Dijkstra.
const MaxWeight = 1 << 40

// Dijkstra finds the cheapest path from each switch to switch d, where channel c
// costs weight[c], at least 0: its cost, and the channel it begins with, the lowest
// of equal ones. -1: there is no path, or it is d itself (Dijkstra, "A note on two
// problems in connexion with graphs", 1959).
//
// Time: O(C*log C), with a binary heap.
func Dijkstra(g *Graph, d int, weight []int64) (cost []int64, via []int32, err error) {
	if err := CheckWeights(g, weight); err != nil {
		return nil, nil, err
	}
	if d < 0 || d >= len(g.switches) {
		return nil, nil, fmt.Errorf("dijkstra: unknown switch %d of %d", d, len(g.switches))
	}
	s := NewCheapest(g)
	s.From(d, weight)
	return s.Cost, s.Via, nil
}

// CheckWeights checks that there is a weight for each channel, and none is too great.
func CheckWeights(g *Graph, weight []int64) error {
	if len(weight) != len(g.channels) {
		return fmt.Errorf("%d weights for %d channels", len(weight), len(g.channels))
	}
	for c, w := range weight {
		if w < 0 || w > MaxWeight {
			return fmt.Errorf("weight %d of %s: it must be from 0 to %d", w, g.ChannelPort(c).Label(), int64(MaxWeight))
		}
	}
	return nil
}

// Cheapest finds cheapest paths to one switch after the other. Each search overwrites
// the results of the one before. It is not safe for concurrent use.
type Cheapest struct {
	g     *Graph
	Cost  []int64 // by switch; -1: no path
	Via   []int32 // by switch: the channel towards the destination, or NoChannel
	Done  []int32 // settled switches, nearest first
	queue CostHeap
}

// NewCheapest is a search in g.
func NewCheapest(g *Graph) *Cheapest { return &Cheapest{g: g} }

// From finds the paths to switch d.
func (x *Cheapest) From(d int, weight []int64) {
	g := x.g
	if x.Cost == nil {
		x.Cost, x.Via = make([]int64, len(g.switches)), make([]int32, len(g.switches))
	}
	for s := range x.Cost {
		x.Cost[s], x.Via[s] = -1, NoChannel
	}
	x.Cost[d], x.Done = 0, append(x.Done[:0], int32(d))
	for i := 0; ; i++ {
		// Relax the channels into the switch that was settled last; then settle
		// the cheapest.
		t := x.Done[i]
		for c := g.chanBase[t]; c < g.chanBase[t+1]; c++ {
			back := g.channels[c].Reverse
			s := g.chanTo[c]
			cost := x.Cost[t] + weight[back]
			if int(s) != d && (x.Cost[s] < 0 || cost < x.Cost[s] || cost == x.Cost[s] && x.Via[s] < 0) {
				x.Cost[s] = cost
				x.queue.Push(CostItem{Cost: cost, Channel: back})
			}
		}
		for {
			if len(x.queue) == 0 {
				return
			}
			item := x.queue.Pop()
			if s := g.channels[item.Channel].From; x.Via[s] < 0 && item.Cost == x.Cost[s] {
				x.Via[s] = item.Channel
				x.Done = append(x.Done, s)
				break
			}
		}
	}
}

// CostHeap is a binary heap of paths: by cost, then by bound, then by channel.
// (container/heap would allocate memory for each item.)
type CostHeap []CostItem

// CostItem is a path that begins with a channel.
type CostItem struct {
	Cost    int64
	Channel int32
	Bound   int32 // of A*: the part of cost that is yet to come, in hops
}

func (a CostItem) before(b CostItem) bool {
	if a.Cost != b.Cost {
		return a.Cost < b.Cost
	}
	if a.Bound != b.Bound {
		return a.Bound < b.Bound
	}
	return a.Channel < b.Channel
}

// Push adds a path.
func (h *CostHeap) Push(x CostItem) {
	*h = append(*h, x)
	list := *h
	i := len(list) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(list[parent]) {
			break
		}
		list[i] = list[parent]
		i = parent
	}
	list[i] = x
}

// Pop removes the first path, and returns it. The heap must not be empty.
func (h *CostHeap) Pop() CostItem {
	list := *h
	top, x := list[0], list[len(list)-1]
	list = list[:len(list)-1]
	*h = list
	i := 0
	for {
		child := 2*i + 1
		if child >= len(list) {
			break
		}
		if child+1 < len(list) && list[child+1].before(list[child]) {
			child++
		}
		if !list[child].before(x) {
			break
		}
		list[i] = list[child]
		i = child
	}
	if len(list) > 0 {
		list[i] = x
	}
	return top
}
