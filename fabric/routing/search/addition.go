package search

import (
	"context"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// addition is the state of Complete and Patch.
type addition struct {
	r                 *routes.Routes
	connected         *graph.Hops
	cas, switches     []gap // of LIDs of CAs, and of switches
	dropped           []gap // of patch: LIDs whose packets some switch drops
	toCAs, toSwitches tally
	open              []gap // those that toEach left
}

// tally counts entries of switches with CAs: those that were added, and those that
// could not be.
type tally struct{ added, missing int }

// gap is a LID to which some switches with CAs have no path.
type gap struct {
	d      int // the switch it is on
	dest   graph.Dest
	before []uint8 // entries of all switches
	old    []uint8 // of Patch: those of the tables before, which are changed last; nil: none
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

// keepFound adds the paths that a search has found beside those that packets from the switches in had
// take, and reports whether none is missing.
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
	n := newNueSearch(a.r, d, d.Positions())
	n.tree = tree
	n.order.Budget = testsOfLast * len(n.g.Channels())
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

// escape gives a LID that lacks paths those of the escape tree, if it is in the same part of the network.
// Switches that no packet of CAs passes keep their entries, which lead to others.
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
const ofSwitches = " to switches only, which management packets take,"

// NoteAddedToSwitches notes that n entries that lead to switches got a path.
func NoteAddedToSwitches(r *routes.Routes, n int) {
	(&addition{r: r}).note(ofSwitches, tally{added: n})
}

// note reports the result for missing entries of one kind.
func (a *addition) note(kind string, n tally) {
	what := func(n int) string {
		return plural.Count(n, "entry", "entries") + " of switches with CAs" + kind + " without a path that goes up and then down"
	}
	if n.added > 0 {
		a.r.Notes = append(a.r.Notes, what(n.added)+"; paths were added that close no credit loop with all others")
	}
	if n.missing > 0 {
		a.r.Notes = append(a.r.Notes, what(n.missing)+"; no path was found that closes no credit loop")
	}
}

// maxAttempts is how often toEach tries different orders of the LIDs of CAs, and
// maxSearches how many searches it begins an attempt after: each takes a millisecond
// in a large network.
const (
	maxAttempts = 8
	maxSearches = 10000
)

// testsOfLast bounds the searches for paths to switches that byTurning leaves: to so
// many cycle tests that go through the whole graph, some tenths of a second where it
// is large.
const testsOfLast = 100

// toEach searches for the paths of all gaps, and returns the dependencies with those
// of the paths it found. Which are still possible for a LID depends on the LIDs
// before it, so those that lack paths at the end go first in the next attempt, which
// starts again.
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
