package routing

import "fmt"

// Dijkstra finds the cheapest way from all switches to switch d, where channel c
// costs weight[c], at least 0: how much it costs, and the channel it begins with,
// which is the lowest of equal ones. -1: none, or d itself.
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

// dijkstra is his algorithm, and its scratch.
type dijkstra struct {
	g     *Graph
	cost  []int64
	via   []int32
	done  []int32 // switches, nearest first
	queue costHeap
}

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
		// What settled last offers its ways; then the cheapest is settled.
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
