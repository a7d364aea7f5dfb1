package route

import "context"

var minhop = Engine{
	Name: "minhop",
	Doc: `Shortest paths, evenly spread. Of equally short ways each switch takes the one
that fewest LIDs take; counted are only LIDs that packets come through it for.
On a fat tree that is d-mod-k. Credit loops are possible elsewhere.`,
	Heeds:   []string{"policy", "scope", "seed", "keep"},
	Minimal: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{"minhop", err}
		}
		h.place = g.levels().places()
		r := NewRoutes(g, 0)
		return r, r.Assign(ctx, h, AssignOptions{Policy: o.Policy, Scope: o.Scope, Seed: o.Seed, Keep: o.Keep})
	},
}
