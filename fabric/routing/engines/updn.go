package engines

import (
	"context"
	"errors"
	"fmt"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
)

// updn is up*/down* routing (Schroeder et al., "Autonet: a high-speed,
// self-configuring local area network using point-to-point links", 1991), as
// OpenSM's updn: no path goes up after it went down, so the channels can be
// numbered along all paths, and no credit loop is possible. Up is towards the
// roots: the given roots, else the top of a fat tree, else the switches that OpenSM's
// histogram finds, else one switch. Pairs without such a path, as from one root to
// another where a cable is missing, get a path that closes no credit loop.
//
// Time: the time of UpDown and Assign, O(D*S*(S + N)/64 + S*(D*S + C + L)); where paths
// are missing, the time of search.Complete in addition.
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

// byRanks are the tables of up*/down* under ranks.
func byRanks(ctx context.Context, g *graph.Graph, l *graph.Levels, ranks *graph.Ranks, o *Options) (*routes.Routes, error) {
	h, err := graph.UpDown(ctx, g, ranks)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	return upDownRoutes(ctx, g, l, h, o)
}

// upDownRoutes are the tables of up*/down* with distances h, completed.
func upDownRoutes(ctx context.Context, g *graph.Graph, l *graph.Levels, h *graph.Hops, o *Options) (*routes.Routes, error) {
	r, err := assignedTables(ctx, g, h, l, h.Ranks(), o)
	if err != nil {
		return nil, err
	}
	if o.Adaptive {
		if err := addChoices(ctx, r, h); err != nil {
			return nil, err
		}
	}
	return r, completePaths(ctx, r, h, h.Ranks(), o.Keep)
}

// orCentre is r if no path is missing in it, else up*/down* from the tops of planes, or from one root, the
// centre: then all pairs have a path, up to the root and down.
func orCentre(ctx context.Context, g *graph.Graph, l *graph.Levels, r *routes.Routes, err error, o *Options) (*routes.Routes, error) {
	if err != nil || r != nil && BasisOf(r).Missing == 0 {
		return r, err
	}
	tops, err := planeTops(ctx, g)
	if err != nil {
		return nil, err
	}
	if len(tops) > 0 {
		planes, err := byRoots(ctx, g, l, tops, o)
		if err != nil {
			return nil, err
		}
		if BasisOf(planes).Missing == 0 {
			planes.Notes = append(planes.Notes, fmt.Sprintf("no top found that all go up to; the roots are the %d tops of all planes", len(tops)))
			return planes, nil
		}
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

// completePaths adds to r, tables of up*/down* under ranks, the paths that are missing, and
// notes that in its basis.
func completePaths(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes) error {
	if g := r.Graph(); len(g.Dests()) > manyLIDs && !reachesAll(g, h) {
		connected, err := graph.AllHops(ctx, g)
		if err != nil {
			return err
		}
		if lack, all := search.CountPairs(g, h, connected); lack*search.MaxLack > all {
			r.Notes = append(r.Notes, fmt.Sprintf("%d of %d pairs of switches with CAs have no path that goes up and then down", lack, all))
			AddGaps(r, lack)
			return nil
		}
	}
	gaps, missing, err := search.Complete(ctx, r, h, ranks, keep)
	if gaps {
		AddGaps(r, missing)
	}
	return err
}

// manyLIDs is from how many LIDs on no paths are added to tables that lack many: an engine that has
// another way is faster.
const manyLIDs = 2000
