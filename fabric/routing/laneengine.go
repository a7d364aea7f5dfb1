package routing

import (
	"context"
	"errors"

	"fabsh/fabric/routing/lanes"
)

// dfsssp is deadlock-free single-source shortest-path routing (Domke, Hoefler, Nagel,
// "Deadlock-free oblivious routing for arbitrary topologies", 2011), as OpenSM's
// dfsssp: the tables of sssp, and virtual lanes by Layer.
//
// Time: those of sssp and Layer.
var dfsssp = Engine{
	Name:    "dfsssp",
	Doc:     "Shortest paths, balanced over the whole network, on virtual lanes without credit loops.",
	Options: []string{"max_vls"},
	Minimal: true,
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := NewRoutes(g, 0)
		if err := r.balance(ctx, h); err != nil {
			return nil, err
		}
		return r.inLanes(ctx, &lanes.Layering{}, o)
	},
}

// lash is layered shortest-path routing (Skeie, Lysne, Theiss, "Layered shortest path
// (LASH) routing in irregular system area networks", 2002), as OpenSM's lash: one
// shortest path from switch to switch, by the lowest port, so that it is dimension
// order where ports have that order; and the path there and that back on the same
// lane, so that an answer can have the service level of its question. LIDs are spread
// over parallel links, which count as one.
//
// Time: those of Hops, Assign and Layer.
var lash = Engine{
	Name:    "lash",
	Doc:     "One shortest path from switch to switch, on virtual lanes without credit loops.",
	Options: []string{"max_vls"},
	Minimal: true,
	Acyclic: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := NewRoutes(g, 0)
		if err := r.Assign(ctx, h, AssignOptions{Policy: First}); err != nil {
			return nil, err
		}
		return r.inLanes(ctx, &lanes.Layering{Both: true, Class: g.parallel()}, o)
	},
}

// inLanes is r with the lanes of a layering. That they do not suffice is a condition
// that does not hold.
func (r *Routes) inLanes(ctx context.Context, l *lanes.Layering, o *Options) (*Routes, error) {
	err := r.layer(ctx, l, o.MaxVLs)
	if few := new(TooFewLanes); errors.As(err, &few) {
		return nil, &Precondition{Reason: err}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// parallel has for each channel the first of those to the same switch.
func (g *Graph) parallel() []int32 {
	first := make([]int32, len(g.channels))
	to := make([]int32, len(g.switches))
	for s := range g.switches {
		for c := g.chanBase[s+1] - 1; c >= g.chanBase[s]; c-- {
			to[g.chanTo[c]] = c
		}
		for c := g.chanBase[s]; c < g.chanBase[s+1]; c++ {
			first[c] = to[g.chanTo[c]]
		}
	}
	return first
}
