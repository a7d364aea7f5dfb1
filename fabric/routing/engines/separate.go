package engines

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// separates reports whether the options leave the choice among next hops to Assign.
func (a *assigner) separates() bool {
	return a.Prefer == nil && (a.byLoad() || a.Policy == RoundRobin || a.Policy == DModK && a.Number == nil && a.Divider == nil)
}

// separate gives the LIDs of each port paths that have as few links, and then
// switches, in common with the paths of its earlier LIDs as the next hops allow: from the
// switches near the port to the far ones, each takes the next hop whose path shares
// the least. Switches without CAs, at which no path begins, keep their choice. A LID
// whose path shares nothing stays where the policy put it, and one that is kept
// where it was.
//
// Time: O(P) for each LID after the first of a port and each switch, P links a path,
// and as much for each next hop where a path shares something.
func (a *assigner) separate(ctx context.Context) error {
	g := a.routes.Graph()
	var several []int
	for i := range g.Terminals() {
		if t := &g.Terminals()[i]; t.Count > 1 && t.Switch >= 0 {
			several = append(several, i)
		}
	}
	if len(several) == 0 {
		return nil
	}
	a.endpoints = g.Endpoints()
	if a.next == nil {
		a.next = make([]graph.NextHops, len(g.Switches()))
		if err := graph.Each(ctx, g.Workers(), len(g.Switches()), func(_, s int) { a.next[s].Load(a.h, s) }); err != nil {
			return err
		}
	}
	wanted := func(mad.LID) bool { return true }
	if a.LIDs != nil {
		set := make([]bool, int(a.routes.Top())+1)
		for _, lid := range a.LIDs {
			if int(lid) < len(set) {
				set[lid] = true
			}
		}
		wanted = func(lid mad.LID) bool { return set[lid] }
	}
	type memory struct {
		*verify.Siblings
		home  int
		order []int32 // switches, nearest to home first
	}
	workers := make([]memory, g.Workers())
	return graph.Each(ctx, g.Workers(), len(several), func(worker, i int) {
		w, t := &workers[worker], &g.Terminals()[several[i]]
		if w.Siblings == nil {
			w.Siblings, w.home = verify.NewSiblings(g), -1
		}
		if w.home != t.Switch {
			w.home, w.order = t.Switch, a.nearest(w.order[:0], t.Switch)
		}
		w.Read(a.routes, t)
		for k := 1; k < t.Count; k++ {
			if wanted(t.LID + mad.LID(k)) {
				a.separateLID(w.Siblings, t, k, w.order)
			}
		}
	})
}

// nearest are the switches with CAs that have a path to home, nearest first, home left
// out.
func (a *assigner) nearest(order []int32, home int) []int32 {
	for s := range a.routes.Graph().Switches() {
		if a.h.Distance(s, home) > 0 && a.endpoints[s] > 0 {
			order = append(order, int32(s))
		}
	}
	slices.SortStableFunc(order, func(s, u int32) int { return a.h.Distance(int(s), home) - a.h.Distance(int(u), home) })
	return order
}

// separateLID is separate for the k-th LID of t.
func (a *assigner) separateLID(x *verify.Siblings, t *graph.Terminal, k int, order []int32) {
	g, home, via := x.Graph, int32(t.Switch), x.Via[k]
	shared := func(c int32) (n int) { // by the path over channel c: a link counts more than any number of switches
		for range g.Switches() {
			if x.Takes(c) {
				n += 1 << 16
			}
			s := g.ChannelTo(c)
			if s == home {
				return n
			}
			if x.Passes(s) {
				n++
			}
			if c = via[s]; c < 0 {
				break
			}
		}
		return 1 << 30
	}
	for _, s := range order {
		if via[s] < 0 || a.keep != nil && a.keep.Row(int(s)).Port(t.LID+mad.LID(k)) == g.Channels()[via[s]].Port {
			continue
		}
		for i := range k {
			x.Mark(s, home, i)
		}
		best, least := via[s], shared(via[s])
		if least > 0 {
			a.eachNext(s, home, func(c int32) {
				if n := shared(c); n < least {
					best, least = c, n
				}
			})
		}
		x.Forget()
		if best != via[s] {
			via[s] = best
			a.routes.Row(int(s))[int(t.LID)+k] = g.Channels()[best].Port
		}
	}
}

// eachNext calls do for the channels of the next hops from switch s to switch home.
func (a *assigner) eachNext(s, home int32, do func(c int32)) {
	g := a.routes.Graph()
	nbrs := g.Neighbours(int(s))
	for i := range a.next[s].Neighbours(int(home)) {
		for _, p := range nbrs[i].Ports {
			do(g.Target(s, p).Channel())
		}
	}
}
