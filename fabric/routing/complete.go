package routing

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// complete adds entries to the tables of up*/down* under ranks, with distances h,
// where up*/down* has no path but the network is connected. Switches with CAs get
// paths that close no cycle in the channel dependency graph of all paths: first to
// CAs, by searches as of nue; then to switches, whose LIDs only management packets
// have, by way of a few switches where such paths turn up again, and, if that leaves
// some, by searches too. Other switches, from which only their own management packets
// come, get shortest paths: those of keep where they are shortest paths still. Notes
// say what was added, and the basis of r how many entries that lead to CAs could not be.
//
// Time: up to maxAttempts searches as of nue for each LID of a CA with missing paths;
// for those of switches up to maxTurns searches of the dependency graph, O(C + E)
// each for E dependencies, and the length of the paths.
func complete(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes) error {
	connected, err := graph.AllHops(ctx, r.Graph())
	if err != nil {
		return err
	}
	a := addition{r: r, connected: connected}
	if lack, all := a.countPairs(h); lack*maxLack > all && len(r.Graph().Dests()) > manyLIDs {
		basisOf(r).addGaps(lack)
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d pairs of switches with CAs have no path that goes up and then down", lack, all))
		return nil
	}
	a.findGaps(h)
	if err := a.addPaths(ctx, ranks); err != nil {
		return err
	}
	if len(a.cas) > 0 {
		basisOf(r).addGaps(a.toCAs.missing)
	}
	a.note("", a.toCAs)
	a.note(ofSwitches, a.toSwitches)
	return fillIn(ctx, r, h, connected, keep)
}

// maxLack: where more than one in so many pairs of switches with CAs lacks a path, the
// network has not the shape that the ranks suppose; and where there are more than
// manyLIDs, no paths are added then, for the searches would take minutes.
const (
	maxLack  = 10
	manyLIDs = 2000
)

// countPairs counts the pairs of switches with CAs that are connected, and those that
// lack a path.
func (a *addition) countPairs(h *graph.Hops) (lack, all int) {
	endpoints := a.r.Graph().Endpoints()
	for s := range endpoints {
		for d := range endpoints {
			if endpoints[s] > 0 && endpoints[d] > 0 && s != d && a.connected.Distance(s, d) >= 0 {
				all++
				if h.Distance(s, d) < 0 {
					lack++
				}
			}
		}
	}
	return lack, all
}

// ofSwitches is the kind of entries that lead to the LIDs of switches.
const ofSwitches = " to switches only, which management packets take,"

