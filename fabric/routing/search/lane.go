package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// InLanes computes tables by searches as of nue, on so many virtual lanes, of which the
// first is enough where it has shortest paths. root and ranks are those of EscapeRoot,
// and connected the distances in g. The result are two tables: with paths as short as these
// searches find them, and with detours that even out the load.
func InLanes(ctx context.Context, g *graph.Graph, root int, ranks *graph.Ranks, connected *graph.Hops, lanes int) (list []*routes.Routes, err error) {
	r := routes.New(g, 0)
	searches := make([]*nueSearch, lanes)
	position := cdg.UpDownOrder(g, ranks)
	for i := range searches {
		searches[i] = newNueSearch(r, cdg.New(g, 1), slices.Clone(position))
		searches[i].load = searches[0].load
		searches[i].addTree(root)
	}
	sl := make([]uint8, int(r.Top())+1)
	for d := range g.Switches() {
		lane := -1 // that of the LIDs on d
		for _, dest := range g.DestsOf(d) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if dest.Out == 0 {
				continue
			}
			if lane < 0 {
				lane = shortestLane(searches, d, connected)
			}
			searches[lane].avoidSiblings(dest)
			searches[lane].route(d, dest)
			sl[dest.LID] = uint8(lane)
		}
		if lane >= 0 {
			searches[lane].forgetSiblings() // the lanes have their loads in common
		}
	}
	escaped := 0
	for _, n := range searches {
		escaped += n.escaped
	}
	hops := []float64{shortHop, detourHop}
	for i, hop := range hops {
		t := r
		if i < len(hops)-1 {
			t = r.Clone()
		}
		f := newRefiner(t, slices.Clone(searches[0].load), hop)
		f.lane = sl
		for _, n := range searches {
			f.position = append(f.position, n.order.Positions())
		}
		if err := f.run(ctx); err != nil {
			return nil, err
		}
		first := newNueSearch(t, f.dependencies(), f.position[0])
		first.tree = searches[0].tree
		if err := first.toSwitches(ctx, connected); err != nil {
			return nil, err
		}
		if slices.Max(sl) > 0 {
			t.SL, t.SL2VL = &routes.SL{Dest: sl}, routes.NewSL2VL(g)
		}
		if n := escaped + first.escaped; n > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("nue: %d LIDs are reached along the spanning tree of %s", n, g.Switches()[root].Label()))
		}
		list = append(list, t)
	}
	return list, nil
}

// shortestLane is the first lane on which paths to switch d are as short as can be, or
// shortest, without cycle tests: those would take most of the time.
func shortestLane(searches []*nueSearch, d int, connected *graph.Hops) int {
	if len(searches) == 1 {
		return 0
	}
	best, least := 0, int64(-1)
	for i, n := range searches {
		n.order.Budget = -1
		n.begin(d)
		n.search()
		n.order.Budget = 0
		excess := int64(0) // links beyond those of shortest paths; large, without a path
		for s, endpoints := range n.endpoints {
			if x := connected.Distance(s, d); endpoints > 0 && x > 0 {
				if n.settled[s] {
					excess += endpoints * (n.cost[s]/hopCost - int64(x))
				} else {
					excess += endpoints * graph.MaxDistance
				}
			}
		}
		n.order.Commit(func(v, w int32) bool { return false })
		if least < 0 || excess < least {
			best, least = i, excess
		}
		if excess == 0 {
			break
		}
	}
	return best
}

// toSwitches finds the paths to the LIDs of switches, which only management packets
// have: after all others, so that they take no paths away from them, and with few
// cycle tests, for where links are missing most of these would fail. First come
// searches in the topological order that there is; what these leave is closed by way
// of a few switches (see downUp), and the rest by searches with tests and by the
// escape tree.
func (n *nueSearch) toSwitches(ctx context.Context, connected *graph.Hops) error {
	a := addition{r: n.routes, connected: connected}
	n.order.Budget = -1
	for d := range n.g.Switches() {
		for _, dest := range n.g.DestsOf(d) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if dest.Out > 0 {
				continue
			}
			n.begin(d)
			n.search()
			left := n.left
			n.finish(dest)
			if left > 0 {
				a.switches = append(a.switches, gap{d: d, dest: dest})
			}
		}
	}
	if len(a.switches) == 0 {
		return nil
	}
	graph := n.order.Graph
	if err := a.byTurning(ctx, newDownUp(n.routes, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	last := newNueSearch(n.routes, graph, graph.Positions())
	last.tree = n.tree
	last.order.Budget = testsOfLast * len(n.g.Channels())
	for _, x := range a.switches {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !a.close(last, x, &a.toSwitches) && n.tree != nil {
			last.takeEscape(x.d, x.dest)
		}
	}
	if n.tree == nil {
		a.note(ofSwitches, tally{missing: a.toSwitches.missing})
	}
	n.escaped += last.escaped
	return nil
}
