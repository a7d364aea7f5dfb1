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
// of all others is known. All this is repeated from other roots, on several lanes only where it
// takes little time, and from orders of the switches that are looked for, see orderSearch, and compared
// with tables whose paths go up to a root and then down; the most even tables are the result: see mostEven. Tables on one lane then spread the flows of shifts: see
// spreadShiftsOf. On a fat tree, paths go up and then down where all pairs have such a path, and so
// they do on very large networks: see nueUpDown.
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
		r, err = bestOfNue(ctx, g, root, ranks, connected, o)
	}
	if err != nil {
		return nil, err
	}
	return r, search.FillIn(ctx, r, nil, connected, nil)
}

// bestOfNue are the most even of tables by searches and of tables whose paths go up to a root
// and then down. Other roots than root are tried unless some are given, or there are several lanes
// and many LIDs: then tables of one lane are not among the most even.
func bestOfNue(ctx context.Context, g *graph.Graph, root int, ranks *graph.Ranks, connected *graph.Hops, o *Options) (*routes.Routes, error) {
	vls := max(nueVLs, o.MaxVLs)
	if g.Weighted() { // the weights determine which paths are better
		list, err := search.InLanes(ctx, g, slices.Repeat([]int{root}, vls), ranks, connected)
		if err != nil {
			return nil, err
		}
		return list[0], nil
	}
	var inLanes, distant, others []*routes.Routes
	limit := int32(graph.MaxDistance)
	size := len(g.Dests()) * len(g.Channels())
	isSmall := size <= search.RefineSteps>>5
	runs := []func() error{
		func() (err error) {
			if vls == 1 || isSmall {
				inLanes, err = search.InLanes(ctx, g, slices.Repeat([]int{root}, vls), ranks, connected)
			}
			return err
		},
		func() (err error) {
			if vls > 1 {
				distant, err = search.InLanes(ctx, g, distantRoots(g, root, vls), ranks, connected)
			}
			return err
		},
		func() error {
			u, err := nueUpDown(ctx, g, graph.RanksFrom(g, []int{root}), connected)
			if err != nil {
				return err
			}
			if u != nil {
				if limit, _, err = longestAndLoad(ctx, u); err != nil {
					return err
				}
				others = append(others, u)
			}
			if len(o.Roots) == 0 && size <= search.RefineSteps && (vls == 1 || isSmall) {
				more, err := byOtherRoots(ctx, g, root, connected, vls == 1, isSmall)
				if err != nil {
					return err
				}
				others = append(others, more...)
			}
			return nil
		},
	}
	if err := runAll(ctx, g, runs); err != nil {
		return nil, err
	}
	best, err := mostEven(ctx, slices.Concat(inLanes, distant, others), limit)
	if err == nil && best.SL == nil {
		err = spreadShiftsOf(ctx, best)
	}
	return best, err
}

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

// runAll calls all of runs, as many at once as there are workers. They may use all workers, too:
// some end before others.
func runAll(ctx context.Context, g *graph.Graph, runs []func() error) error {
	failed := make([]error, len(runs))
	err := graph.Each(ctx, g.Workers(), len(runs), func(_, i int) { failed[i] = runs[i]() })
	return cmp.Or(err, errors.Join(failed...))
}

// loadSlack is how much more load than the least the busiest link may have, if loads are more even
// in total.
const loadSlack = 1.05

// mostEven are the tables of list with the least sum of the squares of loads, among the tables
// whose busiest link has at most loadSlack times the fewest routes, and whose longest path has
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

// Of rootsTried other roots, tables are made of the rootsTaken whose paths up and down have the
// least load at first sight.
const (
	rootsTried = 24
	rootsTaken = 3
)

// byOtherRoots are tables of other roots than root: of paths up and down. If only one lane is allowed, they
// are also of orders of the switches, and, on small networks, by searches.
func byOtherRoots(ctx context.Context, g *graph.Graph, root int, connected *graph.Hops, oneLane, isSmall bool) (list []*routes.Routes, err error) {
	roots, err := evenRoots(ctx, g, root, connected)
	if err != nil {
		return nil, err
	}
	var ranks []*graph.Ranks
	for i := range roots {
		ranks = append(ranks, graph.RanksFrom(g, roots[i:i+1]))
	}
	var more []*graph.Ranks
	if oneLane {
		if more, err = findOrders(ctx, g); err != nil {
			return nil, err
		}
	}
	for _, r := range more {
		if r != nil {
			roots, ranks = append(roots, slices.Index(r.Rank, 0)), append(ranks, r)
		}
	}
	found, failed := make([][]*routes.Routes, len(roots)), make([]error, len(roots))
	err = graph.Each(ctx, g.Workers(), len(roots), func(_, i int) {
		ranks := ranks[i]
		u, err := nueUpDown(ctx, g, ranks, connected)
		if u != nil {
			found[i] = append(found[i], u)
		}
		if err == nil && oneLane && isSmall {
			var more []*routes.Routes
			more, err = search.InLanes(ctx, g, roots[i:i+1], ranks, connected)
			found[i] = append(found[i], more...)
		}
		failed[i] = err
	})
	if err = cmp.Or(err, errors.Join(failed...)); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// evenRoots are some other roots than root, by which paths up and down are spread well.
func evenRoots(ctx context.Context, g *graph.Graph, root int, connected *graph.Hops) (roots []int, err error) {
	type trial struct {
		root int
		load int64
	}
	var trials []trial
	step := max(1, len(g.Switches())/rootsTried)
	for s := 0; s < len(g.Switches()); s += step {
		if s != root {
			trials = append(trials, trial{s, -1})
		}
	}
	failed := make([]error, len(trials))
	err = graph.Each(ctx, g.Workers(), len(trials), func(_, i int) {
		h, err := graph.UpDown(ctx, g, graph.RanksFrom(g, []int{trials[i].root}))
		if err != nil {
			failed[i] = err
			return
		}
		if lack, _ := search.CountPairs(g, h, connected); lack > 0 {
			return
		}
		b := newBalancer(routes.New(g, 0), h)
		if failed[i] = b.pass(ctx, false); failed[i] == nil {
			trials[i].load = slices.Max(append(b.load, 0))
		}
	})
	if err = cmp.Or(err, errors.Join(failed...)); err != nil {
		return nil, err
	}
	trials = slices.DeleteFunc(trials, func(t trial) bool { return t.load < 0 })
	slices.SortFunc(trials, func(a, b trial) int { return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.root, b.root)) })
	for _, t := range trials[:min(rootsTaken, len(trials))] {
		roots = append(roots, t.root)
	}
	return roots, nil
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
