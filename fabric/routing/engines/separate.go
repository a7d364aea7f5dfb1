package engines

import (
	"context"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// hasLMC reports whether some port has several LIDs.
func hasLMC(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Terminals(), func(t graph.Terminal) bool { return t.Count > 1 })
}

// separation gives the LIDs of each port (LMC) paths that have as few links, and then switches, in common as the
// next hops allow, and then, where that takes some seconds at most, others with less load that have hardly more in
// common. The first LID of a port stays where the policy put it. Switches without CAs, at which no path begins, keep
// their choice too.
type separation struct {
	r         *routes.Routes
	g         *graph.Graph
	ports     []*graph.Terminal // with several LIDs
	endpoints []int64           // by switch
	wanted    func(mad.LID) bool
	keep      *routes.Routes // paths that stay where they are there; nil: none
	even      bool           // consider loads, too

	// Next hops are those of h or, if there are turns, the switches that are nearer on the paths to a LID, where
	// the turns of all paths still close no cycle.
	h     *graph.Hops
	next  []graph.NextHops // by switch
	turns *lanes.Turns
}

func newSeparation(r *routes.Routes) *separation {
	x := &separation{r: r, g: r.Graph(), endpoints: r.Graph().Endpoints(), wanted: func(mad.LID) bool { return true }}
	for i := range x.g.Terminals() {
		if t := &x.g.Terminals()[i]; t.Count > 1 && t.Switch >= 0 {
			x.ports = append(x.ports, t)
		}
	}
	return x
}

// separates reports whether the options leave the choice among next hops to Assign.
func (a *assigner) separates() bool {
	return a.Prefer == nil && (a.byLoad() || a.Policy == RoundRobin || a.Policy == DModK && a.Number == nil && a.Divider == nil)
}

// separate is separation by the distances of a.
func (a *assigner) separate(ctx context.Context) error {
	x := newSeparation(a.routes)
	if len(x.ports) == 0 {
		return nil
	}
	if a.next == nil {
		a.next = make([]graph.NextHops, len(x.g.Switches()))
		if err := graph.Each(ctx, x.g.Workers(), len(a.next), func(_, s int) { a.next[s].Load(a.h, s) }); err != nil {
			return err
		}
	}
	x.h, x.next, x.keep = a.h, a.next, a.keep
	x.even = a.Weight == nil && a.Policy != RoundRobin && a.Scope != PerSwitch
	if a.LIDs != nil {
		set := make([]bool, int(a.routes.Top())+1)
		for _, lid := range a.LIDs {
			if int(lid) < len(set) {
				set[lid] = true
			}
		}
		x.wanted = func(lid mad.LID) bool { return set[lid] }
	}
	return x.run(ctx)
}

// separateTrees is separation of tables on one lane whose paths may have detours: these do not get longer.
func separateTrees(ctx context.Context, r *routes.Routes) error {
	x, err := newTreeSeparation(ctx, r)
	if x == nil {
		return err
	}
	return x.run(ctx)
}

// newTreeSeparation is nil if there is nothing to separate, or if the network is too large.
func newTreeSeparation(ctx context.Context, r *routes.Routes) (*separation, error) {
	x := newSeparation(r)
	x.ports = slices.DeleteFunc(x.ports, func(t *graph.Terminal) bool { return !t.IsEndpoint(0) })
	if len(x.ports) == 0 || search.IsLarge(x.g) {
		return nil, nil
	}
	x.turns, x.even = lanes.NewTurns(laneNetwork(x.g)), true
	seen := make([]int, len(x.g.Switches()))
	for d := range x.g.Switches() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, dest := range x.g.DestsOf(d) {
			if !x.addTurns(d, dest, seen) {
				return nil, nil // the turns cannot be ordered in the time that lanes.Turns has
			}
		}
	}
	return x, nil
}

// addTurns adds the turns of the paths to a LID on switch d, and reports whether they close no cycle. Management
// packets between switches without CAs may close one already, and their paths stay. seen has the last LID whose path
// was seen at a switch.
func (x *separation) addTurns(d int, dest graph.Dest, seen []int) bool {
	lid := dest.LID
	via := func(s int32) int32 { return x.g.Target(s, x.r.Row(int(s)).Port(lid)).Channel() }
	for _, hosts := range []bool{true, false} {
		for s := range x.g.Switches() {
			if hosts != (x.endpoints[s] > 0) {
				continue
			}
			for at := int32(s); int(at) != d && seen[at] != int(lid); {
				seen[at] = int(lid)
				c := via(at)
				if c < 0 {
					break
				}
				at = x.g.ChannelTo(c)
				if next := via(at); int(at) != d && next >= 0 && !x.turns.Add(c, next) && (hosts || dest.Out != 0) {
					return false
				}
			}
		}
	}
	return true
}

