package routing

import (
	"context"
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Disjointness says how far apart the paths to the LIDs of one port are (LMC, IBA
// 7.11.1): a sender that has several paths goes on where a link or a switch fails.
type Disjointness struct {
	Ports int   // endpoints with several LIDs, on a switch
	LIDs  int   // the most of one
	Pairs int64 // of an endpoint and such a port on another switch
	// Links are numbers of pairs, by how many of their paths no two of which share a
	// channel between switches: the most that can be chosen. 0: none arrives.
	Links []int64
	// Switches are the same, of paths that share no switch but the first and the last.
	Switches []int64
}

// lidSet are some of the LIDs of a port, by offset: there are 128 at most.
type lidSet [2]uint64

func (s *lidSet) add(i int)     { s[i/64] |= 1 << (i % 64) }
func (s *lidSet) or(o *lidSet)  { s[0], s[1] = s[0]|o[0], s[1]|o[1] }
func (s *lidSet) not(o *lidSet) { s[0], s[1] = s[0]&^o[0], s[1]&^o[1] }
func (s *lidSet) size() int     { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }
func (s *lidSet) first() int { // -1: it is empty
	switch {
	case s[0] != 0:
		return bits.TrailingZeros64(s[0])
	case s[1] != 0:
		return 64 + bits.TrailingZeros64(s[1])
	}
	return -1
}

// siblings follow the paths to all LIDs of one port.
type siblings struct {
	g   *graph.Graph
	via [][]int32 // by LID, then switch: the channel, or NoChannel

	marked   []lidSet // by channel: LIDs whose path from one switch takes it
	passed   []lidSet // by switch: those whose path passes through it
	links    []int32  // channels to forget
	switches []int32  // switches to forget
	conflict [2][]lidSet
	sum      Disjointness
}

func newSiblings(g *graph.Graph) *siblings {
	return &siblings{g: g, marked: make([]lidSet, len(g.Channels())), passed: make([]lidSet, len(g.Switches()))}
}

// read reads the paths to the LIDs of t.
func (x *siblings) read(r *routes.Routes, t *graph.Terminal) {
	for len(x.via) < t.Count {
		x.via = append(x.via, make([]int32, len(x.g.Switches())))
	}
	for s := range x.g.Switches() {
		row := r.Row(s)[t.LID:]
		for i := range t.Count {
			x.via[i][s] = max(graph.NoChannel, x.g.Target(int32(s), row[i]).Channel())
		}
	}
}

// disjointness is that of the paths between the endpoints of v; nil: no endpoint has
// several LIDs.
//
// Time: O(P) for each LID of several and each switch with endpoints, P links a path.
func (v *verification) disjointness(ctx context.Context, r *routes.Routes) (*Disjointness, error) {
	g := v.g
	var several []int
	for i := range g.Terminals() {
		if t := &g.Terminals()[i]; v.ends[i] && t.Count > 1 && t.Switch >= 0 {
			several = append(several, i)
		}
	}
	if len(several) == 0 {
		return nil, nil
	}
	workers := make([]*siblings, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(several), func(worker, i int) {
		if workers[worker] == nil {
			workers[worker] = newSiblings(g)
		}
		x, t := workers[worker], &g.Terminals()[several[i]]
		x.read(r, t)
		for _, s := range v.sources {
			if int(s) != t.Switch {
				links, switches := x.from(s, t)
				x.sum.count(links, switches, t.Count, int64(v.on[s]))
			}
		}
	})
	d := &Disjointness{Ports: len(several)}
	for _, i := range several {
		d.LIDs = max(d.LIDs, g.Terminals()[i].Count)
	}
	d.Links, d.Switches = make([]int64, d.LIDs+1), make([]int64, d.LIDs+1)
	for _, x := range workers {
		if x == nil {
			continue
		}
		d.Pairs += x.sum.Pairs
		for n := range x.sum.Links {
			d.Links[n] += x.sum.Links[n]
			d.Switches[n] += x.sum.Switches[n]
		}
	}
	return d, err
}

// count adds pairs with so many disjoint paths, of a port with so many LIDs.
func (d *Disjointness) count(links, switches, lids int, pairs int64) {
	d.Pairs += pairs
	d.Links, d.Switches = grow(d.Links, lids), grow(d.Switches, lids)
	d.Links[links] += pairs
	d.Switches[switches] += pairs
}

// from is how many paths from switch s to t are disjoint, in links and in switches.
func (x *siblings) from(s int32, t *graph.Terminal) (links, switches int) {
	var arrive lidSet
	for k := range x.conflict {
		x.conflict[k] = append(x.conflict[k][:0], make([]lidSet, t.Count)...)
	}
	for i := range t.Count {
		if x.mark(s, int32(t.Switch), i) {
			arrive.add(i)
		}
	}
	for i := range t.Count {
		at := s
		for steps := 0; at != int32(t.Switch) && steps < len(x.g.Switches()) && x.via[i][at] >= 0; steps++ {
			c := x.via[i][at]
			x.conflict[0][i].or(&x.marked[c])
			if at = x.g.ChannelTo(c); at != int32(t.Switch) {
				x.conflict[1][i].or(&x.passed[at])
			}
			x.conflict[1][i].or(&x.marked[c])
		}
	}
	x.forget()
	budget := [2]int{maxSearch, maxSearch}
	return mostApart(arrive, x.conflict[0], &budget[0]), mostApart(arrive, x.conflict[1], &budget[1])
}

// mark marks the path from switch s to switch home by LID i; false: it does not
// arrive there.
func (x *siblings) mark(s, home int32, i int) bool {
	at := s
	for range x.g.Switches() {
		if at == home {
			return true
		}
		c := x.via[i][at]
		if c < 0 {
			return false
		}
		x.marked[c].add(i)
		x.links = append(x.links, c)
		if at = x.g.ChannelTo(c); at != home {
			x.passed[at].add(i)
			x.switches = append(x.switches, at)
		}
	}
	return false
}

// forget takes all marks away.
func (x *siblings) forget() {
	for _, c := range x.links {
		x.marked[c] = lidSet{}
	}
	for _, s := range x.switches {
		x.passed[s] = lidSet{}
	}
	x.links, x.switches = x.links[:0], x.switches[:0]
}

// maxSearch bounds the search for disjoint paths. With more steps, what is found is a
// lower bound: paths are taken as they come.
const maxSearch = 1 << 12

// mostApart is how many of rest can be chosen such that no two are in conflict: a
// greatest independent set. One whose conflicts are all with each other too can be
// taken at once, which is so nearly always.
func mostApart(rest lidSet, conflict []lidSet, budget *int) int {
	n := 0
	for i := rest.first(); i >= 0; i = rest.first() {
		near := lidSet{conflict[i][0] & rest[0], conflict[i][1] & rest[1]}
		near.add(i)
		if *budget--; *budget > 0 && !together(near, conflict) {
			with, without := rest, rest
			with.not(&near)
			one := lidSet{}
			one.add(i)
			without.not(&one)
			return n + max(1+mostApart(with, conflict, budget), mostApart(without, conflict, budget))
		}
		n++
		rest.not(&near)
	}
	return n
}

// together says whether all of set are in conflict with each other.
func together(set lidSet, conflict []lidSet) bool {
	left := set
	for i := left.first(); i >= 0; i = left.first() {
		one := lidSet{}
		one.add(i)
		left.not(&one)
		if missing := left; missing.size() > 0 {
			missing.not(&conflict[i])
			if missing.size() > 0 {
				return false
			}
		}
	}
	return true
}

// siblingCost is what a channel costs a search for the LID of a port, where the path to
// another of its LIDs takes it: more than all routes on a channel, and on no path as
// much as hopCost.
const siblingCost = 1 << 32

// avoidSiblings makes the channels dear that the paths to the LIDs of the same port
// take, and those of the port before cheap again.
func (n *nueSearch) avoidSiblings(next graph.Dest) {
	if next.Terminal == n.port {
		for s, via := range n.via {
			if via >= 0 && n.flow[s] > 0 && n.load[via] < siblingCost {
				n.load[via] += siblingCost
				n.dear = append(n.dear, via)
			}
		}
		return
	}
	n.forgetSiblings()
	n.port = next.Terminal
}

// forgetSiblings makes all channels cheap again.
func (n *nueSearch) forgetSiblings() {
	for _, c := range n.dear {
		n.load[c] -= siblingCost
	}
	n.dear, n.port = n.dear[:0], -1
}

// separates says whether the options leave the choice among next hops to Assign.
func (a *assigner) separates() bool {
	return a.Prefer == nil && (a.byLoad() || a.Policy == RoundRobin || a.Policy == DModK && a.Number == nil && a.Divider == nil)
}

// separate gives the LIDs of each port paths that have as few links, and then
// switches, in common with those of its LIDs before as the next hops allow: from the
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
		*siblings
		home  int
		order []int32 // switches, nearest to home first
	}
	workers := make([]memory, g.Workers())
	return graph.Each(ctx, g.Workers(), len(several), func(worker, i int) {
		w, t := &workers[worker], &g.Terminals()[several[i]]
		if w.siblings == nil {
			w.siblings, w.home = newSiblings(g), -1
		}
		if w.home != t.Switch {
			w.home, w.order = t.Switch, a.nearest(w.order[:0], t.Switch)
		}
		w.read(a.routes, t)
		for k := 1; k < t.Count; k++ {
			if wanted(t.LID + mad.LID(k)) {
				a.separateLID(w.siblings, t, k, w.order)
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
func (a *assigner) separateLID(x *siblings, t *graph.Terminal, k int, order []int32) {
	g, home, via := x.g, int32(t.Switch), x.via[k]
	shared := func(c int32) (n int) { // by the path over channel c: a link counts more than any number of switches
		for range g.Switches() {
			if x.marked[c] != (lidSet{}) {
				n += 1 << 16
			}
			s := g.ChannelTo(c)
			if s == home {
				return n
			}
			if x.passed[s] != (lidSet{}) {
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
			x.mark(s, home, i)
		}
		best, least := via[s], shared(via[s])
		if least > 0 {
			a.eachNext(s, home, func(c int32) {
				if n := shared(c); n < least {
					best, least = c, n
				}
			})
		}
		x.forget()
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
