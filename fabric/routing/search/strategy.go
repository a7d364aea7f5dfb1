package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// settings are what a strategy asks of its searches. The zero value searches for the cheapest paths
// and tests each dependency that may close a cycle.
type settings struct {
	passes     passMode
	tests      int       // for all LIDs, cycle tests go through all channels at most so many times; 0: no bound
	fresh      freshCost // of dependencies that no path has yet, where entries are in force
	sameBlocks bool      // entries that may stay change only in blocks that change already
}

// freshCost is the cost of a dependency that no other path has: if it agrees with the topological
// order, and if not, so that it may close a cycle. LIDs that must change then share ways, and leave
// each other more of them.
type freshCost struct{ agrees, other int64 }

// Settings of strategies that repair tables.
var (
	allTogether   = settings{fresh: freshCost{hopCost, 4 * hopCost}}      // many LIDs must find room on a lane
	eachAlone     = settings{fresh: freshCost{hopCost * 3 / 10, hopCost}} // one LID must find room, with few changes
	ofSwitchesAny = settings{fresh: allTogether.fresh, tests: testsOfLast}
	ofSwitchesFew = settings{fresh: allTogether.fresh, tests: testsOfLast, sameBlocks: true}
)

// passMode is how route searches for the paths to a LID.
type passMode int

const (
	allTests passMode = iota
	fewTests          // on several lanes: a LID may go on the lane where it needs few tests
	noTests           // on several lanes, and tests would take seconds (testedSteps)
)

// passes are the searches for a LID by mode. The next is tried if the search before leaves a switch with
// CAs without a path. If all do, the LID takes the escape tree, which costs nothing but detours.
var passes = [...][]func(n *nueSearch, d int){
	allTests: {(*nueSearch).searchAll},
	fewTests: {(*nueSearch).searchBounded, (*nueSearch).searchAll},
	noTests:  {(*nueSearch).searchUntested, (*nueSearch).searchAll},
}

// searchAll finds the cheapest paths. Time: O(C*log C), and each new dependency up to O(C + E).
func (n *nueSearch) searchAll(d int) {
	n.begin(d)
	n.search()
}

// searchBounded finds the cheapest paths by few cycle tests. Time: O(C*log C).
func (n *nueSearch) searchBounded(d int) {
	n.begin(d)
	n.allowTests(1)
	n.search()
	n.allowTests(0)
}

// searchUntested finds the cheapest paths that need no cycle test, if shortestLane has not. Time: O(C).
func (n *nueSearch) searchUntested(d int) {
	if !n.found {
		n.sweep(d)
	}
	n.found = false
}

// strategy is one way to close the gaps of tables in force. The strategies of a table are tried in
// order, those that take little time and change little first.
type strategy struct {
	name     string // what it tries
	settings settings
	close    func(ctx context.Context, a *patching, c *closing, set settings) (closed bool, err error)
	enough   func(a *patching) bool // after it, the next one is not tried
}

// closing is what the strategies of a table have in common.
type closing struct {
	lane    int
	gaps    []gap
	changed *blockSet               // before the first strategy
	given   *verify.DependencyGraph // the dependencies of all paths, packets to switches included; nil: of alone only
	alone   *verify.DependencyGraph // the dependencies of paths to CAs on the lane
	tree    []int32                 // an escape tree beside these, if there is one
	root    int                     // of the tree, or of the tree to most switches
	known   bool                    // the tree was searched for
}

// toCAs are the strategies for the LIDs of CAs on a lane. Each begins with the tables before, and
// the result by which the fewest blocks change counts. The first three take up to maxAttempts searches
// for each LID, the third and fourth a search for a tree too, and the last searches for each link that
// may join two trees.
var toCAs = []strategy{
	{"add the missing paths beside all packets", allTogether, besideAll, (*patching).changesLeast},
	{"add the missing paths beside packets to CAs", allTogether, besideCAs, (*patching).changesFew},
	{"add the missing paths beside an escape tree", allTogether, besideTree, (*patching).changesFew},
	{"give these LIDs all new paths", eachAlone, newPaths, (*patching).changesSome},
	{"let other LIDs make room", allTogether, inRoom, always},
}

// toSwitches are the strategies for the LIDs of switches. The second begins with the tables before,
// the third with what the second left. Each takes a search for each LID, with few cycle tests.
// What they leave is closed by turnFew.
var toSwitches = []strategy{
	{"change any blocks", ofSwitchesAny, inAnyBlocks, (*patching).changesFewToSwitches},
	{"change no further block", ofSwitchesFew, inSameBlocks, func(a *patching) bool { return a.toSwitches.missing == 0 }},
	{"change some further blocks", ofSwitchesAny, inSomeBlocks, always},
}

// A table should change at most fewBlocks times the least number of blocks, for which other ways are tried
// that take little time, and no more than mostBlocks times the least. LIDs of switches add to these.
const (
	fewBlocks  = 2
	mostBlocks = 3
)

// tooMany returns the number of blocks above which other ways are tried. Some more will follow.
func (a *patching) tooMany() int { return a.least * (fewBlocks + mostBlocks) / 2 }

func (a *patching) changesLeast() bool { return a.changed.size <= a.least }
func (a *patching) changesFew() bool   { return a.changed.size <= fewBlocks*a.least }
func (a *patching) changesSome() bool  { return a.changed.size <= a.tooMany() }
func always(*patching) bool            { return true }

