package engines

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
)

// ftree routes fat trees by d-mod-k: up by a digit of the destination's number
// among its class, then down (Zahavi, Johnson, Kerbyson, Lang, "Optimized
// InfiniBand fat-tree routing for shift all-to-all communication patterns", 2010;
// Zahavi, "Fat-trees routing and node ordering providing contention free traffic
// for MPI global collectives", 2012). On a whole tree, shifts of compute nodes in
// order meet no contention. With parts missing, only destinations that would use
// them take another path. Levels are distances from the switches with compute
// nodes, or from the roots given. Aggregation nodes may be on any level. Pairs
// without a path up and then down get a path that closes no credit loop; see treeRoutes.
//
// Dmodc (Gliksberg, Capra, Louvet, García, Sohier, "High-quality fault-resiliency in fat-tree
// networks", 2019) differs in where a switch finds the weight of its digit: from the switches
// below it, not from the levels. On damaged trees its loads are the same.
//
// Time: O(D*S*(S + N)/64 + S*(C + L)); where paths are missing, the time of
// search.Complete in addition.
var ftree = Engine{
	Name:    "ftree",
	Doc:     "Fat trees: d-mod-k, also with parts missing. Shifts of compute nodes in order meet no contention.",
	OpenSM:  "ftree",
	Options: []Option{rootsOption, keepOption, cnOption, ioOption, adaptiveOption, portOrderOption},
	Acyclic: true,
	Repair:  KeepEntries,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		l := graph.FindLevels(g)
		if len(o.Roots) > 0 {
			l = graph.LevelsOf(g, graph.RanksFrom(g, o.Roots).Reverse().Rank)
		}
		if err := l.Check(); err != nil {
			return nil, &Precondition{Reason: err}
		}
		policy := DModK
		if g.Capacity().Costs() != nil {
			policy = "" // d-mod-k too, unless others are much more even
		}
		r, err := treeRoutes(ctx, g, l, &Options{Policy: policy, Keep: o.Keep, Adaptive: o.Adaptive})
		if err != nil {
			return nil, err
		}
		if BasisOf(r).Missing > 0 {
			return nil, &Precondition{Reason: fmt.Errorf("too much of the tree is missing: %s", r.Notes[len(r.Notes)-1])}
		}
		return r, nil
	},
}

// treeRoutes are the tables of up*/down* on a tree of levels l. The tops are the roots, unless paths
// are missing then: where aggregation nodes are on switches of all levels, no path up and then down
// joins many of these. Under one leaf as the only root all pairs have such a path, and the paths of
// compute nodes are nearly the paths that they have under the tops.
func treeRoutes(ctx context.Context, g *graph.Graph, l *graph.Levels, o *Options) (*routes.Routes, error) {
	h, err := graph.UpDown(ctx, g, l.Ranks())
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	if reachesAll(g, h) {
		return upDownRoutes(ctx, g, l, h, o)
	}
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	byTops := func() (*routes.Routes, error) { return upDownRoutes(ctx, g, l, h, o) }
	byLeaf := func() (*routes.Routes, error) {
		leaves := leavesOf(l)
		leaf, err := rootLeaf(ctx, g, leaves, connected, o.Keep, leavesTried, rootSlack)
		if err != nil || leaf < 0 {
			return nil, err
		}
		roots := oneInEach(leaf, leaves, connected)
		r, err := byRoots(ctx, g, l, roots, o)
		if err != nil {
			return nil, err
		}
		b := *BasisOf(r)
		b.leaf = g.Switches()[leaf]
		r.SetOrigin(&b)
		which := "the only root is a leaf,"
		if len(roots) > 1 {
			which = "the only root of each part of the network is a leaf, such as"
		}
		r.Notes = append(r.Notes, fmt.Sprintf("some pairs have no path up to a top and then down; %s %s", which, g.Switches()[leaf].Label()))
		return r, nil
	}
	ways := []func() (*routes.Routes, error){byTops, byLeaf}
	if lack, all := search.CountPairs(g, h, connected); lack*search.MaxLack > all {
		slices.Reverse(ways) // to add so many paths takes long
	}
	var best *routes.Routes
	for _, way := range ways {
		r, err := way()
		if err != nil {
			return nil, err
		}
		if r != nil && (best == nil || BasisOf(r).Missing < BasisOf(best).Missing) {
			best = r
		}
		if best != nil && BasisOf(best).Missing == 0 {
			break
		}
	}
	return best, nil
}

// reachesAll reports whether all switches with CAs have a path to each other.
func reachesAll(g *graph.Graph, h *graph.Hops) bool {
	endpoints := g.Endpoints()
	for s, n := range endpoints {
		for d, m := range endpoints {
			if n > 0 && m > 0 && h.Distance(s, d) < 0 {
				return false
			}
		}
	}
	return true
}

const (
	leavesTried = 8   // as roots
	rootSlack   = 1.1 // how much more load than with the best leaf, for one before it
)

// leavesOf are the switches of level 0.
func leavesOf(l *graph.Levels) (leaves []int) {
	for s, level := range l.Level {
		if level == 0 {
			leaves = append(leaves, s)
		}
	}
	return leaves
}

// oneInEach are leaf and, of each part of the network that is not connected to it, the first leaf.
func oneInEach(leaf int, leaves []int, connected *graph.Hops) []int {
	roots := []int{leaf}
	for _, s := range leaves {
		if !slices.ContainsFunc(roots, func(r int) bool { return connected.Distance(r, s) >= 0 }) {
			roots = append(roots, s)
		}
	}
	return roots
}

// rootLeaf is a leaf with which as the only root, in its part of the network, the load is low at
// first sight: of so many that are tried, at most slack times the least; the root of the tables to keep, if they have one. -1:
// there is no leaf with which all pairs have a path.
func rootLeaf(ctx context.Context, g *graph.Graph, leaves []int, connected *graph.Hops, keep *routes.Routes, most int, slack float64) (int, error) {
	list := make([]int, min(most, len(leaves)))
	for i := range list {
		list[i] = leaves[i*len(leaves)/len(list)]
	}
	kept := -1
	if keep != nil && BasisOf(keep) != nil && BasisOf(keep).leaf != nil {
		if kept = g.SwitchByGUID(BasisOf(keep).leaf.GUID()); kept >= 0 {
			list = append([]int{kept}, list...)
		}
	}
	tried, loads := []int(nil), []int64(nil)
	for _, s := range list {
		h, err := graph.UpDown(ctx, g, graph.RanksFrom(g, oneInEach(s, leaves, connected)))
		if err != nil {
			return -1, &Precondition{Reason: err}
		}
		if lack, _ := search.CountPairs(g, h, connected); lack > 0 {
			continue
		}
		if s == kept {
			return s, nil
		}
		b := newBalancer(routes.New(g, 0), h)
		if err := b.pass(ctx, false); err != nil {
			return -1, err
		}
		tried, loads = append(tried, s), append(loads, slices.Max(append(b.load, 0)))
	}
	for i, s := range tried {
		if float64(loads[i]) <= slack*float64(slices.Min(loads)) {
			return s, nil
		}
	}
	return -1, nil
}