// run gives LIDs other paths.
//
// Time: O(P) for each LID of a port and each switch, P links a path, and as much for each next hop where a path shares
// something; for each pass by load as much where a channel is busy, and O(L*S). With turns, their tests in addition.
func (x *separation) run(ctx context.Context) error {
	workers := make([]siblings, x.g.Workers())
	if x.turns != nil {
		workers = workers[:1] // each path decides which turns are left to the next
	}
	err := graph.Each(ctx, len(workers), len(x.ports), func(worker, i int) {
		workers[worker].read(x, x.ports[i])
		x.separatePort(&workers[worker])
	})
	if err != nil || !x.even || search.IsLarge(x.g) {
		return err
	}
	load, err := weighedRoutes(ctx, x.r)
	if err != nil {
		return err
	}
	return x.evenOut(ctx, load)
}

// siblings are the paths to the LIDs of a port.
type siblings struct {
	*verify.Siblings
	port  *graph.Terminal
	home  int32
	order [][]int32 // by LID: switches that have a path, nearest first, home left out
	depth [][]int32 // with turns, by LID and switch: links to home, at least; -1: none
	turn  []lanes.Turn
}

// read reads the paths to t.
func (w *siblings) read(x *separation, t *graph.Terminal) {
	if w.Siblings == nil {
		w.Siblings, w.home = verify.NewSiblings(x.g), -1
	}
	known := w.home == int32(t.Switch)
	w.port, w.home = t, int32(t.Switch)
	w.Read(x.r, t)
	for len(w.order) < t.Count {
		w.order, w.depth, known = append(w.order, nil), append(w.depth, nil), false
	}
	if x.turns != nil {
		for k := range t.Count {
			w.measure(k)
		}
		return
	}
	if !known {
		w.order[0] = w.order[0][:0]
		for s := range x.g.Switches() {
			if x.h.Distance(s, t.Switch) > 0 {
				w.order[0] = append(w.order[0], int32(s))
			}
		}
		slices.SortStableFunc(w.order[0], func(s, u int32) int { return x.h.Distance(int(s), t.Switch) - x.h.Distance(int(u), t.Switch) })
		for k := range w.order {
			w.order[k] = w.order[0]
		}
	}
}

// measure finds the order and depth of switches on the paths to the k-th LID.
func (w *siblings) measure(k int) {
	order, depth := append(w.order[k][:0], w.home), append(w.depth[k][:0], slices.Repeat([]int32{-1}, len(w.Graph.Switches()))...)
	depth[w.home] = 0
	for i := 0; i < len(order); i++ {
		s := order[i]
		w.eachBefore(k, s, func(c int32) {
			from := w.Graph.Channels()[c].From
			depth[from] = depth[s] + 1
			order = append(order, from)
		})
	}
	w.order[k], w.depth[k] = slices.Delete(order, 0, 1), depth
}

// eachBefore calls do for the channels over which paths to the k-th LID come to switch s.
func (w *siblings) eachBefore(k int, s int32, do func(c int32)) {
	for c := w.Graph.FirstChannel(int(s)); c < w.Graph.FirstChannel(int(s)+1); c++ {
		if back := w.Graph.Channels()[c].Reverse; w.Via[k][w.Graph.ChannelTo(c)] == back && w.Graph.ChannelTo(c) != w.home {
			do(back)
		}
	}
}

// shared is what the path to the k-th LID over channel c has in common with marked ones: a link counts more than
// any number of switches. incomplete: it does not arrive.
func (w *siblings) shared(k int, c int32) (n int) {
	for range w.Graph.Switches() {
		if w.Takes(c) {
			n += 1 << 16
		}
		s := w.Graph.ChannelTo(c)
		if s == w.home {
			return n
		}
		if w.Passes(s) {
			n++
		}
		if c = w.Via[k][s]; c < 0 {
			break
		}
	}
	return incomplete
}

// incomplete is more than any two paths share.
const incomplete = math.MaxInt32

// mayMove reports whether the k-th LID may get another next hop at switch s: some path begins there, it is not
// the first LID, and it is not kept.
func (x *separation) mayMove(w *siblings, k int, s int32) bool {
	c, lid := w.Via[k][s], w.port.LID+mad.LID(k)
	return x.endpoints[s] > 0 && k > 0 && c >= 0 && x.wanted(lid) && (x.keep == nil || x.keep.Row(int(s)).Port(lid) != x.g.Channels()[c].Port)
}

