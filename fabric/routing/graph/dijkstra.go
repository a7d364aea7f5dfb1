package graph

import "fmt"

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

// costHeap is a binary heap of paths: by cost, then by bound, then by channel.
// (container/heap would allocate memory for each item.)
type CostHeap []CostItem

// costItem is a path that begins with a channel.
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
