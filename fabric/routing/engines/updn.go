package engines

import (
	"context"
	"fmt"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// updn is up*/down* routing (Schroeder et al., "Autonet: a high-speed,
// self-configuring local area network using point-to-point links", 1991), as
// OpenSM's updn: no path goes up after it went down, so the channels can be
// numbered along all paths, and no credit loop is possible. Up is towards the
// roots: those given, else the top of a fat tree, else the switches that OpenSM's
// histogram finds, else one switch. Pairs without such a path, as from one root to
// another where a cable is missing, get a path that closes no credit loop.
//
// Time: that of UpDown and Assign, O(D*S*(S + N)/64 + S*(D*S + C + L)); where paths
// are missing, that of search.Complete in addition.
var updn = Engine{
	Name:    "updn",
	Doc:     "Up*/down*, from the roots: no credit loops.",
	OpenSM:  "updn",
	Options: []Option{rootsOption, policyOption, scopeOption, seedOption, keepOption, cnOption, ioOption, adaptiveOption, hopWeightsOption, portOrderOption},
	Acyclic: true,
	Repair:  KeepEntries,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		l := graph.FindLevels(g)
		switch {
		case len(o.Roots) > 0:
			return byRoots(ctx, g, l, o.Roots, o)
		case l.Check() == nil:
			return treeRoutes(ctx, g, l, o)
		}
		roots, err := graph.FindRoots(ctx, g, "histogram")
		if err != nil {
			return orCentre(ctx, g, l, nil, nil, o)
		}
		r, err := byRoots(ctx, g, l, roots, o)
		return orCentre(ctx, g, l, r, err, o)
	},
}

// byRoots are the tables of up*/down* with the roots. l are the levels of g.
func byRoots(ctx context.Context, g *graph.Graph, l *graph.Levels, roots []int, o *Options) (*routes.Routes, error) {
	return byRanks(ctx, g, l, graph.RanksFrom(g, roots), o)
}

// byRanks are those under ranks.
func byRanks(ctx context.Context, g *graph.Graph, l *graph.Levels, ranks *graph.Ranks, o *Options) (*routes.Routes, error) {
	h, err := graph.UpDown(ctx, g, ranks)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	return upDownRoutes(ctx, g, l, h, o)
}

// upDownRoutes are those with distances h, completed.
func upDownRoutes(ctx context.Context, g *graph.Graph, l *graph.Levels, h *graph.Hops, o *Options) (*routes.Routes, error) {
	r, err := assigned(ctx, g, h, l, h.Ranks(), o)
	if err != nil {
		return nil, err
	}
	if o.Adaptive {
		if err := addChoices(ctx, r, h); err != nil {
			return nil, err
		}
	}
	return r, completed(ctx, r, h, h.Ranks(), o.Keep)
}

// orCentre is r if no path is missing in it, else up*/down* from one root, the
// centre: then all pairs have a path, up to the root and down.
func orCentre(ctx context.Context, g *graph.Graph, l *graph.Levels, r *routes.Routes, err error, o *Options) (*routes.Routes, error) {
	if err != nil || r != nil && BasisOf(r).Missing == 0 {
		return r, err
	}
	root, err := graph.Center(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	one, err := byRoots(ctx, g, l, root, o)
	if err != nil || r != nil && BasisOf(r).Missing <= BasisOf(one).Missing {
		return r, err
	}
	one.Notes = append(one.Notes, fmt.Sprintf("no top found that all go up to; the only root is the centre, %s", g.Switches()[root[0]].Label()))
	return one, nil
}
