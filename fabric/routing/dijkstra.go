package routing

import "fmt"

// Dijkstra finds the cheapest path from each switch to switch d, where channel c
// costs weight[c], at least 0: its cost, and the channel it begins with, the lowest
// of equal ones. -1: there is no path, or it is d itself (Dijkstra, "A note on two
// problems in connexion with graphs", 1959).
//
// Time: O(C*log C), with a binary heap.
func (g *Graph) Dijkstra(d int, weight []int64) (cost []int64, via []int32, err error) {
	if err := g.checkWeights(weight); err != nil {
		return nil, nil, err
	}
	if d < 0 || d >= len(g.switches) {
		return nil, nil, fmt.Errorf("dijkstra: no switch %d; there are %d", d, len(g.switches))
	}
	s := dijkstra{g: g}
	s.from(d, weight)
	return s.cost, s.via, nil
}

// checkWeights checks that there is a weight for each channel, and none is too great.
func (g *Graph) checkWeights(weight []int64) error {
	if len(weight) != len(g.channels) {
		return fmt.Errorf("%d weights for %d channels", len(weight), len(g.channels))
	}
	for c, w := range weight {
		if w < 0 || w > hopCost {
			return fmt.Errorf("weight %d of %s: it must be from 0 to %d", w, g.ChannelPort(c).Label(), int64(hopCost))
		}
	}
	return nil
}

// dijkstra is the state of the algorithm, which goes from search to search.
type dijkstra struct {
	g     *Graph
	cost  []int64
	via   []int32
	done  []int32 // settled switches, nearest first
	queue costHeap
}

// from finds the paths to switch d.
func (x *dijkstra) from(d int, weight []int64) {
	g := x.g
	if x.cost == nil {
		x.cost, x.via = make([]int64, len(g.switches)), make([]int32, len(g.switches))
	}
	for s := range x.cost {
		x.cost[s], x.via[s] = -1, noTarget
	}
	x.cost[d], x.done = 0, append(x.done[:0], int32(d))
	for i := 0; ; i++ {
		// Relax the channels into the switch that was settled last; then settle
		// the cheapest.
		t := x.done[i]
		for c := g.chanBase[t]; c < g.chanBase[t+1]; c++ {
			back := g.channels[c].Reverse
			s := g.chanTo[c]
			cost := x.cost[t] + weight[back]
			if int(s) != d && (x.cost[s] < 0 || cost < x.cost[s] || cost == x.cost[s] && x.via[s] < 0) {
				x.cost[s] = cost
				x.queue.push(costItem{cost: cost, channel: back})
			}
		}
		for {
			if len(x.queue) == 0 {
				return
			}
			item := x.queue.pop()
			if s := g.channels[item.channel].From; x.via[s] < 0 && item.cost == x.cost[s] {
				x.via[s] = item.channel
				x.done = append(x.done, s)
				break
			}
		}
	}
}

// costHeap is a binary heap of paths: by cost, then by bound, then by channel.
// (container/heap would allocate memory for each item.)
type costHeap []costItem

// costItem is a path that begins with a channel.
type costItem struct {
	cost    int64
	channel int32
	bound   int32 // of A*: the part of cost that is yet to come, in hops
}

func (a costItem) before(b costItem) bool {
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	if a.bound != b.bound {
		return a.bound < b.bound
	}
	return a.channel < b.channel
}

func (h *costHeap) push(x costItem) {
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

func (h *costHeap) pop() costItem {
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