// changesFewToSwitches reports whether no other way to reach switches is tried: if all are reached,
// nothing follows.
func (a *patching) changesFewToSwitches() bool {
	switch {
	case a.allowed == 0:
		return true
	case a.toSwitches.missing > 0:
		return a.changesSome()
	}
	return a.changed.size <= mostBlocks*a.least
}

// closeBest closes the gaps on a lane by the strategy by which the fewest blocks change, and reports
// whether there is one.
func (a *patching) closeBest(ctx context.Context, c closing) (bool, error) {
	var best *patching
	for _, s := range toCAs {
		p := a.clone()
		done, err := s.close(ctx, p, &c, s.settings)
		if err != nil {
			return false, err
		}
		if done && (best == nil || p.changed.size < best.changed.size) {
			best = p
		}
		if best != nil && (s.enough(best) || best.changed.size == a.changed.size) {
			break
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

// findTree searches for the escape tree once.
func (c *closing) findTree(ctx context.Context, a *patching) (err error) {
	if !c.known {
		c.tree, c.root, err = findTree(ctx, a.r, c.alone)
		c.known = err == nil
	}
	return err
}

// besideAll adds the paths that are missing, beside the paths of packets to switches too, which are on the
// first lane. LIDs that still lack some get all new paths.
func besideAll(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	if c.given == nil {
		return false, nil
	}
	return a.patchOrPlace(ctx, c.lane, c.given, slices.Clone(c.gaps), nil, set)
}

// besideCAs adds the paths that are missing, beside the paths to CAs. LIDs that still lack some get all
// new paths.
func besideCAs(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	return a.patchOrPlace(ctx, c.lane, c.alone, slices.Clone(c.gaps), nil, set)
}

// besideTree adds the paths that are missing beside an escape tree too, so that there are paths to all
// LIDs.
func besideTree(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	if err := c.findTree(ctx, a); err != nil || c.tree == nil {
		return false, err
	}
	return a.patchOrPlace(ctx, c.lane, c.alone, slices.Clone(c.gaps), c.tree, set)
}

// newPaths gives the LIDs all new paths.
func newPaths(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	return a.place(ctx, c.lane, slices.Clone(c.gaps), true, set)
}

// inRoom lets other LIDs make room.
func inRoom(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	if err := c.findTree(ctx, a); err != nil {
		return false, err
	}
	return a.makeRoom(ctx, c.lane, c.root, slices.Clone(c.gaps), set)
}

// closeSwitches searches for the paths to LIDs of switches that are missing from switches with CAs.
func (a *patching) closeSwitches(ctx context.Context) error {
	c := closing{gaps: slices.Clone(a.switches), changed: a.changed.clone()}
	for _, s := range toSwitches {
		if _, err := s.close(ctx, a, &c, s.settings); err != nil {
			return err
		}
		if s.enough(a) {
			break
		}
	}
	if a.allowed == 0 {
		return nil
	}
	a.toSwitches.missing = 0 // shortest reaches the LIDs that are left
	if len(a.switches) == 0 {
		return nil
	}
	if err := a.turnFew(ctx, c.given); err != nil {
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

// inAnyBlocks searches for the paths to LIDs of switches beside all other paths, and keeps the LIDs that
// still lack some.
func inAnyBlocks(ctx context.Context, a *patching, c *closing, set settings) (closed bool, err error) {
	if c.given, err = verify.WithSwitches(ctx, a.r, a.graphs[0]); err != nil {
		return false, err
	}
	_, err = a.toEach(ctx, &a.toSwitches, a.switches, 1, func() *nueSearch { return a.beside(c.given, set) })
	a.switches = a.open
	return len(a.switches) == 0, err
}

// inSameBlocks takes back the paths that were found, and searches for paths by which no further blocks
// change.
func inSameBlocks(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	a.changed, a.switches, a.toSwitches = c.changed, c.gaps, tally{}
	a.restore(c.gaps)
	return inAnyBlocks(ctx, a, c, set)
}

// inSomeBlocks searches for all paths to the LIDs that are left, as long as not too many blocks change;
// from then on it adds only paths that change no further blocks.
func inSomeBlocks(ctx context.Context, a *patching, c *closing, set settings) (bool, error) {
	a.restore(a.switches)
	given, err := verify.WithSwitches(ctx, a.r, a.graphs[0])
	if err != nil {
		return false, err
	}
	n := a.beside(given, set)
	var left []gap
	for _, x := range a.switches {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		n.settings = set
		had := n.resume(x)
		n.search()
		if n.left == 0 && a.changed.size+n.countChanges(x) <= a.tooMany() {
			a.keepFound(n, x, had, &a.toSwitches)
			continue
		}
		n.order.Commit(func(v, w int32) bool { return false })
		if n.sameBlocks = true; !a.close(n, x, &a.toSwitches) {
			left = append(left, x)
		}
	}
	a.switches, c.given = left, n.order.DependencyGraph
	return len(left) == 0, nil
}

// beside begins a search beside given dependencies, which it changes.
func (a *patching) beside(given *verify.DependencyGraph, set settings) *nueSearch {
	n := newNueSearch(a.r, given, given.Positions(), set)
	n.changed = a.changed
	return n
}

// turnFew is byTurning, unless too many blocks change by it.
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
