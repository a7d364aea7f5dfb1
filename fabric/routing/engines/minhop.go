package engines

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// minhop routes along shortest paths, as OpenSM's minhop does: all distances by
// breadth-first search, then for each switch and LID one of the next hops. On a
// fat tree the choice is d-mod-k (see ftree). Elsewhere it is the port with the
// fewest LIDs, counted by the scope.
//
// Time: the time of AllHops and Assign, O(D*S*(S + N)/64 + S*(D*S + C + L)).
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
		r, err := assignedTables(ctx, g, h, graph.FindLevels(g), nil, o)
		if err != nil || !o.Adaptive {
			return r, err
		}
		if err := addChoices(ctx, r, h); err != nil {
			return nil, err
		}
		return r, checkChoices(ctx, r)
	},
}

// dor is dimension-order routing, as OpenSM's dor does it: of the shortest paths
// the one by the lowest port, or by the first port in the port order given.
// Where the ports of a dimension come in one order on all switches, that routes
// dimension after dimension, which has no credit loop on meshes,
// hypercubes and HyperX; on tori it has, on one virtual lane (Dally and Seitz,
// "Deadlock-free message routing in multiprocessor interconnection networks",
// 1987). As the engine does not know the dimensions, it does not promise that.
// The LIDs are spread over parallel links.
//
// Time: the time of AllHops and Assign, O(D*S*(S + N)/64 + S*(C + L)).
var dor = Engine{
	Name:    "dor",
	Doc:     "Dimension order: the lowest port of the shortest paths. For meshes, hypercubes and HyperX.",
	OpenSM:  "dor",
	Options: []Option{keepOption, adaptiveOption, portOrderOption},
	Minimal: true,
	Repair:  KeepEntries,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := routes.New(g, 0)
		if err := Assign(ctx, r, h, AssignOptions{Policy: First, Keep: o.Keep}); err != nil || !o.Adaptive {
			return r, err
		}
		return r, addParallel(ctx, r)
	},
}
