package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// place gives the LIDs of gaps, which are on one lane, new paths by which few blocks change: beside the
// other paths there, or on another lane, as far as lanes are allowed. False: it found no paths for some.
// With escape, there are always paths on their own lane if an escape tree fits beside the other paths.
//
// Time: a search of nue for each LID and lane.
func (a *patching) place(ctx context.Context, lane int, gaps []gap, escape bool, set settings) (all bool, err error) {
	gaps = a.blank(gaps)
	own, err := verify.Dependencies(ctx, a.r, a.onLane(lane))
	if err != nil {
		return false, err
	}
	var tree []int32
	if escape {
		if tree, _, err = findTree(ctx, a.r, own); err != nil {
			return false, err
		}
	}
	a.graphs[lane] = own
	list := []laneSearch{{lane, a.searchOn(lane, set)}}
	list[0].setTree(tree)
	for other := range a.graphs {
		if other != lane && a.canMove() {
			list = append(list, laneSearch{other, a.searchOn(other, set)})
		}
	}
	for _, x := range gaps {
		n, err := a.bestLane(ctx, list, x)
		if err != nil {
			return false, err
		}
		if n == nil && len(a.graphs) < a.allowed && a.canMove() {
			a.graphs = append(a.graphs, verify.NewDependencyGraph(a.r.Graph(), 1))
			list = append(list, laneSearch{len(a.graphs) - 1, a.searchOn(len(a.graphs)-1, set)})
			if n, err = a.bestLane(ctx, list[len(list)-1:], x); err != nil {
				return false, err
			}
		}
		switch {
		case n != nil:
			n.finish(x.dest)
		case tree != nil:
			if n = &list[0]; !n.inTree(x.d) {
				return false, nil
			}
			n.takeEscape(x.d, x.dest)
		default:
			return false, nil
		}
		a.changed.addChanged(a.r, []gap{x})
		a.setLane(x.dest.LID, n.lane)
	}
	return true, nil
}

// laneSearch is the search on a lane.
type laneSearch struct {
	lane int
	*nueSearch
}

// bestLane searches for all paths to a LID on some lanes, and returns the search by which the fewest
// blocks change, or the search on the first lane if by it few blocks change. Nil: none found all.
func (a *patching) bestLane(ctx context.Context, list []laneSearch, x gap) (best *laneSearch, err error) {
	blocks := make([]int, len(list)) // -1: some paths are missing
	err = graph.Each(ctx, a.r.Graph().Workers(), len(list), func(_, i int) {
		n := list[i]
		n.keep(x)
		n.begin(x.d)
		blocks[i] = -1
		if n.search(); n.left == 0 {
			blocks[i] = n.countChanges(x)
		}
	})
	if err != nil {
		return nil, err
	}
	least := 0
	for i := range list {
		if n := blocks[i]; n >= 0 && (best == nil || n < least) && (i == 0 || best != &list[0] || a.changed.size+least > fewBlocks*a.least) {
			best, least = &list[i], n
		}
	}
	for i := range list {
		if best != &list[i] {
			list[i].order.Commit(func(v, w int32) bool { return false })
		}
	}
	return best, nil
}

// searchOn begins a search beside the paths on a lane.
func (a *patching) searchOn(lane int, set settings) *nueSearch {
	d := a.graphs[lane].Clone()
	n := newNueSearch(a.r, d, d.Positions(), set)
	n.load, n.changed = slices.Clone(a.load), a.changed
	a.graphs[lane] = n.order.DependencyGraph
	return n
}

// countChanges counts the blocks that change by the paths that were found, beside blocks that change anyway.
func (n *nueSearch) countChanges(x gap) (blocks int) {
	for s, via := range n.via {
		if via >= 0 && n.g.Channels()[via].Port != x.old[s] && !n.changed.has(s, x.dest.LID) {
			blocks++
		}
	}
	return blocks
}

// blank drops all packets to the LIDs of gaps, to search for paths from the start.
func (a *patching) blank(gaps []gap) (list []gap) {
	for _, x := range gaps {
		x.before = slices.Repeat([]uint8{routes.NoPort}, len(x.before))
		x.before[x.d] = x.dest.Out
		for s, port := range x.before {
			a.r.Row(s)[x.dest.LID] = port
		}
		list = append(list, x)
	}
	return list
}

// canMove reports whether LIDs may get another lane.
func (a *patching) canMove() bool {
	sl := a.r.SL
	return a.allowed > 1 && (!sl.Any() || sl.Pair == nil && a.r.SL2VL.Direct())
}