// eachNext calls do for the channels of the next hops from switch s to the k-th LID, whether they admit their
// turns or not.
func (x *separation) eachNext(w *siblings, k int, s int32, do func(c int32)) {
	if x.turns != nil {
		depth := w.depth[k]
		for c := x.g.FirstChannel(int(s)); c < x.g.FirstChannel(int(s)+1); c++ {
			if n := depth[x.g.ChannelTo(c)]; 0 <= n && n < depth[s] {
				do(c)
			}
		}
		return
	}
	nbrs := x.g.Neighbours(int(s))
	for i := range x.next[s].Neighbours(int(w.home)) {
		for _, p := range nbrs[i].Ports {
			do(x.g.Target(s, p).Channel())
		}
	}
}

// admits reports whether the turns to the k-th LID over channel c out of switch s close no cycle.
func (x *separation) admits(w *siblings, k int, s, c int32) bool {
	return x.turns == nil || x.turns.AdmitsAll(x.turnsBy(w, k, s, c))
}

// turnsBy are these turns.
func (x *separation) turnsBy(w *siblings, k int, s, c int32) []lanes.Turn {
	w.turn = w.turn[:0]
	w.eachBefore(k, s, func(before int32) { w.turn = append(w.turn, lanes.Turn{From: before, To: c}) })
	if to := x.g.ChannelTo(c); to != w.home {
		w.turn = append(w.turn, lanes.Turn{From: c, To: w.Via[k][to]})
	}
	return w.turn
}

// moveTo makes channel c, which admits its turns, the next hop of switch s to the k-th LID. Depths behind s stay:
// what is nearer by them is no longer than before.
func (x *separation) moveTo(w *siblings, k int, s, c int32) {
	if c == w.Via[k][s] {
		return
	}
	if x.turns != nil {
		x.turns.AddAll(x.turnsBy(w, k, s, c))
		w.depth[k][s] = w.depth[k][x.g.ChannelTo(c)] + 1
	}
	w.Via[k][s] = c
	x.r.Row(int(s))[int(w.port.LID)+k] = x.g.Channels()[c].Port
}

// separatePort gives the LIDs of a port paths that have less in common with those of the LIDs before. From the
// switches near the port, on the paths to its first LID, to the far ones, each takes the next hop whose path shares
// the least.
func (x *separation) separatePort(w *siblings) {
	for _, s := range w.order[0] {
		if x.endpoints[s] == 0 {
			continue
		}
		for k := range w.port.Count {
			if x.mayMove(w, k, s) {
				x.separateLID(w, k, s)
			}
			w.Mark(s, w.home, k)
		}
		w.Forget()
	}
}

// separateLID is separatePort for the path from switch s to the k-th LID, when those to the LIDs before are marked.
func (x *separation) separateLID(w *siblings, k int, s int32) {
	best, least := w.Via[k][s], w.shared(k, w.Via[k][s])
	if least > 0 {
		x.eachNext(w, k, s, func(c int32) {
			if n := w.shared(k, c); n < least && x.admits(w, k, s, c) {
				best, least = c, n
			}
		})
	}
	x.moveTo(w, k, s, best)
}

const (
	evenPasses = 6    // of evenOut, at most
	evenBusy   = 0.9  // of the largest load: paths over channels with more may move
	evenLeft   = 0.99 // of the largest load: a pass that leaves more is the last
)

// siblingLoads are the loads of channels.
type siblingLoads struct {
	load []int64
	most int64     // the largest load when the pass began
	flow [][]int64 // by LID of the port and switch: endpoints whose paths pass through it
	busy [][]bool  // by LID and switch: such a path has a busy channel from here on
}

// evenOut gives LIDs other paths where a channel is busy, if these have no more in common with the paths of the
// other LIDs of the port. Paths of switches behind may have more. load, of the channels, is kept up to date.
func (x *separation) evenOut(ctx context.Context, load []int64) error {
	var w siblings
	l := &siblingLoads{load: load}
	least := x.leastPeak()
	for range evenPasses {
		if l.most = slices.Max(append(load, 1)); l.most <= least {
			return nil
		}
		for _, t := range x.ports {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if t.IsEndpoint(0) {
				w.read(x, t)
				x.evenPort(&w, l)
			}
		}
		if float64(slices.Max(append(load, 1))) > evenLeft*float64(l.most) {
			return nil
		}
	}
	return nil
}

