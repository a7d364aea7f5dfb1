package search

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

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
	// With the dependencies of packets to switches, or, where that leaves some out, without.
	given := []*verify.DependencyGraph{a.graphs[lane]}
	if lane == 0 {
		both, err := verify.WithSwitches(ctx, a.r, a.graphs[0])
		if err != nil {
			return err
		}
		given = []*verify.DependencyGraph{both, a.graphs[0]}
	}
	if a.allowed > 0 {
		if done, err := a.closeBest(ctx, lane, given, cas); done || err != nil {
			return err
		}
	}
	for i, with := range given {
		if i > 0 {
			a.restore(cas)
		}
		if err := a.try(ctx, lane, with, cas, nil); err != nil || a.toCAs.missing == 0 {
			return err
		}
	}
	return nil
}

// laneWay closes the gaps on a lane, and reports whether it could.
type laneWay func(ctx context.Context, a *patching, lane int, gaps []gap) (bool, error)

// fewBlocks are few, times the least: ways that take long are not tried to change fewer. In no more than
// mostBlocks others should change. LIDs of switches add to them.
const (
	fewBlocks  = 2
	mostBlocks = 3
)

// tooMany is how many blocks are too many, if it can be helped. Some more will follow.
func (a *patching) tooMany() int { return a.least * (fewBlocks + mostBlocks) / 2 }

// closeBest closes the gaps on a lane in the way by which the fewest blocks change, and reports
// whether there is one. given are dependencies to go beside, the best first. Ways that take long, or that
// change other LIDs, are tried where the others change many blocks.
func (a *patching) closeBest(ctx context.Context, lane int, given []*verify.DependencyGraph, gaps []gap) (bool, error) {
	w := ways{alone: given[len(given)-1]}
	type attempt struct {
		close laneWay
		from  int // blocks beyond which it is made
	}
	var list []attempt
	for _, d := range given {
		list = append(list, attempt{w.beside(d), a.least})
	}
	few := fewBlocks * a.least
	list = append(list, attempt{w.besideTree, few}, attempt{w.again, few}, attempt{w.inRoom, a.tooMany()})
	var best *patching
	for _, x := range list {
		if best != nil && (best.changed.size <= x.from || best.changed.size == a.changed.size) {
			continue
		}
		p := a.clone()
		done, err := x.close(ctx, p, lane, slices.Clone(gaps))
		if err != nil {
			return false, err
		}
		if done && (best == nil || p.changed.size < best.changed.size) {
			best = p
		}
	}
	if best == nil {
		return false, nil
	}
	r := a.r
	*r = *best.r
	*a = *best
	a.r, a.toCAs.missing = r, 0
	return true, nil
}

// ways are those to close the gaps on a lane.
type ways struct {
	alone *verify.DependencyGraph // the dependencies of the paths on the lane
	tree  []int32                 // an escape tree beside these, if there is one
	root  int                     // of the tree, or of that to most switches
	known bool                    // they have been looked for
}

// findTree looks for the escape tree once.
func (w *ways) findTree(ctx context.Context, a *patching) (err error) {
	if !w.known {
		w.tree, w.root, err = findTree(ctx, a.r, w.alone)
		w.known = err == nil
	}
	return err
}

// beside adds the paths that are missing, beside given dependencies. LIDs that lack some still get
// others altogether.
func (w *ways) beside(given *verify.DependencyGraph) laneWay {
	return func(ctx context.Context, a *patching, lane int, gaps []gap) (bool, error) {
		return a.patchOrPlace(ctx, lane, given, gaps, nil)
	}
}

// besideTree does the same also beside an escape tree, so that there are paths to all LIDs.
func (w *ways) besideTree(ctx context.Context, a *patching, lane int, gaps []gap) (bool, error) {
	if err := w.findTree(ctx, a); err != nil || w.tree == nil {
		return false, err
	}
	return a.patchOrPlace(ctx, lane, w.alone, gaps, w.tree)
}

// inRoom lets other LIDs make room.
func (w *ways) inRoom(ctx context.Context, a *patching, lane int, gaps []gap) (bool, error) {
	if err := w.findTree(ctx, a); err != nil {
		return false, err
	}
	return a.makeRoom(ctx, lane, w.root, gaps)
}

// again gives the LIDs other paths altogether.
func (w *ways) again(ctx context.Context, a *patching, lane int, gaps []gap) (bool, error) {
	return a.place(ctx, lane, gaps, true)
}

// patchOrPlace adds the paths that are missing, beside given dependencies and the turns of a tree; then
// it places the LIDs that lack some.
func (a *patching) patchOrPlace(ctx context.Context, lane int, given *verify.DependencyGraph, gaps []gap, tree []int32) (bool, error) {
	if err := a.try(ctx, lane, given, gaps, tree); err != nil {
		return false, err
	}
	a.changed.addChanged(a.r, gaps)
	if a.toCAs.missing == 0 {
		return true, nil
	}
	return a.place(ctx, lane, a.open, tree != nil || !a.canMove())
}

// try searches for paths beside given dependencies, and the turns of an escape tree, if
// tree is not nil.
func (a *patching) try(ctx context.Context, lane int, given *verify.DependencyGraph, gaps []gap, tree []int32) (err error) {
	a.toCAs = tally{}
	a.graphs[lane], err = a.toEach(ctx, &a.toCAs, gaps, maxAttempts, func() *nueSearch {
		d := given.Clone()
		n := newNueSearch(a.r, d, d.Positions())
		n.load, n.changed, n.fresh = slices.Clone(a.load), a.changed.clone(), freshOfMany
		n.setTree(tree)
		return n
	})
	return err
}