// setLane gives a LID a lane.
func (a *patching) setLane(lid mad.LID, lane int) {
	r := a.r
	if a.lane(lid) == lane {
		return
	}
	if !r.SL.Any() {
		r.SL, r.SL2VL = &routes.SL{}, routes.NewSL2VL(r.Graph())
	}
	r.SL.Dest = append(r.SL.Dest, make([]uint8, max(0, int(r.Top())+1-len(r.SL.Dest)))...)
	r.SL.Dest[lid] = uint8(lane)
}

// noteMoved notes how many LIDs have another lane than in the tables before.
func (a *patching) noteMoved(old *routes.Routes) {
	moved := 0
	for d := range a.r.Graph().Switches() {
		for _, dest := range a.r.Graph().DestsOf(d) {
			if dest.Out > 0 && old.Graph().TerminalByLID(dest.LID) >= 0 && a.r.SL.Of(-1, dest.LID) != old.SL.Of(-1, dest.LID) {
				moved++
			}
		}
	}
	if moved > 0 && a.allowed > 0 {
		a.r.Notes = append(a.r.Notes, fmt.Sprintf("repair: paths to %s another service level; hosts read path records again", plural.Count(moved, "LID have", "LIDs have")))
	}
}

// clone returns a copy that writes tables of its own.
func (a *patching) clone() *patching {
	c := *a
	c.r, c.graphs, c.dropped, c.changed = a.r.Clone(), slices.Clone(a.graphs), slices.Clone(a.dropped), a.changed.clone()
	return &c
}

// countLeast counts the blocks of which an entry was on a shortest path, and leads along none now.
func (a *patching) countLeast(ctx context.Context, old *graph.Graph) error {
	g := a.r.Graph()
	before, err := graph.AllHops(ctx, old)
	if err != nil {
		return err
	}
	number, _ := graph.OlderNumbers(g, old)
	must := newBlockSet(a.r)
	for s, was := range number {
		for d, to := range number {
			if s == d || was < 0 || to < 0 || a.connected.Distance(s, d) < 0 {
				continue
			}
			for _, dest := range g.DestsOf(d) {
				port := a.r.Row(s)[dest.LID]
				if port != routes.NoPort && before.IsNextHop(int(was), int(to), port) && !a.connected.IsNextHop(s, d, port) {
					must.add(s, dest.LID)
				}
			}
		}
	}
	a.least = must.size
	return nil
}

// closeLane searches for the paths on one lane.
func (a *patching) closeLane(ctx context.Context, lane int, cas []gap) error {
	if a.toCAs = (tally{}); len(cas) == 0 {
		return nil
	}
	c := closing{lane: lane, gaps: cas, alone: a.graphs[lane]}
	if lane == 0 {
		var err error
		if c.given, err = verify.WithSwitches(ctx, a.r, c.alone); err != nil {
			return err
		}
	}
	if a.allowed > 0 {
		if done, err := a.closeBest(ctx, c); done || err != nil {
			return err
		}
	}
	if c.given != nil {
		if err := a.try(ctx, lane, c.given, cas, nil, allTogether); err != nil || a.toCAs.missing == 0 {
			return err
		}
		a.restore(cas)
	}
	return a.try(ctx, lane, c.alone, cas, nil, allTogether)
}

// patchOrPlace adds the paths that are missing, beside given dependencies and the turns of a tree; then
// it places the LIDs that lack some.
func (a *patching) patchOrPlace(ctx context.Context, lane int, given *verify.DependencyGraph, gaps []gap, tree []int32, set settings) (bool, error) {
	if err := a.try(ctx, lane, given, gaps, tree, set); err != nil {
		return false, err
	}
	a.changed.addChanged(a.r, gaps)
	if a.toCAs.missing == 0 {
		return true, nil
	}
	return a.place(ctx, lane, a.open, tree != nil || !a.canMove(), eachAlone)
}

// try searches for paths beside given dependencies, and the turns of an escape tree, if
// tree is not nil.
func (a *patching) try(ctx context.Context, lane int, given *verify.DependencyGraph, gaps []gap, tree []int32, set settings) (err error) {
	a.toCAs = tally{}
	a.graphs[lane], err = a.toEach(ctx, &a.toCAs, gaps, maxAttempts, func() *nueSearch {
		d := given.Clone()
		n := newNueSearch(a.r, d, d.Positions(), set)
		n.load, n.changed = slices.Clone(a.load), a.changed.clone()
		n.setTree(tree)
		return n
	})
	return err
}
