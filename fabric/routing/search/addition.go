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
// CAs, by the searches of nue; then to switches, to whose LIDs only management packets
// are sent, by way of a few switches where such paths turn up again, and, if that leaves
// gaps, by searches too; where that still leaves gaps, all of this again beside an escape tree.
// Other switches, which send only their own management packets, get
// shortest paths: the paths of keep where these are still shortest. Notes describe what was
// added. gaps reports whether paths to CAs were missing, and missing is how many entries that
// lead to CAs could not be added.
//
// Time: up to maxAttempts searches of nue for each LID of a CA with missing paths; for LIDs of
// switches up to maxTurns searches of the dependency graph, O(C + E) each for E dependencies,
// and the length of the paths; up to twice that, and the growth of maxRoots trees, with an escape tree.
func Complete(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes) (gaps bool, missing int, err error) {
	return complete(ctx, r, h, ranks, keep, false)
}

// CompleteAll is Complete where no other tables are an alternative: the paths that searches miss,
// because each takes turns away from the next, are found beside an escape tree. If such a tree exists,
// no path is missing.
//
// Time: up to twice the time of Complete, and the growth of maxRoots trees.
func CompleteAll(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks) error {
	_, _, err := complete(ctx, r, h, ranks, nil, true)
	return err
}

// FillIn is the part of Complete for switches without CAs: it adds shortest paths that lead to a
// switch that has a path. h, if not nil, shows which have one. Only management packets of these
// switches take the new paths, so credit loops are not searched for.
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

// MaxLack bounds the share of pairs without a path: if more than one in MaxLack pairs of switches with
// CAs lacks a path, the network does not have the shape that the ranks suppose.
const MaxLack = 10

// CountPairs counts the pairs of switches with CAs that are connected (all), and the pairs among
// them that lack a path in h.
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

// NoteAddedToSwitches notes that n entries that lead to switches got a path.
func NoteAddedToSwitches(r *routes.Routes, n int) {
	(&addition{r: r}).note(ofSwitches, tally{added: n})
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
	gaps = len(a.cas) > 0
	cas, switches := slices.Clone(a.cas), slices.Clone(a.switches)
	if err := a.addPaths(ctx, ranks, how); err != nil {
		return false, 0, err
	}
	if gaps && how == plain && a.toCAs.missing == 0 && a.toSwitches.missing > 0 {
		again := addition{r: r, connected: connected, cas: cas, switches: switches}
		if a, err = again.besideTree(ctx, a, ranks); err != nil {
			return false, 0, err
		}
	}
	a.note("", a.toCAs)
	a.note(ofSwitches, a.toSwitches)
	return gaps, a.toCAs.missing, FillIn(ctx, r, h, connected, keep)
}

// besideTree adds the paths again, beside an escape tree: first has all paths to CAs, but they take the turns
// that paths to switches need. It returns first, and leaves its entries, if the tree does not help.
func (a addition) besideTree(ctx context.Context, first addition, ranks *graph.Ranks) (addition, error) {
	var entries [][]uint8
	lists, notes := slices.Concat(a.cas, a.switches), len(a.r.Notes)
	for _, x := range lists {
		entries = append(entries, a.r.Column(x.dest.LID))
	}
	a.restore(lists)
	if err := a.addPaths(ctx, ranks, byTree); err != nil {
		return a, err
	}
	if a.toCAs.missing == 0 && a.toSwitches.missing < first.toSwitches.missing {
		return a, nil
	}
	for i := range lists {
		lists[i].before = entries[i]
	}
	a.restore(lists)
	a.r.Notes = a.r.Notes[:notes]
	return first, nil
}

