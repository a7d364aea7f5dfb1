package engine

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/walk"
	"fabsh/mad"
)

// nue finds paths in the channel dependency graph (Domke, Hoefler, Matsuoka,
// "Routing on the dependency graph: a new approach to deadlock-free
// high-performance routing", 2016), as OpenSM's nue. In any network that is
// connected, LID after LID gets the shortest and least used paths that close no
// cycle with the dependencies of all LIDs before on its virtual lane, with detours
// where they must be. The turns of a spanning tree are always allowed (the escape
// paths), so no LID is left without a path. With several lanes, the LIDs of a switch
// are on the first on which their paths are shortest ones, or else as short as can be.
// Where paths up to a root and then down, from the centre, are shorter at the longest,
// or as short and the busiest link has fewer routes, these are taken. On a fat tree,
// paths go up and then down where all pairs have such a path, and on very large
// networks: see nueUpDown.
//
// Time: for each LID a search of O(C*log C), on each lane that is tried, and a cycle
// test for each dependency that is new. A test takes O(1) if the edge agrees with the
// topological order so far, which most do; else up to O(C + E) for E dependencies.
var nue = Engine{
	Name:        "nue",
	Doc:         "No credit loops on any topology, on one virtual lane or more, and all pairs reached.",
	OpenSM:      "nue",
	Lanes:       true,
	OpenSMNeeds: "nue_max_num_vls",
	Options:     []Option{rootsOption, maxVLsOption.by(nueVLs, ": with more, paths are shorter and more even")},
	Acyclic:     true,
	Repair:      Patch,
	compute:     computeNue,
}

// nueVLs is how many virtual lanes are used, if nothing else is said.
const nueVLs = 1

func computeNue(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
	root, ranks, err := search.EscapeRoot(ctx, g, o.Roots)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	var r *routes.Routes
	if graph.FindLevels(g).Check() == nil {
		r, err = nueUpDown(ctx, g, ranks, connected)
	}
	if r == nil && err == nil && len(g.Dests())*len(g.Channels()) > manySteps {
		if r, err = nueUpDown(ctx, g, graph.RanksFrom(g, []int{root}), connected); r != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("nue: paths go up to %s and then down: %d LIDs over %d channels are too many to search for others", g.Switches()[root].Label(), len(g.Dests()), len(g.Channels())))
		}
	}
	if r == nil && err == nil {
		if o.MaxVLs > lanes.Max {
			return nil, fmt.Errorf("nue: %d virtual lanes: a link has from 1 to %d for data", o.MaxVLs, lanes.Max)
		}
		if r, err = search.InLanes(ctx, g, root, ranks, connected, max(nueVLs, o.MaxVLs)); err == nil {
			r, err = orUpDown(ctx, r, root, connected)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, search.FillIn(ctx, r, nil, connected, nil)
}

// orUpDown is r, or, if they are better, tables whose paths go up to root and then down.
func orUpDown(ctx context.Context, r *routes.Routes, root int, connected *graph.Hops) (*routes.Routes, error) {
	g := r.Graph()
	if g.Weighted() {
		return r, nil // the weights determine which paths are better
	}
	longest, busiest, err := worst(ctx, r)
	if err != nil {
		return nil, err
	}
	u, err := nueUpDown(ctx, g, graph.RanksFrom(g, []int{root}), connected)
	if u == nil || err != nil {
		return r, err
	}
	switch far, busy, err := worst(ctx, u); {
	case err != nil:
		return nil, err
	case far < longest || far == longest && busy < busiest:
		return u, nil
	}
	return r, nil
}

// worst is how many links the longest path has, between switches with CAs, and how many
// routes the busiest link.
func worst(ctx context.Context, r *routes.Routes) (longest int32, busiest int64, err error) {
	e := walk.SelectEndpoints(r.Graph(), 0)
	most := make([]int32, r.Graph().Workers())
	load, err := walk.CountRoutes(ctx, r, e, func(worker int, w *walk.Walk, lid mad.LID) {
		for _, s := range e.Sources {
			most[worker] = max(most[worker], w.State[s])
		}
	})
	if err != nil {
		return 0, 0, err
	}
	return slices.Max(most), slices.Max(append(load, 0)), nil
}

// manySteps is the product of LIDs and channels above which searches of the dependency graph would
// take longer than 20 s.
const manySteps = 1 << 28

// nueUpDown is nue on a fat tree, perhaps with parts missing, where each pair of switches
// with CAs has a path up and then down: then no others are looked for, and no cycle
// test is needed. So it is on very large networks of other shapes. Nil: another shape, or
// not all pairs have such a path.
func nueUpDown(ctx context.Context, g *graph.Graph, ranks *graph.Ranks, connected *graph.Hops) (*routes.Routes, error) {
	h, err := graph.UpDown(ctx, g, ranks)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	r := routes.New(g, 0)
	if lack, _ := search.CountPairs(g, h, connected); lack > 0 {
		return nil, nil
	}
	if err := balanceLoad(ctx, r, h); err != nil {
		return nil, err
	}
	_, _, err = search.Complete(ctx, r, h, ranks, nil)
	return r, err
}
