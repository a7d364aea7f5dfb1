package engine

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
		leaves := graph.Leaves(g)
		if leaves == nil {
			return nil, &Precondition{Reason: errors.New("no switch has a CA")}
		}
		r, err := upDownRoutes(ctx, g, graph.RanksFrom(g, leaves).Reverse(), o)
		return orCentre(ctx, g, r, err, o)
	},
}
