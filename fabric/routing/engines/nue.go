package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// nue finds paths in the channel dependency graph (Domke, Hoefler, Matsuoka,
// "Routing on the dependency graph: a new approach to deadlock-free
// high-performance routing", 2016), as OpenSM's nue. In any network that is
// connected, LID after LID gets the shortest and least used paths that close no
// cycle with the dependencies of all LIDs before on its virtual lane, with detours
// where they are needed. The turns of a spanning tree are always allowed (the escape
// paths), so no LID is left without a path. With several lanes, the LIDs of a switch
// are on the first lane on which their paths are shortest paths, or else as short as
// possible; each lane has a tree of its own, from a root far from the others.
//
// Then each LID gets paths again, in the order of channels that was found, now that the load
// of all others is known.
//
// On one lane, two other ways give lower loads, and searches are left to networks that have neither: paths that
// go through one dimension of the network after the other, see byDimensions, or up and then down under orders of
// the switches that are looked for, see orderSearch. The most even of all tables are the result: see mostEven.
// Tables on one lane spread the flows of shifts, or separate the paths of the LIDs of a port: see finishTree. The
// network is numbered by graph.Canonical, so that loads hardly depend on GUIDs and ports. On a fat tree, paths go up
// and then down where all pairs have such a path, and so they do on very large networks: see nueUpDown.
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

// nueVLs is how many virtual lanes nue uses by default.
const nueVLs = 1

// computeNue computes the tables of nue.
func computeNue(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
	if graph.FindLevels(g).Check() != nil {
		return nueAnywhere(ctx, g, o)
	}
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	_, ranks, err := search.EscapeRoot(ctx, g, o.Roots)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	r, err := nueUpDown(ctx, g, ranks, connected)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nueAnywhere(ctx, g, o)
	}
	return r, search.FillIn(ctx, r, nil, connected, nil)
}

// nueAnywhere is nue where the network is no fat tree: on the network as graph.Canonical numbers it.
func nueAnywhere(ctx context.Context, given *graph.Graph, o *Options) (*routes.Routes, error) {
	if o.MaxVLs > lanes.Max {
		return nil, fmt.Errorf("nue: %d virtual lanes: a link has from 1 to %d for data", o.MaxVLs, lanes.Max)
	}
	g, err := graph.Canonical(ctx, given)
	if err != nil {
		return nil, err
	}
	var roots []int
	for _, s := range o.Roots {
		roots = append(roots, g.SwitchOf(given.Switches()[s]))
	}
	root, ranks, err := search.EscapeRoot(ctx, g, roots)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	var r *routes.Routes
	if len(g.Dests())*len(g.Channels()) > manySteps {
		up := graph.RanksFrom(g, []int{root})
		if len(roots) == 0 {
			leaf, err := leafRanks(ctx, g, connected, 1)
			if leaf == nil && err == nil {
				leaf, err = firstOrder(ctx, g, up)
			}
			if up = leaf; err != nil {
				return nil, err
			}
		}
		if r, err = nueUpDown(ctx, g, up, connected); r != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("nue: paths go up to %s and then down: %d LIDs over %d channels are too many to search for others", g.Switches()[slices.Index(up.Rank, 0)].Label(), len(g.Dests()), len(g.Channels())))
		}
	}
	if r == nil && err == nil {
		r, err = bestOfNue(ctx, g, root, ranks, connected, o)
	}
	if err != nil {
		return nil, err
	}
	if err := search.FillIn(ctx, r, nil, connected, nil); err != nil {
		return nil, err
	}
	notes := r.Notes
	r = r.On(given)
	r.Notes = notes
	return r, nil
}

