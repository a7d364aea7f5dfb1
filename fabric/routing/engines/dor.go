package engines

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// dor is dimension-order routing, as OpenSM's dor does it: of the shortest paths
// the one by the lowest port, or by the first port in the port order given.
// Where the ports of a dimension come in the same order on all switches, that
// routes dimension after dimension, which has no credit loop on meshes,
// hypercubes and HyperX; on tori it has, on one virtual lane (Dally and Seitz,
// "Deadlock-free message routing in multiprocessor interconnection networks",
// 1987). As the engine does not know the dimensions, it does not promise that.
// The LIDs are spread over parallel links.
//
// Time: that of Hops and Assign, O(D*S*(S + N)/64 + S*(C + L)).
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