// addPaths is the part of Complete for switches with CAs.
func (a *addition) addPaths(ctx context.Context, ranks *graph.Ranks, how searchMode) error {
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

// searchMode is how toEndpoints searches.
type searchMode int

const (
	plain       searchMode = iota // as many paths as searches find
	plainOrTree                   // beside an escape tree if searches miss some
	byTree                        // beside an escape tree at once: many paths are missing, and most attempts without one fail
)

// toEndpoints is the part of addPaths for LIDs of CAs. It returns the dependencies of all paths, and the
// escape tree, if one was used: its turns come first, and LIDs that still lack paths take the paths of
// the tree. It helps where searches block each other, as between the tops of several trees that only
// leaves join. Then there is room beside the packets to switches, too.
func (a *addition) toEndpoints(ctx context.Context, ranks *graph.Ranks, given *verify.DependencyGraph, how searchMode) (d *verify.DependencyGraph, tree []int32, err error) {
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
			n := newNueSearch(a.r, given.Clone(), verify.UpDownOrder(a.r.Graph(), ranks), settings{})
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
		n := newNueSearch(a.r, d, d.Positions(), settings{})
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

// addition is the state of Complete and Patch.
type addition struct {
	r                 *routes.Routes
	connected         *graph.Hops
	cas, switches     []gap // of LIDs of CAs, and of switches
	dropped           []gap // of patch: LIDs whose packets some switch drops
	toCAs, toSwitches tally
	open              []gap // the gaps that toEach left
}

// tally counts entries of switches with CAs: entries that were added, and entries that could not
// be added.
type tally struct{ added, missing int }

// gap is a LID to which some switches with CAs have no path.
type gap struct {
	d      int // the switch it is on
	dest   graph.Dest
	before []uint8 // entries of all switches
	old    []uint8 // for Patch: entries of the tables before, which are changed last; nil: none
	left   int     // entries that toEach and closeRest could not add
}

// findGaps finds the gaps.
func (a *addition) findGaps(h *graph.Hops) {
	g := a.r.Graph()
	endpoints := g.Endpoints()
	for d := range g.Switches() {
		missing := false
		for s := range g.Switches() {
			missing = missing || endpoints[s] > 0 && h.Distance(s, d) < 0 && a.connected.Distance(s, d) >= 0
		}
		if !missing {
			continue
		}
		for _, dest := range g.DestsOf(d) {
			if x := (gap{d: d, dest: dest, before: a.r.Column(dest.LID)}); dest.Out == 0 {
				a.switches = append(a.switches, x)
			} else {
				a.cas = append(a.cas, x)
			}
		}
	}
}

// close adds the paths it can, and reports whether none is missing.
func (a *addition) close(n *nueSearch, x gap, count *tally) bool {
	had := n.resume(x)
	n.search()
	return a.keepFound(n, x, had, count)
}

// keepFound adds the paths that a search has found to the paths of the switches in had, and reports
// whether none is missing.
func (a *addition) keepFound(n *nueSearch, x gap, had []bool, count *tally) bool {
	all := true
	for s, endpoints := range n.endpoints {
		switch {
		case endpoints == 0 || a.connected.Distance(s, x.d) < 0:
		case !n.settled[s]:
			all = false
			count.missing++
		case !had[s]:
			count.added++
		}
	}
	n.finish(x.dest)
	if n.changed != nil {
		n.changed.addChanged(a.r, []gap{x})
	}
	return all
}

// closeRest searches for the paths to LIDs of switches that byTurning left, with few cycle tests. Where
// that leaves some out, the LID takes the paths of an escape tree whose turns are in d; nil: it does not.
func (a *addition) closeRest(ctx context.Context, d *verify.DependencyGraph, tree []int32) (escaped int, err error) {
	n := newNueSearch(a.r, d, d.Positions(), settings{tests: testsOfLast})
	n.tree = tree
	for _, x := range a.switches {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		before := a.toSwitches.missing
		if !a.close(n, x, &a.toSwitches) && tree != nil {
			x.left = a.toSwitches.missing - before
			a.escape(n, x, &a.toSwitches)
		}
	}
	return n.escaped, nil
}

// escape gives a LID that lacks paths the paths of the escape tree, if the tree reaches it. Switches that no
// packet of CAs passes keep their entries, which lead to others.
func (a *addition) escape(n *nueSearch, x gap, count *tally) {
	if !n.inTree(x.d) {
		return
	}
	n.takeEscape(x.d, x.dest)
	count.added, count.missing = count.added+x.left, count.missing-x.left
	for s, port := range x.before {
		if entry := &a.r.Row(s)[x.dest.LID]; *entry == routes.NoPort {
			*entry = port
		}
	}
}

// restore takes all entries back that were added.
func (a *addition) restore(gaps []gap) {
	for _, x := range gaps {
		for s, port := range x.before {
			a.r.Row(s)[x.dest.LID] = port
		}
	}
}

// ofSwitches is the kind of entries that lead to the LIDs of switches.
const ofSwitches = " that only management packets use"

// note reports the result for missing entries of one kind.
func (a *addition) note(kind string, n tally) {
	what := func(n int) string {
		return "up*/down* has no path for " + plural.Count(n, "entry", "entries") + " of switches with hosts" + kind
	}
	if n.added > 0 {
		a.r.Notes = append(a.r.Notes, what(n.added)+"; other paths are used, which close no credit loop")
	}
	if n.missing > 0 {
		a.r.Notes = append(a.r.Notes, what(n.missing)+"; every other path would close a credit loop")
	}
}

// maxAttempts is how often toEach tries different orders of the LIDs of CAs, and maxSearches the
// number of searches after which it begins no further attempt: each takes a millisecond in a
// large network.
const (
	maxAttempts = 8
	maxSearches = 10000
)

// testsOfLast bounds the cycle tests of the searches for paths to switches that byTurning leaves,
// in passes through the whole graph: some tenths of a second if it is large.
const testsOfLast = 100

// toEach searches for the paths of all gaps, and returns the dependencies, including those of the
// new paths. Which paths are still possible for a LID depends on the LIDs before it, so LIDs that
// lack paths at the end go first in the next attempt, which starts again.
func (a *addition) toEach(ctx context.Context, count *tally, gaps []gap, attempts int, begin func() *nueSearch) (*verify.DependencyGraph, error) {
	before := *count
	for attempt := 1; ; attempt++ {
		*count = before
		n := begin()
		var open, closed []gap
		for _, x := range gaps {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			before := count.missing
			if a.close(n, x, count) {
				closed = append(closed, x)
			} else {
				x.left = count.missing - before
				open = append(open, x)
			}
		}
		if len(open) == 0 || attempt == attempts || attempt*len(gaps) > maxSearches {
			a.open = open
			return n.order.DependencyGraph, nil
		}
		gaps = append(open, closed...)
		a.restore(gaps)
	}
}
