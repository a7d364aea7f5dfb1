package routing

import (
	"context"
	"fmt"
	"slices"
)

// complete adds entries to the tables of up*/down* under ranks, with distances h,
// where up*/down* has no path but the network is connected. Switches with CAs get
// paths that close no cycle in the channel dependency graph of all paths. Other
// switches, from which only their own management packets come, get shortest paths:
// those of keep where they are shortest paths still. Notes say what was added, and
// r.missing how many entries that lead to CAs could not be.
//
// Time: up to maxAttempts searches as of nue for each LID with missing paths.
func (r *Routes) complete(ctx context.Context, h *Hops, ranks *Ranks, keep *Routes) error {
	connected, err := r.graph.Hops(ctx)
	if err != nil {
		return err
	}
	added, missing, err := r.addPaths(ctx, h, connected, ranks)
	if err != nil {
		return err
	}
	if added > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down: they got one that closes no credit loop with all others", added))
	}
	if missing > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d entries of switches with CAs have no path that goes up and then down, nor could one be added without a credit loop", missing))
	}
	r.missing = missing
	return r.fillIn(ctx, h, connected, keep)
}

// maxAttempts is how often addPaths tries different orders of LIDs.
const maxAttempts = 8

// addPaths is the part of complete for switches with CAs. Which dependencies are
// still possible for a LID depends on the LIDs before it, so those that lack paths
// at the end go first in the next attempt.
func (r *Routes) addPaths(ctx context.Context, h, connected *Hops, ranks *Ranks) (added, missing int, err error) {
	a := addition{r: r, connected: connected}
	a.findGaps(h)
	if len(a.gaps) == 0 {
		return 0, 0, nil
	}
	graph, err := r.dependencies(ctx)
	if err != nil {
		return 0, 0, err
	}
	load := make([]int64, len(r.graph.channels))
	if a.gaps[0].dest.out > 0 { // little traffic goes to switches
		if load, err = r.load(ctx); err != nil {
			return 0, 0, err
		}
	}
	for attempt := 1; ; attempt++ {
		a.added, a.missing = 0, 0
		n := newNueSearch(r, graph.clone(), ranks)
		n.load = slices.Clone(load)
		var open, closed []gap
		for _, x := range a.gaps {
			if ctx.Err() != nil {
				return 0, 0, context.Cause(ctx)
			}
			if a.close(n, x) {
				closed = append(closed, x)
			} else {
				open = append(open, x)
			}
		}
		if len(open) == 0 || attempt == maxAttempts {
			return a.added, a.missing, nil
		}
		a.gaps = append(open, closed...)
		a.restore()
	}
}

// addition is the state of addPaths.
type addition struct {
	r         *Routes
	connected *Hops
	gaps      []gap
	// Entries of switches with CAs that were added, and that are missing and
	// lead to CAs.
	added, missing int
}

// gap is a LID to which some switches with CAs have no path.
type gap struct {
	d      int // the switch it is on
	dest   dest
	before []uint8 // entries of all switches
}

// findGaps finds the gaps: LIDs of CAs, which matter more, before those of switches.
func (a *addition) findGaps(h *Hops) {
	g := a.r.graph
	endpoints := g.endpointsOn()
	var ofSwitches []gap
	for d := range g.switches {
		missing := false
		for s := range g.switches {
			missing = missing || endpoints[s] > 0 && h.Distance(s, d) < 0 && a.connected.Distance(s, d) >= 0
		}
		if !missing {
			continue
		}
		for _, dest := range g.destsOf(d) {
			x := gap{d, dest, make([]uint8, len(g.switches))}
			for s := range g.switches {
				x.before[s] = a.r.Row(s)[dest.lid]
			}
			if dest.out == 0 {
				ofSwitches = append(ofSwitches, x)
			} else {
				a.gaps = append(a.gaps, x)
			}
		}
	}
	a.gaps = append(a.gaps, ofSwitches...)
}

// close adds the paths it can, and says whether none is missing.
func (a *addition) close(n *nueSearch, x gap) bool {
	had := n.resume(x)
	n.search()
	all := true
	for s, endpoints := range n.endpoints {
		switch {
		case endpoints == 0 || a.connected.Distance(s, x.d) < 0:
		case !n.settled[s]:
			all = false
			if x.dest.out > 0 {
				a.missing++
			}
		case !had[s]:
			a.added++
		}
	}
	n.finish(x.dest)
	return all
}

// restore takes all entries back that were added.
func (a *addition) restore() {
	for _, x := range a.gaps {
		for s, port := range x.before {
			a.r.Row(s)[x.dest.lid] = port
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
		w.from(int32(s), x.before, x.dest.terminal)
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
	n.bound = n.g.distancesFrom(unsettled)
	had := slices.Clone(n.settled)
	for s, has := range had {
		for c := n.g.chanBase[s]; has && c < n.g.chanBase[s+1]; c++ {
			n.relax(n.g.channels[c].Reverse, n.cost[s])
		}
	}
	return had
}

// fillIn is the part of complete for switches without CAs, with shortest paths as
// far as a switch that has a path already. h, if not nil, says which have one. Only
// management packets of these switches take them, so credit loops are not looked for.
//
// Time: O(S*(C + L)).
func (r *Routes) fillIn(ctx context.Context, h, connected *Hops, keep *Routes) error {
	g := r.graph
	endpoints := g.endpointsOn()
	nexts := make([]nextHops, g.workers)
	return g.each(ctx, len(g.switches), func(worker, s int) {
		if endpoints[s] > 0 {
			return
		}
		next, loaded := &nexts[worker], false
		row := r.Row(s)
		for d := range g.switches {
			if h != nil && h.Distance(s, d) >= 0 || connected.Distance(s, d) < 0 {
				continue
			}
			for _, dest := range g.destsOf(d) {
				if row[dest.lid] != NoPort {
					continue
				}
				if keep != nil {
					if old := keep.Row(s).Port(dest.lid); connected.isNextHop(s, d, old) {
						row[dest.lid] = old
						continue
					}
				}
				if !loaded {
					next.load(connected, s)
					loaded = true
				}
				ports, _ := next.ports(d)
				row[dest.lid] = ports[int(dest.lid)%len(ports)]
			}
		}
	})
}
