package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// Compatible returns tables near own by which the tables in force, old, can be replaced without
// a credit loop on the way, if the entries for a LID change from the destination backwards: the
// dependencies of old, of the new tables, and of packets that meet an entry of old and then a new
// one, close no cycle. A LID has the paths of own if that holds with them; else the paths of old
// if they arrive; else other paths. If there are no such tables, drains reports that packets that
// meet entries of both do not count, so that the change may need drains. Nil: old has a credit
// loop, tables have virtual lanes, or some packets would not arrive.
//
// Time: O(L*S), a cycle test for each dependency that is new, and searches of nue for LIDs whose
// paths in old do not arrive.
func Compatible(ctx context.Context, old, own *routes.Routes) (t *routes.Routes, drains bool, err error) {
	g := own.Graph()
	if old.SL2VL != nil || own.SL2VL != nil || own.SL.Any() {
		return nil, false, nil
	}
	x := compatible{old: old.On(g), own: own, w: verify.NewWalk(g)}
	hosts, err := verify.Dependencies(ctx, x.old, verify.SelectEndpoints(g, 0))
	if err != nil || !hosts.Acyclic() {
		return nil, false, err
	}
	both, err := verify.WithSwitches(ctx, x.old, hosts)
	if err != nil {
		return nil, false, err
	}
	if x.load, err = verify.CountAllRoutes(ctx, own); err != nil {
		return nil, false, err
	}
	// With the paths of packets to switches in force, or, if then paths are missing, without.
	for _, x.mixed = range []bool{true, false} {
		for _, given := range []*verify.DependencyGraph{both, hosts} {
			if t, err := x.tables(ctx, given); t != nil || err != nil {
				return t, !x.mixed, err
			}
		}
	}
	return nil, false, nil
}

// compatible is the state of Compatible.
type compatible struct {
	old, own *routes.Routes
	load     []int64
	w        *verify.Walk
	mixed    bool      // packets that meet entries of old and then new ones count
	older    [][]int32 // by switch: the channels by which packets to a LID come by old
	t        *routes.Routes
	n        *nueSearch
	taken    int // LIDs with the paths of own
	kept     int // LIDs with the paths of old
}

// tables returns the tables of Compatible beside given dependencies.
func (x *compatible) tables(ctx context.Context, given *verify.DependencyGraph) (*routes.Routes, error) {
	g := x.own.Graph()
	var broken, whole, switches []gap
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			switch lid := (gap{d: d, dest: dest, before: x.old.Column(dest.LID)}); {
			case slices.Equal(lid.before, x.own.Column(dest.LID)):
			case dest.Out == 0:
				switches = append(switches, lid)
			case x.arrives(lid):
				whole = append(whole, lid)
			default:
				broken = append(broken, lid)
			}
		}
	}
	for attempt := 1; ; attempt++ {
		x.t, x.taken, x.kept = x.old.Clone(), 0, 0
		x.t.CopyShared()
		deps := given.Clone()
		x.n = newNueSearch(x.t, deps, deps.Positions(), settings{})
		x.n.load, x.older = slices.Clone(x.load), make([][]int32, len(g.Switches()))
		if x.mixed {
			x.n.older = x.older
		}
		var open, closed []gap
		for _, lid := range broken {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if x.take(lid) || x.resume(lid) || x.reroute(lid) {
				closed = append(closed, lid)
			} else {
				open = append(open, lid)
			}
		}
		if len(open) == 0 {
			break
		}
		if attempt == maxAttempts || attempt*len(broken) > maxSearches {
			return nil, nil
		}
		broken = append(open, closed...)
	}
	for _, lid := range whole {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !x.take(lid) {
			x.kept++
		}
	}
	x.n.allowTests(testsOfLast)
	for _, lid := range switches {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case x.take(lid):
		case x.arrives(lid):
			x.kept++
		case !x.resume(lid): // management packets alone
			x.write(lid, x.own.Column(lid.dest.LID))
		}
	}
	x.t.Engine, x.t.RunInOpenSM, x.t.ReadNotes, x.t.Notes = x.own.Engine, x.own.RunInOpenSM, x.own.ReadNotes, slices.Clone(x.own.Notes)
	x.t.Notes = append(x.t.Notes, fmt.Sprintf("LIDs with the paths of %[2]s: %[1]d; with the current ones: %[3]d; with others: %[4]d, which close no credit loop with the current ones", x.taken, x.own.Engine, x.kept, len(broken)+len(whole)+len(switches)-x.taken-x.kept))
	return x.t, nil
}

// arrives reports whether packets from all switches with CAs that own reaches the LID from
// arrive by the entries in force.
func (x *compatible) arrives(lid gap) bool {
	own := x.own.Column(lid.dest.LID)
	reaches := make([]bool, len(own))
	for _, entries := range [][]uint8{own, lid.before} {
		x.w.Begin()
		for s, n := range x.own.Graph().Endpoints() {
			if n == 0 {
				continue
			}
			x.w.From(int32(s), entries, lid.dest.Terminal)
			if arrives := x.w.State[s] >= 0; reaches[s] && !arrives {
				return false
			} else {
				reaches[s] = arrives
			}
		}
	}
	return true
}

