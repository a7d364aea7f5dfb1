package engine

import (
	"context"

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
