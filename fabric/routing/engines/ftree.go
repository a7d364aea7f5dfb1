package engines

import (
	"context"
	"fmt"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// ftree routes fat trees by d-mod-k: up by a digit of the destination's number
// among its class, then down (Zahavi, Johnson, Kerbyson, Lang, "Optimized
// InfiniBand fat-tree routing for shift all-to-all communication patterns", 2010;
// Zahavi, "Fat-trees routing and node ordering providing contention free traffic
// for MPI global collectives", 2012). On a whole tree, shifts of compute nodes in
// order meet no contention. With parts missing, only destinations that would use
// them take another path. Levels are distances from the switches with compute
// nodes, or from the roots given. Aggregation nodes may be on any level. Pairs
// without a path up and then down get a path that closes no credit loop; see treeRoutes.
//
// Time: O(D*S*(S + N)/64 + S*(C + L)); where paths are missing, that of
// complete in addition.
var ftree = Engine{
	Name:    "ftree",
	Doc:     "Fat trees: d-mod-k, also with parts missing. Shifts of compute nodes in order meet no contention.",
	OpenSM:  "ftree",
	Options: []Option{rootsOption, keepOption, cnOption, ioOption, adaptiveOption, portOrderOption},
	Acyclic: true,
	Repair:  KeepEntries,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		l := graph.FindLevels(g)
		if len(o.Roots) > 0 {
			l = graph.LevelsOf(g, graph.RanksFrom(g, o.Roots).Reverse().Rank)
		}
		if err := l.Check(); err != nil {
			return nil, &Precondition{Reason: err}
		}
		r, err := treeRoutes(ctx, g, l, &Options{Policy: DModK, Keep: o.Keep, Adaptive: o.Adaptive})
		if err != nil {
			return nil, err
		}
		if BasisOf(r).Missing > 0 {
			return nil, &Precondition{Reason: fmt.Errorf("too much of the tree is missing: %s", r.Notes[len(r.Notes)-1])}
		}
		return r, nil
	},
}
