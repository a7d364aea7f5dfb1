package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// InLanes computes tables by searches as of nue, on a virtual lane for each of roots, of which
// the first is enough where it has shortest paths. The first root and ranks are those of
// EscapeRoot, and connected the distances in g. The result are two tables: with paths as short as
// these searches find them, and with detours that even out the load.
func InLanes(ctx context.Context, g *graph.Graph, roots []int, ranks *graph.Ranks, connected *graph.Hops) (list []*routes.Routes, err error) {
	r := routes.New(g, 0)
	searches := make([]*nueSearch, len(roots))
	for i, root := range roots {
		if root != roots[0] {
			ranks = graph.RanksFrom(g, roots[i:i+1])
		}
		searches[i] = newNueSearch(r, verify.NewDependencyGraph(g, 1), verify.UpDownOrder(g, ranks))
		searches[i].load = searches[0].load
		if len(roots) > 1 { // what takes dependencies away from other LIDs may go on another lane
			if searches[i].tests = len(g.Channels()); len(g.Dests())*len(g.Channels()) > testedSteps {
				searches[i].tests = -1
			}
		}
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
	positions := make([][]int32, len(roots))
	for i, n := range searches {
		positions[i] = n.order.Positions()
	}
	hops := []float64{shortHop, detourHop}
	list = []*routes.Routes{r.Clone(), r}
	failed := make([]error, len(hops))
	err = graph.Each(ctx, g.Workers(), len(hops), func(_, i int) {
		t := list[i]
		f := newRefiner(t, slices.Clone(searches[0].load), hops[i])
		f.lane, f.position = sl, positions
		if failed[i] = f.run(ctx); failed[i] != nil {
			return
		}
		first := newNueSearch(t, f.dependencies(), slices.Clone(positions[0]))
		first.tree = searches[0].tree
		if failed[i] = first.toSwitches(ctx, connected); failed[i] != nil {
			return
		}
		if slices.Max(sl) > 0 {
			t.SL, t.SL2VL = &routes.SL{Dest: sl}, routes.NewSL2VL(g)
		}
		if n := escaped + first.escaped; n > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("nue: %d LIDs are reached along the spanning tree of %s", n, treesOf(g, roots)))
		}
	})
	return list, cmp.Or(err, errors.Join(failed...))
}

// treesOf names the switches that spanning trees of the lanes begin at.
func treesOf(g *graph.Graph, roots []int) string {
	var names []string
	for _, root := range roots {
		if name := g.Switches()[root].Label(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// testedSteps is the product of LIDs and channels above which, on several lanes, cycle tests would
// take seconds: paths that need none, if there are such, are a little longer.
const testedSteps = 1 << 24

// toSwitches finds the paths to the LIDs of switches, which only management packets
// have: after all others, so that they take no paths away from them, and with few
// cycle tests, for where links are missing most of these would fail. First come
// searches in the topological order that there is; what these leave is closed by way
// of a few switches (see downUp), and the rest by searches with tests and by the
// escape tree.
func (n *nueSearch) toSwitches(ctx context.Context, connected *graph.Hops) error {
	a := addition{r: n.routes, connected: connected}
	for d := range n.g.Switches() {
		for _, dest := range n.g.DestsOf(d) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if dest.Out > 0 {
				continue
			}
			n.sweep(d)
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
	graph := n.order.DependencyGraph
	if err := a.byTurning(ctx, newDownUp(n.routes, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	escaped, err := a.closeRest(ctx, graph, n.tree)
	a.note(ofSwitches, tally{missing: a.toSwitches.missing})
	n.escaped += escaped
	return err
}