// note says what became of missing entries of one kind.
func (a *addition) note(kind string, n tally) {
	const what = "%d entries of switches with CAs%s have no path that goes up and then down"
	if n.added > 0 {
		a.r.Notes = append(a.r.Notes, fmt.Sprintf(what+": they got one that closes no credit loop with all others", n.added, kind))
	}
	if n.missing > 0 {
		a.r.Notes = append(a.r.Notes, fmt.Sprintf(what+", nor was one found that closes no credit loop", n.missing, kind))
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

// addPaths is the part of complete for switches with CAs.
func (a *addition) addPaths(ctx context.Context, ranks *graph.Ranks) error {
	if len(a.cas)+len(a.switches) == 0 {
		return nil
	}
	g := a.r.Graph()
	if len(a.cas) == 0 {
		if err := a.byTurning(ctx, newStaticDownUp(a.r, ranks)); err != nil || len(a.switches) == 0 {
			return err
		}
	}
	graph, err := dependencies(ctx, a.r, SelectEndpoints(a.r.Graph(), 0))
	if err != nil {
		return err
	}
	if len(a.cas) > 0 {
		load, err := routesLoad(ctx, a.r)
		if err != nil {
			return err
		}
		if graph, err = a.toEach(ctx, &a.toCAs, a.cas, maxAttempts, func() *nueSearch {
			n := newNueSearch(a.r, graph.Clone(), cdg.UpDownOrder(g, ranks))
			n.load = slices.Clone(load)
			return n
		}); err != nil {
			return err
		}
	}
	if len(a.switches) == 0 {
		return nil
	}
	if graph, err = withSwitches(ctx, a.r, graph); err != nil {
		return err
	}
	if err := a.byTurning(ctx, newDownUp(a.r, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	_, err = a.toEach(ctx, &a.toSwitches, a.switches, 1, func() *nueSearch {
		n := newNueSearch(a.r, graph, graph.Positions())
		n.order.Budget = testsOfLast * len(g.Channels())
		return n
	})
	return err
}

// toEach searches for the paths of all gaps, and returns the dependencies with those
// of the paths it found. Which are still possible for a LID depends on the LIDs
// before it, so those that lack paths at the end go first in the next attempt, which
// begins anew.
func (a *addition) toEach(ctx context.Context, count *tally, gaps []gap, attempts int, begin func() *nueSearch) (*cdg.Graph, error) {
	before := *count
	for attempt := 1; ; attempt++ {
		*count = before
		n := begin()
		var open, closed []gap
		for _, x := range gaps {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if a.close(n, x, count) {
				closed = append(closed, x)
			} else {
				open = append(open, x)
			}
		}
		if len(open) == 0 || attempt == attempts || attempt*len(gaps) > maxSearches {
			return n.order.Graph, nil
		}
		gaps = append(open, closed...)
		a.restore(gaps)
	}
}

// withSwitches is graph with the dependencies of packets from CAs to switches, or
// graph itself where both together have a cycle.
func withSwitches(ctx context.Context, r *routes.Routes, graph *cdg.Graph) (*cdg.Graph, error) {
	e := SelectEndpoints(r.Graph(), 0)
	clear(e.Wanted)
	for _, d := range r.Graph().Dests() {
		e.Wanted[d.LID] = d.Out == 0
	}
	all, err := dependencies(ctx, r, e)
	if err != nil {
		return nil, err
	}
	all.Union(graph)
	if !all.Acyclic() {
		return graph, nil
	}
	return all, nil
}

// addition is the state of complete.
type addition struct {
	r                 *routes.Routes
	connected         *graph.Hops
	cas, switches     []gap // of LIDs of CAs, and of switches
	dropped           []gap // of patch: LIDs whose packets some switch drops
	toCAs, toSwitches tally
}

// tally counts entries of switches with CAs: those that were added, and those that
// could not be.
type tally struct{ added, missing int }

// gap is a LID to which some switches with CAs have no path.
type gap struct {
	d      int // the switch it is on
	dest   graph.Dest
	before []uint8 // entries of all switches
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
			if x := (gap{d, dest, a.r.Column(dest.LID)}); dest.Out == 0 {
				a.switches = append(a.switches, x)
			} else {
				a.cas = append(a.cas, x)
			}
		}
	}
}

// close adds the paths it can, and says whether none is missing.
func (a *addition) close(n *nueSearch, x gap, count *tally) bool {
	had := n.resume(x)
	n.search()
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
	return all
}

// restore takes all entries back that were added.
func (a *addition) restore(gaps []gap) {
	for _, x := range gaps {
		for s, port := range x.before {
			a.r.Row(s)[x.dest.LID] = port
		}
	}
}

// resume starts the search for a LID with the switches settled that have a path to
// it already, and returns which these are.
func (n *nueSearch) resume(x gap) []bool {
	n.begin(x.d)
	n.queue = n.queue[:0]
	if n.walk == nil {
		n.walk = newWalk(n.g)
	}
	w := n.walk
	w.begin()
	for s := range x.before {
		w.from(int32(s), x.before, x.dest.Terminal)
	}
	for _, s := range w.order {
		if w.state[s] >= 0 {
			n.fix(s, w.via[s], hopCost*int64(w.state[s]))
		}
	}
	var unsettled []int
	for s, endpoints := range n.endpoints {
		if endpoints > 0 && !n.settled[s] {
			unsettled = append(unsettled, s)
		}
	}
	n.bound = graph.DistancesFrom(n.g, unsettled)
	had := slices.Clone(n.settled)
	for s, has := range had {
		for c := n.g.FirstChannel(s); has && c < n.g.FirstChannel(s+1); c++ {
			n.relax(n.g.Channels()[c].Reverse, n.cost[s])
		}
	}
	return had
}

// fillIn is the part of complete for switches without CAs, with shortest paths as
// far as a switch that has a path already. h, if not nil, says which have one. Only
// management packets of these switches take them, so credit loops are not looked for.
//
// Time: O(S*(C + L)).
func fillIn(ctx context.Context, r *routes.Routes, h, connected *graph.Hops, keep *routes.Routes) error {
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