// leastPeak is a lower bound of the largest load: what leads to a switch is divided over its links. 0: rates differ.
func (x *separation) leastPeak() (peak int64) {
	if x.g.Capacity().Costs() != nil {
		return 0
	}
	component, all := graph.Components(x.g), make([]int64, len(x.endpoints))
	for s, n := range x.endpoints {
		all[component[s]] += n
	}
	for d, own := range x.endpoints {
		lids := int64(0)
		for _, dest := range x.g.DestsOf(d) {
			if dest.Out != 0 {
				lids++
			}
		}
		if links := int64(x.g.FirstChannel(d+1) - x.g.FirstChannel(d)); links > 0 {
			peak = max(peak, (lids*(all[component[d]]-own)+links-1)/links)
		}
	}
	return peak
}

// routes is what n routes add to the load of channel c.
func (x *separation) routes(c int32, n int64) int64 {
	if costs := x.g.Capacity().Costs(); costs != nil {
		return n * costs[c]
	}
	return n
}

// evenPort is evenOut for the LIDs of a port.
func (x *separation) evenPort(w *siblings, l *siblingLoads) {
	lids, busy := w.port.Count, false
	for len(l.flow) < lids {
		l.flow, l.busy = append(l.flow, make([]int64, len(x.endpoints))), append(l.busy, make([]bool, len(x.endpoints)))
	}
	for k := 1; k < lids; k++ {
		busy = x.follow(w, k, l) || busy
	}
	if !busy {
		return
	}
	for _, s := range w.order[0] {
		marked := false
		for k := 1; k < lids; k++ {
			if !l.busy[k][s] || !x.mayMove(w, k, s) {
				continue
			}
			if !marked {
				for i := range lids {
					w.Mark(s, w.home, i)
				}
				marked = true
			}
			w.Unmark(s, w.home, k)
			x.evenLID(w, k, s, l)
			w.Mark(s, w.home, k)
		}
		w.Forget()
	}
}

// follow finds the flows to the k-th LID, and which paths have a busy channel, and reports whether any has one.
func (x *separation) follow(w *siblings, k int, l *siblingLoads) (any bool) {
	via, flow, busy, limit := w.Via[k], l.flow[k], l.busy[k], int64(evenBusy*float64(l.most))
	clear(busy)
	for _, s := range w.order[k] {
		c := via[s]
		busy[s] = c >= 0 && (l.load[c] > limit || busy[x.g.ChannelTo(c)])
		any = any || busy[s]
	}
	copy(flow, x.endpoints)
	for _, s := range slices.Backward(w.order[k]) {
		if via[s] >= 0 {
			flow[x.g.ChannelTo(via[s])] += flow[s]
		}
	}
	return any
}

// evenLID is evenOut for the path from switch s to the k-th LID, whose siblings are marked.
func (x *separation) evenLID(w *siblings, k int, s int32, l *siblingLoads) {
	was, flow := w.Via[k][s], l.flow[k][s]
	most := w.shared(k, was)
	if most == incomplete {
		return
	}
	x.send(w, k, s, l, -flow)
	best, least := was, x.price(w, k, was, flow, l)
	x.eachNext(w, k, s, func(c int32) {
		if c == was || w.shared(k, c) > most {
			return
		}
		if p := x.price(w, k, c, flow, l); p < least && x.admits(w, k, s, c) {
			best, least = c, p
		}
	})
	x.moveTo(w, k, s, best)
	x.send(w, k, s, l, flow)
}

// send adds a flow to the load of the path from switch s to the k-th LID, and to the switches behind s.
func (x *separation) send(w *siblings, k int, s int32, l *siblingLoads, flow int64) {
	for at := s; at != w.home; {
		c := w.Via[k][at]
		l.load[c] += x.routes(c, flow)
		at = x.g.ChannelTo(c)
		l.flow[k][at] += flow
	}
}

// price is a quarter of the sum of the 8th powers of the loads on the path to the k-th LID over channel c, so that
// paths of graph.MaxDistance links fit in 63 bits; more than any if the flow would raise the largest load.
func (x *separation) price(w *siblings, k int, c int32, flow int64, l *siblingLoads) (sum int64) {
	for {
		if l.load[c]+x.routes(c, flow) > l.most {
			return math.MaxInt64
		}
		sum += power8(l.load[c], l.most) / 4
		s := x.g.ChannelTo(c)
		if s == w.home {
			return sum
		}
		c = w.Via[k][s]
	}
}

// power8 is the 8th power of a load, scaled by the largest one.
func power8(load, most int64) int64 {
	x := min((load<<7)/most, scaledMost)
	x *= x
	x *= x
	return x * x
}
