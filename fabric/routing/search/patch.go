package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/walk"
)

// Patch is r for g with the paths that arrive there unchanged, and others in
// place of those that do not. They close no credit loop, unless those that arrive have
// one already: then they are the shortest ways to a switch from which packets arrive.
// whole: no credit loop is in them, and all switches with CAs have all paths.
//
// Time: O(L*S), and searches as of nue for the LIDs with a path that does not arrive.
func Patch(ctx context.Context, r *routes.Routes, g *graph.Graph) (t *routes.Routes, whole bool, err error) {
	t = r.On(g)
	t.SetOrigin(r.Origin())
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, false, err
	}
	a := addition{r: t, connected: connected}
	if err := a.findBroken(ctx, r.Graph()); err != nil {
		return nil, false, err
	}
	graph, err := walk.Dependencies(ctx, t, walk.SelectEndpoints(g, 0))
	if err != nil {
		return nil, false, err
	}
	loop := !graph.Acyclic()
	if loop {
		t.Notes = append(t.Notes, "repair: the remaining paths already have a credit loop, so the new paths are the shortest ones")
	} else if err := a.closeAll(ctx, graph); err != nil {
		return nil, false, err
	}
	return t, !loop && a.toCAs.missing+a.toSwitches.missing == 0, a.shortest(ctx, loop)
}

// closeAll searches for the paths that are missing from switches with CAs.
func (a *addition) closeAll(ctx context.Context, graph *cdg.Graph) error {
	t := a.r
	load, err := walk.CountAllRoutes(ctx, t)
	if err != nil {
		return err
	}
	both, err := walk.WithSwitches(ctx, t, graph)
	if err != nil {
		return err
	}
	// With those of packets to switches, or, where that leaves some out, without.
	for i, with := range []*cdg.Graph{both, graph} {
		if i > 0 {
			a.restore(a.cas)
			a.toCAs = tally{}
		}
		if graph, err = a.toEach(ctx, &a.toCAs, a.cas, maxAttempts, func() *nueSearch {
			d := with.Clone()
			n := newNueSearch(t, d, d.Positions())
			n.load = slices.Clone(load)
			return n
		}); err != nil {
			return err
		}
		if a.toCAs.missing == 0 {
			break
		}
	}
	if n := a.toCAs.missing; n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("repair: packets are dropped by %s of switches with CAs: no path was found that closes no credit loop", plural.Count(n, "entry", "entries")))
	}
	if graph, err = walk.WithSwitches(ctx, t, graph); err != nil {
		return err
	}
	_, err = a.toEach(ctx, &a.toSwitches, a.switches, 1, func() *nueSearch {
		n := newNueSearch(t, graph, graph.Positions())
		n.order.Budget = testsOfLast * len(t.Graph().Channels())
		return n
	})
	return err
}

// findBroken drops the entries for packets that do not arrive, of all switches, and
// lists the LIDs that have such, for those of CAs and for others. What packets of CAs do
// not pass through counts as dropped in the gaps: its dependencies are in no graph. So
// does what a switch has that had no CAs in the older graph.
func (a *addition) findBroken(ctx context.Context, old *graph.Graph) error {
	g := a.r.Graph()
	endpoints, w := g.Endpoints(), walk.New(g)
	fresh := g.Endpoints()
	for s, n := range old.Endpoints() {
		if now := g.SwitchByGUID(old.Switches()[s].GUID()); n > 0 && now >= 0 {
			fresh[now] = 0
		}
	}
	for d := range g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, dest := range g.DestsOf(d) {
			a.r.Row(d)[dest.LID] = dest.Out
			x := gap{d: d, dest: dest, before: slices.Repeat([]uint8{routes.NoPort}, len(g.Switches()))}
			entries := a.r.Column(dest.LID)
			dropped, ofCAs := false, false
			w.Begin()
			for _, withCAs := range []bool{true, false} {
				for s, n := range endpoints {
					if (n > 0 && fresh[s] == 0) != withCAs {
						continue
					}
					if fresh[s] > 0 && s != d && w.State[s] == walk.Unknown {
						entries[s] = routes.NoPort
					}
					if w.From(int32(s), entries, dest.Terminal); w.State[s] < 0 {
						a.r.Row(s)[dest.LID] = routes.NoPort
						lost := a.connected.Distance(s, d) >= 0
						dropped, ofCAs = dropped || lost, ofCAs || lost && n > 0
					}
				}
				for _, s := range w.Order {
					if withCAs && w.State[s] >= 0 {
						x.before[s] = entries[s]
					}
				}
			}
			switch {
			case ofCAs && dest.Out > 0:
				a.cas = append(a.cas, x)
			case ofCAs:
				a.switches = append(a.switches, x)
			}
			if dropped {
				a.dropped = append(a.dropped, x)
			}
		}
	}
	return nil
}

// shortest gives what is still dropped the shortest way to a switch from which packets
// arrive: on all switches, or on those without CAs alone, which forward no other
// packets.
func (a *addition) shortest(ctx context.Context, all bool) error {
	g := a.r.Graph()
	endpoints := g.Endpoints()
	var queue []int32
	for _, x := range a.dropped {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		queue = queue[:0]
		for s := range g.Switches() {
			if a.r.Row(s)[x.dest.LID] != routes.NoPort {
				queue = append(queue, int32(s))
			}
		}
		for i := 0; i < len(queue); i++ {
			t := queue[i]
			for c := g.FirstChannel(int(t)); c < g.FirstChannel(int(t+1)); c++ {
				s := g.ChannelTo(c)
				if entry := &a.r.Row(int(s))[x.dest.LID]; *entry == routes.NoPort && (all || endpoints[s] == 0) {
					*entry = g.Channels()[c].PeerPort
					queue = append(queue, s)
				}
			}
		}
	}
	return nil
}
