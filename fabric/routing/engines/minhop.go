package engines

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// minhop routes along shortest paths, as OpenSM's minhop does: all distances by
// breadth-first search, then for each switch and LID one of the next hops. On a
// fat tree the choice is d-mod-k (see ftree). Elsewhere it is the port with the
// fewest LIDs, counted as the scope says.
//
// Time: that of Hops and Assign, O(D*S*(S + N)/64 + S*(D*S + C + L)).
var minhop = Engine{
	Name:    "minhop",
	Doc:     "Shortest paths, evenly spread. On a fat tree that is d-mod-k; elsewhere credit loops are possible.",
	OpenSM:  "minhop",
	Options: []Option{policyOption, scopeOption, seedOption, keepOption, cnOption, ioOption, adaptiveOption, hopWeightsOption, portOrderOption},
	Minimal: true,
	Repair:  KeepEntries,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r, err := assigned(ctx, g, h, graph.FindLevels(g), nil, o)
		if err != nil || !o.Adaptive {
			return r, err
		}
		if err := addChoices(ctx, r, h); err != nil {
			return nil, err
		}
		return r, checkChoices(ctx, r)
	},
}
