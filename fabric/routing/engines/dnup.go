package engines

import (
	"context"
	"errors"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// dnup is up*/down* routing (see updn) where up is away from the switches with
// CAs, as OpenSM's dnup: it needs no roots, and suits networks whose top is not
// all at one level.
//
// Time: as updn.
var dnup = Engine{
	Name:    "dnup",
	Doc:     "Up*/down*, where up is away from the switches with CAs: no credit loops.",
	OpenSM:  "dnup",
	Options: []Option{policyOption, scopeOption, seedOption, keepOption, cnOption, ioOption, hopWeightsOption, portOrderOption},
	Acyclic: true,
	Repair:  KeepEntries,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		l := graph.FindLevels(g)
		switch {
		case l.Height == 0:
			return nil, &Precondition{Reason: errors.New("no switch has a CA")}
		case l.Check() == nil:
			return treeRoutes(ctx, g, l, o)
		}
		r, err := byRanks(ctx, g, l, l.Ranks(), o)
		return orCentre(ctx, g, l, r, err, o)
	},
}
