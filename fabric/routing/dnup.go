package routing

import (
	"context"
	"errors"
)

// dnup is up*/down* routing (see updn) where up is away from the switches with
// CAs, as OpenSM's dnup: it needs no roots, and suits networks whose top is not
// all at one level.
//
// Time: as updn.
var dnup = Engine{
	Name:    "dnup",
	Doc:     "Up*/down*, where up is away from the switches with CAs: no credit loops.",
	Options: []string{"policy", "scope", "seed", "keep"},
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		leaves := g.leaves()
		if leaves == nil {
			return nil, &Precondition{Reason: errors.New("no switch has a CA")}
		}
		r, err := g.upDownRoutes(ctx, g.Ranks(leaves).Reverse(), o)
		return g.orCentre(ctx, r, err, o)
	},
}