// bestOfNue are the most even of tables by searches and of tables whose paths go up and then down. On one lane,
// no searches are needed where an order of the switches is found, or the network has dimensions: see evenTables; but
// they are made too if few orders could be tried, or if rates of links differ, which these do not consider.
// These are not looked for if roots are given, or if there are several lanes and many LIDs: then tables of one
// lane are not among the most even.
func bestOfNue(ctx context.Context, g *graph.Graph, root int, ranks *graph.Ranks, connected *graph.Hops, o *Options) (*routes.Routes, error) {
	vls := max(nueVLs, o.MaxVLs)
	if g.Weighted() { // the weights determine which paths are better
		list, err := search.InLanes(ctx, g, slices.Repeat([]int{root}, vls), ranks, connected)
		if err != nil {
			return nil, err
		}
		return list[0], nil
	}
	upDown, err := nueUpDown(ctx, g, graph.RanksFrom(g, []int{root}), connected)
	if err != nil {
		return nil, err
	}
	limit := int32(graph.MaxDistance)
	if upDown != nil {
		if limit, _, err = longestAndLoad(ctx, upDown); err != nil {
			return nil, err
		}
	}
	size := len(g.Dests()) * len(g.Channels())
	isSmall := size <= search.RefineSteps>>5
	var even, list []*routes.Routes
	if len(o.Roots) == 0 && size <= search.RefineSteps && (vls == 1 || isSmall) {
		if even, err = evenTables(ctx, g, connected); err != nil {
			return nil, err
		}
	}
	if vls > 1 || len(even) == 0 || orderTries(g) < 2*orderStarts || g.Capacity().Costs() != nil {
		if list, err = bySearches(ctx, g, root, ranks, connected, vls, isSmall); err != nil {
			return nil, err
		}
	}
	if upDown != nil {
		list = append(list, upDown)
	}
	best, err := mostEven(ctx, slices.Concat(list, even), limit)
	if err == nil && best.SL == nil && !slices.Contains(even, best) {
		err = finishTree(ctx, best)
	}
	return best, err
}

// bySearches are tables of search.InLanes on so many lanes: with one root and, on several lanes, with roots that
// are far from each other, on small networks from several first ones.
func bySearches(ctx context.Context, g *graph.Graph, root int, ranks *graph.Ranks, connected *graph.Hops, vls int, isSmall bool) ([]*routes.Routes, error) {
	var of [][]int // the roots of the lanes
	if vls == 1 || isSmall {
		of = append(of, slices.Repeat([]int{root}, vls))
	}
	if vls > 1 {
		starts := []int{root}
		if isSmall {
			starts = distantRoots(g, root, laneStarts)
		}
		for _, start := range starts {
			of = append(of, distantRoots(g, start, vls))
		}
	}
	found, failed := make([][]*routes.Routes, len(of)), make([]error, len(of))
	err := graph.Each(ctx, g.Workers(), len(of), func(_, i int) {
		up := ranks
		if of[i][0] != root {
			up = graph.RanksFrom(g, of[i][:1])
		}
		found[i], failed[i] = search.InLanes(ctx, g, of[i], up, connected)
	})
	return slices.Concat(found...), cmp.Or(err, errors.Join(failed...))
}

// laneStarts are the first roots of lanes that are tried on small networks.
const laneStarts = 3

// distantRoots are so many roots, each as far as can be from all before it: on the lane of a root,
// paths to switches near it need few detours.
func distantRoots(g *graph.Graph, root, n int) []int {
	roots := []int{root}
	for len(roots) < n {
		distance := graph.DistancesFrom(g, roots)
		roots = append(roots, slices.Index(distance, slices.Max(distance)))
	}
	return roots
}

// loadSlack is how much more load than the least the busiest link may have, if loads are more even
// in total.
const loadSlack = 1.05

// mostEven are the tables of list with the least sum of the squares of loads, per capacity, among the tables
// whose busiest link has at most loadSlack times the least load, and whose longest path has
// at most half as many links again as limit.
func mostEven(ctx context.Context, list []*routes.Routes, limit int32) (*routes.Routes, error) {
	type measure struct {
		r       *routes.Routes
		busiest int64
		squares float64
	}
	var all []measure
	least := int64(math.MaxInt64)
	for _, r := range list {
		longest, load, err := longestAndLoad(ctx, r)
		if err != nil {
			return nil, err
		}
		if longest > limit+limit/2 {
			continue
		}
		load = r.Graph().Capacity().Weigh(load)
		m := measure{r: r, busiest: slices.Max(append(load, 0))}
		for _, x := range load {
			m.squares += float64(x) * float64(x)
		}
		all = append(all, m)
		least = min(least, m.busiest)
	}
	var best measure
	for _, m := range all {
		if float64(m.busiest) <= loadSlack*float64(least) && (best.r == nil || m.squares < best.squares) {
			best = m
		}
	}
	return best.r, nil
}

