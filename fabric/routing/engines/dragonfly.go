package engines

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// dragonfly routes dragonflies by the path with the fewest links between groups, one
// where there is a direct one, balanced over the whole network (Kim, Dally, Scott, Abts,
// "Technology-driven, highly-scalable dragonfly topology", 2008; Shpiner et al.,
// "Dragonfly+: low cost topology for scaling datacenters", 2017). Packets that came over
// such a link go on by the next virtual lane, which the SL2VL tables know by the port,
// so paths need no service levels. Where links are missing, and paths cross more groups,
// they may: see Layer.
//
// Time: the times of AllHops with weights, of sssp and of Layer.
var dragonfly = Engine{
	Name:    "dragonfly",
	Doc:     "Dragonfly and dragonfly+: over a single link between groups where one exists, then on the next virtual lane.",
	Lanes:   true,
	Options: []Option{maxVLsOption, effortOption},
	Acyclic: true,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		shift, err := globalLinks(g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		far := heavier(g, shift)
		h, err := graph.AllHops(ctx, far)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := routes.New(far, 0)
		if err := balanceLoad(ctx, r, h); err != nil {
			return nil, err
		}
		r = r.SeenOn(g)
		if err := layer(ctx, r, &lanes.Layering{}, 1); err == nil || ctx.Err() != nil {
			return r, err // one lane is enough, as in a dragonfly+
		}
		return withLanes(ctx, r, &lanes.Layering{Shift: shift}, o)
	},
}

// heavier is g with links between groups, for which shift is 1, that cost more: two of them more than one,
// and one within each group.
func heavier(g *graph.Graph, shift []uint8) *graph.Graph {
	const between = 3
	return g.Heavier(func(c int) uint8 { return shift[c] * between })
}

// globalLinks is 1 for channels between groups, and 0 for others.
func globalLinks(g *graph.Graph) ([]uint8, error) {
	groups, err := laneNetwork(g).Dragonfly(g.Endpoints())
	if err != nil {
		return nil, err
	}
	shift := make([]uint8, len(g.Channels()))
	for c, global := range groups.Global {
		shift[c] = btou(global)
	}
	return shift, nil
}

func btou(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
