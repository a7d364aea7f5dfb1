package routing

import (
	"context"
	"fmt"
	"slices"

	"fabsh/mad"
)

var sssp = Engine{
	Name: "sssp",
	Doc: `Shortest paths, balanced over the whole network: to each LID in turn those with
the fewest routes on their links so far (Hoefler, Schneider, Lumsdaine,
"Optimized routing for large-scale InfiniBand networks", 2009). Credit loops are
possible outside of fat trees.`,
	Minimal: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{"sssp", err}
		}
		r := NewRoutes(g, 0)
		return r, r.balance(ctx, h)
	},
}

// balance gives each LID the least used of the shortest paths. They are found
// without a queue: switches in the order of their distance, and of each only
// the links that lead nearer, which are the same for all LIDs of a switch.
func (r *Routes) balance(ctx context.Context, h *Hops) error {
	g := r.graph
	load, on := make([]int64, len(g.channels)), g.endpointsOn()
	cost, flow := make([]int64, len(g.switches)), make([]int64, len(g.switches))
	var byDistance [maxDistance + 1][]int32
	type step struct{ s, first, last int32 } // channels nearer[first:last]
	var steps []step
	var nearer []int32
	via := make([]int32, len(g.switches))
	for d := range g.switches {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range byDistance {
			byDistance[i] = byDistance[i][:0]
		}
		for s := range g.switches {
			if x := h.Distance(s, d); x > 0 {
				byDistance[x] = append(byDistance[x], int32(s))
			}
		}
		steps, nearer = steps[:0], nearer[:0]
		for x, list := range byDistance {
			for _, s := range list {
				first := int32(len(nearer))
				for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
					if h.Distance(int(g.chanTo[c]), d)+int(g.channels[c].Weight) == x {
						nearer = append(nearer, c)
					}
				}
				steps = append(steps, step{s, first, int32(len(nearer))})
			}
		}
		for _, dest := range g.destsOf(d) {
			r.Row(d)[dest.lid] = dest.out
			cost[d] = 0
			for _, st := range steps {
				best, at := int64(-1), int32(-1)
				for _, c := range nearer[st.first:st.last] {
					if x := load[c] + cost[g.chanTo[c]]; best < 0 || x < best {
						best, at = x, c
					}
				}
				cost[st.s], via[st.s] = best, at
				r.Row(int(st.s))[dest.lid] = g.channels[at].Port
			}
			if dest.out == 0 {
				continue // nobody sends much to a switch
			}
			copy(flow, on)
			for i := len(steps) - 1; i >= 0; i-- {
				c := via[steps[i].s]
				load[c] += flow[steps[i].s]
				flow[g.chanTo[c]] += flow[steps[i].s]
			}
		}
	}
	return nil
}

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

// SSSP gives each of lids (nil: all) in turn the cheapest paths, where channel c
// costs weight[c], and then adds to that the routes that these are. So the
// weights that are left say how much each channel is used.
func (r *Routes) SSSP(ctx context.Context, weight []int64, lids []mad.LID) error {
	g := r.graph
	if err := g.checkWeights(weight); err != nil {
		return fmt.Errorf("sssp: %w", err)
	}
	if lids == nil {
		lids = g.LIDs(0)
	}
	x := dijkstra{g: g}
	on, flow := g.endpointsOn(), make([]int64, len(g.switches))
	for _, lid := range lids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := g.TerminalByLID(lid)
		if i < 0 || g.terminals[i].Switch < 0 {
			return fmt.Errorf("sssp: no port on a switch has LID %d", lid)
		}
		t := &g.terminals[i]
		x.from(t.Switch, weight)
		for s := range g.switches {
			r.Row(s)[lid] = NoPort
		}
		r.Row(t.Switch)[lid] = t.Out
		for _, s := range x.done[1:] {
			r.Row(int(s))[lid] = g.channels[x.via[s]].Port
		}
		if t.Out == 0 {
			continue
		}
		copy(flow, on)
		for _, s := range slices.Backward(x.done[1:]) {
			c := x.via[s]
			weight[c] = min(weight[c]+flow[s], hopCost)
			flow[g.chanTo[c]] += flow[s]
		}
	}
	return nil
}