// evenTables are tables on one lane whose loads are even: of paths that go through one dimension after the other, if
// the network has dimensions; else, and if ports have several LIDs or dimensions are irregular, of paths up and down
// under orders of the switches that are looked for.
func evenTables(ctx context.Context, g *graph.Graph, connected *graph.Hops) ([]*routes.Routes, error) {
	list, regular, err := byDimensions(ctx, g, connected)
	if err != nil {
		return nil, err
	}
	if list != nil {
		if list[0], err = mostEven(ctx, list, graph.MaxDistance); err != nil {
			return nil, err
		}
		if list = list[:1]; regular && !hasLMC(g) {
			return list, finishTree(ctx, list[0])
		}
	}
	orders, err := findOrders(ctx, g)
	if err != nil {
		return nil, err
	}
	if leaf, err := leafRanks(ctx, g, connected, leavesTried); err != nil {
		return nil, err
	} else if leaf != nil {
		orders = append(orders, leaf)
	}
	found, failed := make([]*routes.Routes, len(list)+len(orders)), make([]error, len(list)+len(orders))
	err = graph.Each(ctx, g.Workers(), len(found), func(_, i int) {
		if i < len(list) {
			found[i] = list[i]
		} else {
			found[i], failed[i] = nueUpDown(ctx, g, orders[i-len(list)], connected)
		}
		if found[i] != nil {
			failed[i] = finishTree(ctx, found[i])
		}
	})
	return slices.DeleteFunc(found, func(r *routes.Routes) bool { return r == nil }), cmp.Or(err, errors.Join(failed...))
}

// leafRanks are the distances from a leaf of a tree in which some pairs have no path up to a top and then down, as
// where aggregation nodes are on switches of all levels: see treeRoutes. So many leaves are tried. nil: the network is no such tree.
func leafRanks(ctx context.Context, g *graph.Graph, connected *graph.Hops, most int) (*graph.Ranks, error) {
	l := graph.FindLevels(g)
	if l.Check() != nil {
		return nil, nil
	}
	leaves := leavesOf(l)
	leaf, err := rootLeaf(ctx, g, leaves, connected, nil, most, 1)
	if leaf < 0 || err != nil {
		return nil, err
	}
	return graph.RanksFrom(g, oneInEach(leaf, leaves, connected)), nil
}

// finishTree gives tables on one lane other paths, which are not longer: if ports have several LIDs, the paths to the
// LIDs of a port share fewer links, else the flows of shifts are spread.
func finishTree(ctx context.Context, r *routes.Routes) error {
	if hasLMC(r.Graph()) {
		return separateTrees(ctx, r)
	}
	return spreadShiftsOf(ctx, r)
}

// byDimensions are tables whose paths go through one dimension of the network after the other, in each up and
// then down, as in dimension-order routing (Dally, Seitz, "Deadlock-free message routing in multiprocessor
// interconnection networks", 1987). None: the network has no dimensions. regular: for none of them an order was
// looked for.
func byDimensions(ctx context.Context, g *graph.Graph, connected *graph.Hops) (list []*routes.Routes, regular bool, err error) {
	factors, err := graph.FindFactors(ctx, g, connected)
	if factors == nil || err != nil {
		return nil, false, err
	}
	regular = true
	position, next := make([]int32, len(g.Channels())), int32(0)
	for _, f := range factors {
		ranks, searched, err := findOrderWithin(ctx, g, f)
		if err != nil {
			return nil, false, err
		}
		regular = regular && !searched
		at := make([]int32, len(position))
		for c, i := range verify.UpDownOrder(g, ranks) {
			at[i] = int32(c)
		}
		for _, c := range at {
			if f.Has[c] {
				position[c] = next
				next++
			}
		}
	}
	list, err = search.InOrder(ctx, g, position, connected)
	return list, regular, err
}

// longestAndLoad is how many links the longest path has, between switches with CAs, and the routes of
// each channel.
func longestAndLoad(ctx context.Context, r *routes.Routes) (longest int32, load []int64, err error) {
	e := verify.SelectEndpoints(r.Graph(), 0)
	most := make([]int32, r.Graph().Workers())
	load, err = verify.CountRoutes(ctx, r, e, func(worker int, w *verify.Walk, lid mad.LID) {
		for _, s := range e.Sources {
			most[worker] = max(most[worker], w.State[s])
		}
	})
	return slices.Max(most), load, err
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
