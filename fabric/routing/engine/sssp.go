package engine

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// sssp is single-source shortest-path routing (Hoefler, Schneider, Lumsdaine,
// "Optimized routing for large-scale InfiniBand networks", 2009), as OpenSM's
// sssp: LID after LID gets those of the shortest paths that have the fewest routes
// on their links so far, counted over the whole network.
//
// Time: that of Hops, and O(S*C + L*(S + C)). There is no logarithmic factor: the
// next hops of all switches are known from Hops, so there is no need for
// Dijkstra's algorithm for each LID.
var sssp = Engine{
	Name:    "sssp",
	Doc:     "Shortest paths, balanced over the whole network. Credit loops are possible outside of fat trees.",
	OpenSM:  "sssp",
	Options: []Option{hopWeightsOption},
	Minimal: true,
	Repair:  KeepLIDs,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := routes.New(g, 0)
		return r, balanceLoad(ctx, r, h)
	},
}

// balanceLoad gives each LID in turn those of the paths that h allows with the fewest routes
// on their channels so far. The distances are known, so no queue is needed: it goes through
// the switches in the order of their distance, and of each only through the
// channels to next hops, which are the same for all LIDs on a switch.
func balanceLoad(ctx context.Context, r *routes.Routes, h *graph.Hops) error {
	g := r.Graph()
	load, endpoints := make([]int64, len(g.Channels())), g.Endpoints()
	cost, flow := make([]int64, len(g.Switches())), make([]int64, len(g.Switches()))
	var byDistance [graph.MaxDistance + 1][]int32
	type step struct{ s, first, last int32 } // channels next[first:last]
	var steps []step
	var next []int32
	via := make([]int32, len(g.Switches()))
	for d := range g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range byDistance {
			byDistance[i] = byDistance[i][:0]
		}
		for s := range g.Switches() {
			if x := h.Distance(s, d); x > 0 {
				byDistance[x] = append(byDistance[x], int32(s))
			}
		}
		steps, next = steps[:0], next[:0]
		for x, list := range byDistance {
			for _, s := range list {
				first := int32(len(next))
				for c := g.FirstChannel(int(s)); c < g.FirstChannel(int(s+1)); c++ {
					if to := int(g.ChannelTo(c)); h.Distance(to, d)+int(g.Channels()[c].Weight) == x && (h.Ranks() == nil || h.Agrees(int(s), to, d)) {
						next = append(next, c)
					}
				}
				steps = append(steps, step{s, first, int32(len(next))})
			}
		}
		for _, dest := range g.DestsOf(d) {
			r.Row(d)[dest.LID] = dest.Out
			cost[d] = 0
			for _, st := range steps {
				best, at := int64(-1), int32(-1)
				for _, c := range next[st.first:st.last] {
					if x := load[c] + cost[g.ChannelTo(c)]; best < 0 || x < best {
						best, at = x, c
					}
				}
				cost[st.s], via[st.s] = best, at
				r.Row(int(st.s))[dest.LID] = g.Channels()[at].Port
			}
			if dest.Out == 0 {
				continue // little traffic goes to a switch
			}
			copy(flow, endpoints)
			for i := len(steps) - 1; i >= 0; i-- {
				c := via[steps[i].s]
				load[c] += flow[steps[i].s]
				flow[g.ChannelTo(c)] += flow[steps[i].s]
			}
		}
	}
	return (&assigner{routes: r, h: h}).separate(ctx)
}

// SSSP gives each of lids (nil: all) in turn the cheapest paths, where channel c
// costs weight[c], and adds the number of these paths to the weights of their
// channels (Hoefler, Schneider, Lumsdaine, "Optimized routing for large-scale
// InfiniBand networks", 2009). So in the end the weights show how much each channel
// is used.
//
// Time: O(L*C*log C).
func SSSP(ctx context.Context, r *routes.Routes, weight []int64, lids []mad.LID) error {
	r.ForgetOrigin()
	r.CopyShared()
	g := r.Graph()
	if err := graph.CheckWeights(g, weight); err != nil {
		return fmt.Errorf("sssp: %w", err)
	}
	if lids == nil {
		lids = g.LIDs(0)
	}
	x := graph.NewCheapest(g)
	endpoints, flow := g.Endpoints(), make([]int64, len(g.Switches()))
	for _, lid := range lids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := g.TerminalByLID(lid)
		if i < 0 || g.Terminals()[i].Switch < 0 {
			return fmt.Errorf("sssp: no port on a switch has LID %d", lid)
		}
		t := &g.Terminals()[i]
		x.From(t.Switch, weight)
		for s := range g.Switches() {
			r.Row(s)[lid] = routes.NoPort
		}
		r.Row(t.Switch)[lid] = t.Out
		for _, s := range x.Done[1:] {
			r.Row(int(s))[lid] = g.Channels()[x.Via[s]].Port
		}
		if t.Out == 0 {
			continue
		}
		copy(flow, endpoints)
		for _, s := range slices.Backward(x.Done[1:]) {
			c := x.Via[s]
			weight[c] = min(weight[c]+flow[s], graph.MaxWeight)
			flow[g.ChannelTo(c)] += flow[s]
		}
	}
	return nil
}
