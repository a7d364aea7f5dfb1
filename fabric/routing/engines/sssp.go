package engines

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
// on their links so far, counted over the whole network, and then each again, where that
// makes loads more even, spreads the flows of shifts, or lowers the largest load.
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
