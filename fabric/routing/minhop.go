package routing

import "context"

var minhop = Engine{
	Name: "minhop",
	Doc: `Shortest paths, evenly spread. On fat trees by a digit of the destination's
number (d-mod-k); elsewhere each switch takes the one of equally short ways that
fewest LIDs take, of those that packets come through it for. Credit loops are
possible, though not on fat trees with little missing.`,
	Heeds:   []string{"policy", "scope", "seed", "keep"},
	Minimal: true,
	compute: func(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
		h, err := g.Hops(ctx)
		if err != nil {
			return nil, &Precondition{"minhop", err}
		}
		l := g.levels()
		h.place = l.places()
		r := NewRoutes(g, 0)
		return r, r.Assign(ctx, h, o.assign(l))
	},
}