// follow finds the channels that packets to a LID take by the entries in force, and the switches
// that packets reach by these and by entries.
func (x *compatible) follow(lid gap, entries []uint8) (comes []bool) {
	g := x.own.Graph()
	comes = make([]bool, len(lid.before))
	for s := range x.older {
		x.older[s] = x.older[s][:0]
	}
	var queue []int32
	visit := func(s int32) {
		if !comes[s] {
			comes[s] = true
			queue = append(queue, s)
		}
	}
	for s, n := range x.n.endpoints {
		if n > 0 {
			visit(int32(s))
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if c := g.Target(s, lid.before[s]).Channel(); c >= 0 {
			to := g.ChannelTo(c)
			x.older[to] = append(x.older[to], c)
			visit(to)
		}
	}
	for i := 0; entries != nil && i < len(queue); i++ {
		s := queue[i]
		if c := g.Target(s, entries[s]).Channel(); c >= 0 {
			visit(g.ChannelTo(c))
		}
	}
	return comes
}

// take gives a LID the paths of own, and reports whether it could.
func (x *compatible) take(lid gap) bool {
	g, own := x.own.Graph(), x.own.Column(lid.dest.LID)
	order := x.n.order
	fits := true
	for s, comes := range x.follow(lid, own) {
		c := g.Target(int32(s), own[s]).Channel()
		if !comes || c < 0 {
			continue
		}
		if next := g.Target(g.ChannelTo(c), own[g.ChannelTo(c)]).Channel(); next >= 0 {
			fits = fits && order.TryAdd(c, next)
		}
		if fits = fits && x.n.takesOlder(c); !fits {
			break
		}
	}
	order.Commit(func(v, w int32) bool { return fits })
	if fits {
		x.taken++
		x.write(lid, own)
	}
	return fits
}

// resume gives other paths to the switches from which packets to a LID do not arrive; switches that
// packets of CAs reach keep paths that arrive. It reports whether it could.
func (x *compatible) resume(lid gap) bool {
	used := gap{d: lid.d, dest: lid.dest, before: slices.Clone(lid.before)}
	for s, comes := range x.follow(lid, nil) {
		if !comes {
			used.before[s] = routes.NoPort
		}
	}
	x.n.resume(used)
	return x.finish(lid)
}

// reroute gives a LID other paths from all switches, and reports whether it could.
func (x *compatible) reroute(lid gap) bool {
	x.follow(lid, nil)
	x.n.bound = nil
	x.n.begin(lid.d)
	return x.finish(lid)
}

// finish searches for the paths, and takes them if none is missing.
func (x *compatible) finish(lid gap) bool {
	x.n.search()
	for s, n := range x.n.endpoints {
		if n > 0 && !x.n.settled[s] && x.n.component[s] == x.n.component[lid.d] {
			x.n.order.Commit(func(v, w int32) bool { return false })
			return false
		}
	}
	x.attach(lid)
	x.n.finish(lid.dest)
	for s, via := range x.n.via {
		if via >= 0 { // of switches that no packet of a CA comes to, too
			x.t.Row(s)[lid.dest.LID] = x.own.Graph().Channels()[via].Port
		}
	}
	return true
}

// attach gives switches without a path the path of a neighbour: switches that packets may reach, as
// far as that closes no cycle; other switches by the entry in force, if its packets now arrive.
func (x *compatible) attach(lid gap) {
	g, n := x.own.Graph(), x.n
	older := func(s int32) bool { return len(x.older[s]) > 0 }
	x.spread(func(s, back int32) bool {
		next := n.via[g.ChannelTo(back)]
		return older(s) && (next < 0 || n.order.TryAdd(back, next)) && n.takesOlder(back)
	})
	x.spread(func(s, back int32) bool { return !older(s) && g.Target(s, lid.before[s]).Channel() == back })
	x.spread(func(s, back int32) bool { return !older(s) })
}

// spread gives switches without a path the channel to a neighbour that has one, if take agrees,
// beginning at the switches that have a path.
func (x *compatible) spread(take func(s, back int32) bool) {
	g, n := x.own.Graph(), x.n
	n.collect()
	for i := 0; i < len(n.done); i++ {
		to := n.done[i]
		for c := g.FirstChannel(int(to)); c < g.FirstChannel(int(to+1)); c++ {
			if s, back := g.ChannelTo(c), g.Channels()[c].Reverse; !n.settled[s] && take(s, back) {
				n.fix(s, back, n.cost[to]+hopCost)
				n.done = append(n.done, s)
			}
		}
	}
}

// write gives a LID entries.
func (x *compatible) write(lid gap, entries []uint8) {
	for s, port := range entries {
		x.t.Row(s)[lid.dest.LID] = port
	}
}
