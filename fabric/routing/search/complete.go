package search

import (
	"context"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// Complete adds entries to the tables of up*/down* under ranks, with distances h,
// where up*/down* has no path but the network is connected. Switches with CAs get
// paths that close no cycle in the channel dependency graph of all paths: first to
// CAs, by searches as of nue; then to switches, whose LIDs only management packets
// have, by way of a few switches where such paths turn up again, and, if that leaves
// some, by searches too. Other switches, from which only their own management packets
// come, get shortest paths: those of keep where they are shortest paths still. Notes
// describe what was added. gaps reports whether paths to CAs were missing, and missing is how
// many entries that lead to CAs could not be added.
//
// Time: up to maxAttempts searches as of nue for each LID of a CA with missing paths;
// for those of switches up to maxTurns searches of the dependency graph, O(C + E)
// each for E dependencies, and the length of the paths.
func Complete(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes) (gaps bool, missing int, err error) {
	return complete(ctx, r, h, ranks, keep, false)
}

// CompleteAll is Complete where no other tables are an alternative: what searches leave out, for each
// takes turns away from the next, is found beside an escape tree. So all is, where such a tree exists.
//
// Time: up to twice that of Complete, and the growth of maxRoots trees.
func CompleteAll(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks) error {
	_, _, err := complete(ctx, r, h, ranks, nil, true)
	return err
}

func complete(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes, all bool) (gaps bool, missing int, err error) {
	connected, err := graph.AllHops(ctx, r.Graph())
	if err != nil {
		return false, 0, err
	}
	a := addition{r: r, connected: connected}
	a.findGaps(h)
	how := plain
	if lack, pairs := CountPairs(r.Graph(), h, connected); all && lack*MaxLack > pairs {
		how = byTree
	} else if all {
		how = plainOrTree
	}
	if err := a.addPaths(ctx, ranks, how); err != nil {
		return false, 0, err
	}
	a.note("", a.toCAs)
	a.note(ofSwitches, a.toSwitches)
	return len(a.cas) > 0, a.toCAs.missing, FillIn(ctx, r, h, connected, keep)
}

// MaxLack bounds the share of pairs without a path: where more than one in so many pairs of switches
// with CAs lacks one, the network has not the shape that the ranks suppose.
const MaxLack = 10

// CountPairs counts the pairs of switches with CAs that are connected, and those that
// lack a path in h.
func CountPairs(g *graph.Graph, h, connected *graph.Hops) (lack, all int) {
	endpoints := g.Endpoints()
	for s := range endpoints {
		for d := range endpoints {
			if endpoints[s] > 0 && endpoints[d] > 0 && s != d && connected.Distance(s, d) >= 0 {
				all++
				if h.Distance(s, d) < 0 {
					lack++
				}
			}
		}
	}
	return lack, all
}

// addPaths is the part of Complete for switches with CAs.
func (a *addition) addPaths(ctx context.Context, ranks *graph.Ranks, how way) error {
	if len(a.cas)+len(a.switches) == 0 {
		return nil
	}
	if len(a.cas) == 0 {
		if err := a.byTurning(ctx, newStaticDownUp(a.r, ranks)); err != nil || len(a.switches) == 0 {
			return err
		}
	}
	graph, err := verify.Dependencies(ctx, a.r, verify.SelectEndpoints(a.r.Graph(), 0))
	if err != nil {
		return err
	}
	var tree []int32
	if len(a.cas) > 0 {
		if graph, tree, err = a.toEndpoints(ctx, ranks, graph, how); err != nil {
			return err
		}
	}
	if len(a.switches) == 0 {
		return nil
	}
	if graph, err = verify.WithSwitches(ctx, a.r, graph); err != nil {
		return err
	}
	if err := a.byTurning(ctx, newDownUp(a.r, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	_, err = a.closeRest(ctx, graph, tree)
	return err
}

// way is how toEndpoints searches.
type way int

const (
	plain       way = iota // as many paths as searches find
	plainOrTree            // beside an escape tree where these leave some out
	byTree                 // beside one at once: many paths are missing, and most attempts without fail
)

// toEndpoints is the part for LIDs of CAs. It returns the dependencies with those of the new paths, and
// the escape tree, if one was used: its turns come first, and LIDs that lack paths even so take those of
// the tree. It helps where searches block each other, as between the tops of several trees that only
// leaves join. Then there is room beside the packets to switches, too.
func (a *addition) toEndpoints(ctx context.Context, ranks *graph.Ranks, given *verify.DependencyGraph, how way) (d *verify.DependencyGraph, tree []int32, err error) {
	load, err := verify.CountAllRoutes(ctx, a.r)
	if err != nil {
		return nil, nil, err
	}
	if how != plain {
		if given, err = verify.WithSwitches(ctx, a.r, given); err != nil {
			return nil, nil, err
		}
	}
	try := func() error {
		a.toCAs = tally{}
		d, err = a.toEach(ctx, &a.toCAs, a.cas, maxAttempts, func() *nueSearch {
			n := newNueSearch(a.r, given.Clone(), verify.UpDownOrder(a.r.Graph(), ranks))
			n.load = slices.Clone(load)
			n.setTree(tree)
			return n
		})
		return err
	}
	if how != byTree {
		if err := try(); err != nil || a.toCAs.missing == 0 || how == plain {
			return d, nil, err
		}
		a.restore(a.cas)
	}
	if tree, _, err = findTree(ctx, a.r, given); err != nil {
		return nil, nil, err
	}
	if err := try(); err != nil {
		return nil, nil, err
	}
	if tree != nil && a.toCAs.missing > 0 {
		n := newNueSearch(a.r, d, d.Positions())
		n.tree = tree
		for _, x := range a.open {
			a.escape(n, x, &a.toCAs)
		}
		if n.escaped > 0 {
			a.r.Notes = append(a.r.Notes, plural.Count(n.escaped, "LID is", "LIDs are")+" reached along a spanning tree: other paths to some switches would close a credit loop")
		}
	}
	return d, tree, nil
}

// FillIn is the part of Complete for switches without CAs, with shortest paths as
// far as a switch that has a path already. h, if not nil, has which have one. Only
// management packets of these switches take them, so credit loops are not looked for.
//
// Time: O(S*(C + L)).
func FillIn(ctx context.Context, r *routes.Routes, h, connected *graph.Hops, keep *routes.Routes) error {
	g := r.Graph()
	endpoints := g.Endpoints()
	nexts := make([]graph.NextHops, g.Workers())
	return graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		if endpoints[s] > 0 {
			return
		}
		next, loaded := &nexts[worker], false
		row := r.Row(s)
		for d := range g.Switches() {
			if h != nil && h.Distance(s, d) >= 0 || connected.Distance(s, d) < 0 {
				continue
			}
			for _, dest := range g.DestsOf(d) {
				if row[dest.LID] != routes.NoPort {
					continue
				}
				if keep != nil {
					if old := keep.Row(s).Port(dest.LID); connected.IsNextHop(s, d, old) {
						row[dest.LID] = old
						continue
					}
				}
				if !loaded {
					next.Load(connected, s)
					loaded = true
				}
				ports, _ := next.Ports(d)
				row[dest.LID] = ports[int(dest.LID)%len(ports)]
			}
		}
	})
}
