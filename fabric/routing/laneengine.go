package routing

import (
	"context"
	"errors"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

// dfsssp is deadlock-free single-source shortest-path routing (Domke, Hoefler, Nagel,
// "Deadlock-free oblivious routing for arbitrary topologies", 2011), as OpenSM's
// dfsssp: the tables of sssp, and virtual lanes by Layer.
//
// Time: those of sssp and Layer.
var dfsssp = Engine{
	Name:    "dfsssp",
	Doc:     "Shortest paths, balanced over the whole network, on virtual lanes without credit loops.",
	OpenSM:  "dfsssp",
	Lanes:   true,
	Options: []Option{maxVLsOption},
	Minimal: true,
	Acyclic: true,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		r, err := sssp.compute(ctx, g, o)
		if err != nil {
			return nil, err
		}
		return inLanes(ctx, r, &lanes.Layering{}, o)
	},
}

// lash is layered shortest-path routing (Skeie, Lysne, Theiss, "Layered shortest path
// (LASH) routing in irregular system area networks", 2002), as OpenSM's lash: one
// shortest path from switch to switch, by the lowest port, so that it is dimension
// order where ports have that order; and the path there and that back on the same
// lane, so that an answer can have the service level of its question. LIDs are spread
// over parallel links, which count as one. In a torus of long rings that needs more
// lanes than there are: then see byDatelines.
//
// Time: those of Hops, Assign and Layer.
var lash = Engine{
	Name:    "lash",
	Doc:     "One shortest path from switch to switch, on virtual lanes without credit loops.",
	OpenSM:  "lash",
	Lanes:   true,
	Options: []Option{maxVLsOption},
	Minimal: true,
	Acyclic: true,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := routes.New(g, 0)
		if err := Assign(ctx, r, h, AssignOptions{Policy: First}); err != nil {
			return nil, err
		}
		r, err = inLanes(ctx, r, &lanes.Layering{Both: true, Class: graph.FirstParallel(g)}, o)
		if errors.As(err, new(*TooFewLanes)) {
			if t := byDatelines(ctx, g, o.MaxVLs); t != nil {
				return t, nil
			}
		}
		return r, err
	},
}

// inLanes is r with the lanes of a layering. That they do not suffice is a condition
// that does not hold.
func inLanes(ctx context.Context, r *routes.Routes, l *lanes.Layering, o *Options) (*routes.Routes, error) {
	err := layer(ctx, r, l, o.MaxVLs)
	if few := new(TooFewLanes); errors.As(err, &few) {
		return nil, &Precondition{Reason: err}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// dragonfly routes dragonflies by the way with the fewest links between groups, one
// where there is a direct one, balanced over the whole network (Kim, Dally, Scott, Abts,
// "Technology-driven, highly-scalable dragonfly topology", 2008; Shpiner et al.,
// "Dragonfly+: low cost topology for scaling datacenters", 2017). Packets that came over
// such a link go on by the next virtual lane, which the SL2VL tables know by the port,
// so paths need no service levels. Where links are missing, and paths cross more groups,
// they may: see Layer.
//
// Time: those of Hops, with weights, sssp and Layer.
var dragonfly = Engine{
	Name:    "dragonfly",
	Doc:     "Dragonfly and dragonfly+: over one link between groups where there is one, and then by the next virtual lane.",
	Lanes:   true,
	Options: []Option{maxVLsOption},
	Acyclic: true,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		groups, err := network(g).Dragonfly(g.Endpoints())
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		shift := make([]uint8, len(g.Channels()))
		for c, global := range groups.Global {
			shift[c] = btou(global)
		}
		// Two links between groups cost more than one, and one within each.
		const between = 3
		far := g.Heavier(func(c int) uint8 { return shift[c] * between })
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
		return inLanes(ctx, r, &lanes.Layering{Shift: shift}, o)
	},
}

func btou(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
