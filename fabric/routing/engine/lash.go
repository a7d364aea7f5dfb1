package engine

import (
	"context"
	"errors"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
)

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

// byDatelines are the paths of lash in a whole torus of long rings, where Layer finds no
// lanes: in dimension order, with a lane for each set of datelines that paths cross. That
// closes no ring: a path that crosses a dateline does not get past the point opposite.
// Half way round, the path back is the path there, so it crosses the same ones. nil: this
// is not a whole torus, or max lanes are not enough.
//
// Time: O(S*L).
func byDatelines(ctx context.Context, g *graph.Graph, max int) *routes.Routes {
	if g.Weighted() {
		return nil
	}
	t, err := network(g).Torus(ctx)
	if err != nil {
		return nil
	}
	need := 1
	var lane [1 << lanes.MaxDims]uint8 // by level
	for d := range t.Dims {
		if t.Dateline(d) {
			for level := range lane {
				lane[level] |= uint8(need) * uint8(level>>d&1)
			}
			need *= 2
		}
	}
	if max == 0 {
		max = DefaultLanes
	}
	if switches, links := t.Missing(); switches+links > 0 || need > max {
		return nil
	}
	t.Mirror = true
	r, from, _, err := alongDimensions(ctx, g, t, t.Routes(t.Orders()[0]))
	if err != nil || from >= 0 {
		return nil
	}
	r.SL2VL = routes.NewSL2VL(g)
	if setLevels(ctx, r, func(s, d int) uint8 { return lane[t.Level(int32(s), int32(d))] }) != nil {
		return nil
	}
	return r
}
