package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// closeSwitches searches for the paths to LIDs of switches that are missing from switches with CAs.
func (a *patching) closeSwitches(ctx context.Context) error {
	before, list := a.changed.clone(), slices.Clone(a.switches)
	given, err := a.searchToSwitches(ctx, false)
	if err != nil || a.allowed == 0 {
		return err
	}
	most := mostBlocks * a.least
	if a.toSwitches.missing > 0 {
		most = a.tooMany()
	}
	if a.changed.size > most { // LIDs for which no further block changes leave some to the others
		a.changed, a.switches, a.toSwitches = before, list, tally{}
		a.restore(list)
		if _, err := a.searchToSwitches(ctx, true); err != nil || a.toSwitches.missing == 0 {
			return err
		}
		if given, err = a.closeFew(ctx); err != nil {
			return err
		}
	}
	a.toSwitches.missing = 0 // shortest reaches those that are left
	if len(a.switches) == 0 {
		return nil
	}
	if err := a.turnFew(ctx, given); err != nil {
		return err
	}
	left := 0
	for _, x := range a.switches {
		for s, n := range a.r.Graph().Endpoints() {
			if n > 0 && a.r.Row(s)[x.dest.LID] == routes.NoPort && a.connected.Distance(s, x.d) >= 0 {
				left++
			}
		}
	}
	if left > 0 {
		a.r.Notes = append(a.r.Notes, fmt.Sprintf("repair: %s to LIDs of switches, which management packets take, may close a credit loop with others", plural.Count(left, "path", "paths")))
	}
	return nil
}

// searchToSwitches searches for the paths to LIDs of switches beside all others, keeps the LIDs that lack
// some then, and returns the dependencies. Thrifty: no further blocks change.
func (a *patching) searchToSwitches(ctx context.Context, thrifty bool) (*verify.DependencyGraph, error) {
	given, err := verify.WithSwitches(ctx, a.r, a.graphs[0])
	if err != nil {
		return nil, err
	}
	given, err = a.toEach(ctx, &a.toSwitches, a.switches, 1, func() *nueSearch { return a.beginToSwitches(given, thrifty) })
	a.switches = a.open
	return given, err
}

// beginToSwitches begins a search beside given dependencies with a bound of cycle tests.
func (a *patching) beginToSwitches(given *verify.DependencyGraph, thrifty bool) *nueSearch {
	n := newNueSearch(a.r, given, given.Positions())
	n.changed, n.fresh, n.thrifty = a.changed, freshOfMany, thrifty
	n.order.Budget = testsOfLast * len(n.g.Channels())
	return n
}

// closeFew searches for all paths to the LIDs of switches that are left, as long as not too many blocks
// change; what the others get changes no further blocks.
func (a *patching) closeFew(ctx context.Context) (*verify.DependencyGraph, error) {
	a.restore(a.switches)
	given, err := verify.WithSwitches(ctx, a.r, a.graphs[0])
	if err != nil {
		return nil, err
	}
	n := a.beginToSwitches(given, false)
	var left []gap
	for _, x := range a.switches {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n.thrifty = false
		had := n.resume(x)
		n.search()
		if n.left == 0 && a.changed.size+n.countChanges(x) <= a.tooMany() {
			a.keepFound(n, x, had, &a.toSwitches)
			continue
		}
		n.order.Commit(func(v, w int32) bool { return false })
		if n.thrifty = true; !a.close(n, x, &a.toSwitches) {
			left = append(left, x)
		}
	}
	a.switches = left
	return n.order.DependencyGraph, nil
}

// turnFew is byTurning, where not too many blocks change by it.
func (a *patching) turnFew(ctx context.Context, given *verify.DependencyGraph) error {
	list, before := slices.Clone(a.switches), make([][]uint8, len(a.switches))
	for i, x := range list {
		before[i] = a.r.Column(x.dest.LID)
	}
	if err := a.byTurning(ctx, newDownUp(a.r, given)); err != nil {
		return err
	}
	changed := a.changed.clone()
	if changed.addChanged(a.r, list); changed.size <= a.tooMany() {
		a.changed = changed
		return nil
	}
	for i, x := range list {
		for s, port := range before[i] {
			a.r.Row(s)[x.dest.LID] = port
		}
	}
	a.switches = list
	return nil
}
