package engines

import (
	"cmp"
	"context"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// shifts counts the flows over each channel of all shifts of hosts, in the order of their GUIDs:
// of shift k, each host sends to the host k places after it (traffic.Shift). Loads alone show little
// of these: in a dragonfly they are least where all flows between two groups take the one link
// between them.
type shifts struct {
	*balancer
	n     int       // hosts
	place []int32   // by LID: the place of the host in the order; -1: another LID
	hosts [][]int32 // by switch: their places
	flows []int32   // by channel, then shift; nil: not counted
	most  int64     // routes that a channel may have
	moves int       // next hops that the present pass has replaced
	// relieve replaces only next hops on whose paths a channel has more than most routes, and takes
	// the best of the others even if it spreads flows less.
	relieve bool
	over    []int32 // with relieve, in passes: the channels with more than most routes; none: too many to list
	depth   []int32 // by switch: links of its path to the present LID; -1: no path. Nil: all are shortest ones

	// Of the present LID, or of all on a switch, which have one path (bySwitch), and of the switch that may
	// get another next hop:
	to               []int32 // the places of their hosts
	lids             int64   // how many
	pairs            int64   // the sum of the squares of flows from below, by shift
	own              []int32 // by shift: the flows from below; 0 outside of collect
	child, sibling   []int32 // by switch: the first whose path continues there, and the next such; -1: none
	below            []int32 // places of the hosts whose paths pass through the switch
	stack            []int32
	was, other, best []int32      // channels of its path: now, with another next hop, and with the best
	onPath           []bool       // by channel: it is in was
	turn             []lanes.Turn // memory of turnsBy
}

// mostFlows bounds the memory of shifts, in counters, and so the time, to less than a second.
const mostFlows = 1 << 22

const (
	// shiftPasses is how often each LID may get other next hops: later ones change little.
	shiftPasses = 3
	// shiftSlack is how much more load than the largest a channel may get, if that makes the sum
	// of the squares of flows less than shiftGain times as large: in dragonflies, paths by way of
	// a third group do so. Paths that spread LIDs over ports at first need more of it than paths
	// that spread routes, for bandwidths of at least 0.97 times the bandwidths of OpenSM's engine.
	shiftSlack     = 1.125
	shiftSlackLIDs = 1.175
	shiftGain      = 0.9
)

// spreadShifts gives switches other next hops, where that spreads the flows of shifts.
func (b *balancer) spreadShifts(ctx context.Context) error {
	x := newShifts(b)
	if x.flows == nil {
		return nil
	}
	if err := x.countFlows(ctx); err != nil {
		return err
	}
	x.most = slices.Max(append(b.load, 0))
	if err := x.passes(ctx, shiftPasses); err != nil {
		return err
	}
	entries, load, squares := b.r.Clone(), slices.Clone(b.load), x.squares()
	x.most = max(x.most, min(int64(b.slack*float64(x.most)), b.first))
	if err := x.passes(ctx, 1); err != nil {
		return err
	}
	if x.squares() < (1+shiftGain)/2*squares { // the first pass has gained half: go on
		if err := x.passes(ctx, shiftPasses-1); err != nil {
			return err
		}
	}
	if x.squares() > shiftGain*squares {
		for s := range b.g.Switches() {
			copy(b.r.Row(s), entries.Row(s))
		}
		b.load = load
	}
	return nil
}

// newShifts has counted no flows yet. It does not count them (flows is nil) if there are too few hosts,
// or too many.
func newShifts(b *balancer) *shifts {
	g := b.g
	hosts := shiftHosts(g, 0)
	n, s, c := len(hosts), len(g.Switches()), len(g.Channels())
	x := &shifts{
		balancer: b, n: n, own: make([]int32, n), place: slices.Repeat([]int32{-1}, int(b.r.Top())+1), hosts: make([][]int32, s),
		child: make([]int32, s), sibling: make([]int32, s), onPath: make([]bool, c),
	}
	if n > 1 && n*c <= mostFlows {
		x.flows = make([]int32, n*c)
	}
	for place, i := range hosts {
		t := &g.Terminals()[i]
		x.place[t.LID] = int32(place)
		x.hosts[t.Switch] = append(x.hosts[t.Switch], int32(place))
	}
	return x
}

// passes gives the LIDs other paths, so often, or until there are no better ones.
func (x *shifts) passes(ctx context.Context, n int) error {
	defer func() { x.over = nil }()
	for x.moves = 1; n > 0 && x.moves > 0; n-- {
		x.moves = 0
		if x.over = x.over[:0]; x.relieve {
			for c := range x.load {
				if x.overloaded(int32(c)) {
					x.over = append(x.over, int32(c))
				}
			}
			switch {
			case len(x.over) == 0:
				return nil
			case len(x.over) > len(x.g.Switches()): // to read the paths takes less time
				x.over = x.over[:0]
			}
		}
		if err := x.each(ctx, x.move); err != nil {
			return err
		}
	}
	return nil
}

// isOverloaded reports whether a path to lid takes one of x.over; without a list it may. No move brings
// another channel above most.
func (x *shifts) isOverloaded(lid mad.LID) bool {
	if len(x.over) == 0 {
		return true
	}
	for _, c := range x.over {
		if ch := &x.g.Channels()[c]; x.overloaded(c) && x.r.Row(int(ch.From))[lid] == ch.Port {
			return true
		}
	}
	return false
}

// each calls do for the first LID of each host, on switch d, when its paths have been read.
func (x *shifts) each(ctx context.Context, do func(d int32, lid mad.LID)) error {
	for d := range x.g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		found := x.depth != nil
		if x.trunk != nil {
			if !found {
				x.findNext(d)
			}
			if x.setSwitch(d); len(x.to) > 0 {
				lid := x.g.DestsOf(d)[0].LID
				x.read(lid)
				do(int32(d), lid)
			}
			continue
		}
		for _, dest := range x.g.DestsOf(d) {
			if !x.setLID(dest.LID) || !x.isOverloaded(dest.LID) {
				continue
			}
			if !found {
				x.findNext(d)
				found = true
			}
			if x.depth == nil {
				x.read(dest.LID)
			} else {
				x.readTree(int32(d), dest.LID)
			}
			do(int32(d), dest.LID)
		}
	}
	return nil
}

// setLID makes lid the present one, and reports whether it is the first of a host.
func (x *shifts) setLID(lid mad.LID) bool {
	place := x.place[lid]
	x.to, x.lids = append(x.to[:0], place), 1
	return place >= 0
}

// setSwitch makes the LIDs on switch d the present LIDs.
func (x *shifts) setSwitch(d int) {
	x.to, x.lids = append(x.to[:0], x.hosts[d]...), x.ends(d)
}

// countFlows counts the flows of all LIDs, if there is memory for that.
func (x *shifts) countFlows(ctx context.Context) error {
	if x.flows == nil {
		return nil
	}
	clear(x.flows)
	return x.each(ctx, x.countPaths)
}

// countPaths counts the flows to the LID.
func (x *shifts) countPaths(d int32, lid mad.LID) {
	for _, st := range x.toward.Steps {
		x.below = append(x.below[:0], x.hosts[st.Switch]...)
		for s := st.Switch; s != d; s = x.g.ChannelTo(x.via[s]) {
			x.countBelow(x.via[s], 1)
		}
	}
}

// move gives switches other next hops to the LID, the nearest first.
func (x *shifts) move(d int32, lid mad.LID) {
	x.grow(d)
	for _, st := range x.toward.Steps {
		s := st.Switch
		flow := x.flow[s] * x.lids
		if st.Last-st.First < 2 || flow == 0 {
			continue
		}
		x.was = x.path(x.was, x.via[s], d)
		if x.relieve && !slices.ContainsFunc(x.was, x.overloaded) {
			continue
		}
		x.collect(s)
		for _, c := range x.was {
			x.onPath[c] = true
		}
		least, at := int64(0), int32(-1)
		if x.relieve {
			least = math.MaxInt64
		}
		for _, c := range x.toward.Next[st.First:st.Last] {
			if c == x.via[s] {
				continue
			}
			x.other = x.path(x.other, c, d)
			if more, fits := x.price(flow); fits && more < least && x.admits(s, c, d) {
				least, at = more, c
				x.best = append(x.best[:0], x.other...)
			}
		}
		for _, c := range x.was {
			x.onPath[c] = false
		}
		if at < 0 {
			continue
		}
		x.moves++
		if x.turns != nil {
			x.turns.AddAll(x.turnsBy(s, at, d))
		}
		x.send(x.was, -1, flow)
		x.send(x.best, 1, flow)
		first := &x.child[x.g.ChannelTo(x.via[s])]
		for *first != s {
			first = &x.sibling[*first]
		}
		*first = x.sibling[s]
		x.via[s] = at
		x.join(s)
		port := x.g.Channels()[at].Port
		if x.trunk == nil {
			x.r.Row(int(s))[lid] = port
			continue
		}
		for _, dest := range x.g.DestsOf(int(d)) {
			x.r.Row(int(s))[dest.LID] = port
		}
	}
}

// grow finds what passes through switches on the paths to the LID: as move begins with the nearest,
// it does not change when others get another next hop.
func (x *shifts) grow(d int32) {
	x.child[d] = -1
	for _, st := range x.toward.Steps {
		x.child[st.Switch] = -1
		x.join(st.Switch)
	}
	copy(x.flow, x.endpoints)
	for _, st := range slices.Backward(x.toward.Steps) {
		x.flow[x.g.ChannelTo(x.via[st.Switch])] += x.flow[st.Switch]
	}
}

// join makes s a child of the next switch on its path.
func (x *shifts) join(s int32) {
	to := x.g.ChannelTo(x.via[s])
	x.sibling[s], x.child[to] = x.child[to], s
}

// collect finds the hosts below s, and counts their flows by shift.
func (x *shifts) collect(s int32) {
	x.below, x.stack = x.below[:0], append(x.stack[:0], s)
	for len(x.stack) > 0 {
		s := x.stack[len(x.stack)-1]
		x.stack = x.stack[:len(x.stack)-1]
		x.below = append(x.below, x.hosts[s]...)
		for t := x.child[s]; t >= 0; t = x.sibling[t] {
			x.stack = append(x.stack, t)
		}
	}
	if x.pairs = int64(len(x.below)); len(x.to) == 1 {
		return
	}
	x.pairs = 0
	for k := range x.below {
		for _, to := range x.to {
			x.own[x.shift(x.below[k], to)]++
			x.pairs += int64(2*x.own[x.shift(x.below[k], to)] - 1)
		}
	}
	for _, from := range x.below {
		for _, to := range x.to {
			x.own[x.shift(from, to)] = 0
		}
	}
}

// shift is the shift of a flow between two places.
func (x *shifts) shift(from, to int32) int32 {
	k := to - from
	if k < 0 {
		k += int32(x.n)
	}
	return k
}

// path are the channels of the path to d that begins with c.
func (x *shifts) path(into []int32, c, d int32) []int32 {
	into = append(into[:0], c)
	for s := x.g.ChannelTo(c); s != d; s = x.g.ChannelTo(x.via[s]) {
		into = append(into, x.via[s])
	}
	return into
}

// price is how much half the sum of the squares of flows grows with the other path in place of the
// present one. fits reports whether no channel gets too much load.
func (x *shifts) price(flow int64) (more int64, fits bool) {
	own := len(x.other) // channels before the paths meet, and continue as one
	for i, c := range x.other {
		if x.onPath[c] {
			own = i
			break
		}
		if x.load[c]+x.routes(c, flow) > x.most {
			return 0, false
		}
		more += x.growth(c, 1)
	}
	fits = !x.relieve
	for _, c := range x.was[:len(x.was)-(len(x.other)-own)] {
		more += x.growth(c, -1)
		fits = fits || x.overloaded(c)
	}
	return more, fits
}

// growth is how much half the sum of the squares of flows on channel c grows with flows from below (1),
// or without them (-1), but for a constant that all paths of so many channels share; where rates differ, how much
// the sum itself grows, times the cost of the channel.
func (x *shifts) growth(c int32, sign int64) int64 {
	switch n := x.meeting(c); {
	case x.costs != nil:
		return (sign*2*n + x.pairs) * x.costs[c]
	case sign < 0:
		return x.pairs - n
	default:
		return n
	}
}

// meeting are the flows over channel c that share a shift with flows from below; the routes over it,
// if flows are not counted.
func (x *shifts) meeting(c int32) (n int64) {
	if x.flows == nil {
		return x.load[c]
	}
	flows := x.flows[int(c)*x.n:][:x.n]
	for _, to := range x.to {
		for _, from := range x.below {
			n += int64(flows[x.shift(from, to)])
		}
	}
	return n
}

// countBelow adds n to the flows over channel c from below, if they are counted.
func (x *shifts) countBelow(c, n int32) {
	if x.flows == nil {
		return
	}
	flows := x.flows[int(c)*x.n:][:x.n]
	for _, to := range x.to {
		for _, from := range x.below {
			flows[x.shift(from, to)] += n
		}
	}
}

// send adds n times the flows from below to the flows over a path.
func (x *shifts) send(path []int32, n int32, flow int64) {
	for _, c := range path {
		x.load[c] += x.routes(c, int64(n)*flow)
		x.countBelow(c, n)
	}
}

// admits reports whether the turns of paths that leave s over channel c close no cycle.
func (x *shifts) admits(s, c, d int32) bool {
	return x.turns == nil || x.turns.AdmitsAll(x.turnsBy(s, c, d))
}

// turnsBy are these turns.
func (x *shifts) turnsBy(s, c, d int32) []lanes.Turn {
	x.turn = x.turn[:0]
	for t := x.child[s]; t >= 0; t = x.sibling[t] {
		if x.turning(t) {
			x.turn = append(x.turn, lanes.Turn{From: x.via[t], To: c})
		}
	}
	if to := x.g.ChannelTo(c); to != d {
		x.turn = append(x.turn, lanes.Turn{From: c, To: x.via[to]})
	}
	return x.turn
}

// turning reports whether the turn from the next hop of switch t counts: of tables that have their
// lanes, each.
func (x *shifts) turning(t int32) bool { return x.depth != nil || x.flow[t] > 0 }

// spreadShiftsOf gives switches other next hops, where that spreads the flows of shifts, in tables on
// one lane whose paths may have detours: paths do not get longer, no channel gets more load than the
// largest, and the turns of all paths still close no cycle. No port may have several LIDs (LMC).
//
// Time: O(L*(S + C)), and the time of the search, which newShifts bounds.
func spreadShiftsOf(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	b := newBalancer(r, nil)
	b.turns = lanes.NewTurns(laneNetwork(g))
	x := newShifts(b)
	if x.flows == nil {
		return nil
	}
	x.depth, x.toward.Next = make([]int32, len(g.Switches())), make([]int32, len(g.Channels()))
	for d := range g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, dest := range g.DestsOf(d) {
			if x.readTree(int32(d), dest.LID); !x.addAllTurns(int32(d)) {
				return nil // the turns cannot be ordered in the time that lanes.Turns has
			}
			if dest.Out != 0 {
				x.count(1)
			}
			if x.setLID(dest.LID) {
				x.countPaths(int32(d), dest.LID)
			}
		}
	}
	if err := x.lowerPeak(ctx, 0, treePeakCost); err != nil {
		return err
	}
	if err := x.countFlows(ctx); err != nil {
		return err
	}
	x.most = slices.Max(append(x.load, 0))
	before := x.squares()
	for range shiftPasses {
		if err := x.passes(ctx, 1); err != nil {
			return err
		}
		after := x.squares()
		if after > treeGain*before {
			return nil
		}
		before = after
	}
	return nil
}

// treePeakCost is peakCost for tables on one lane whose paths may have detours: the passes that follow spread
// flows again.
const treePeakCost = 1.05

// treeGain is the part of the sum of the squares of flows up to which a pass has gained enough for
// another.
const treeGain = 0.99

// readTree reads the paths to lid, on switch d, from the tables. Next hops are the channels to
// switches that are nearer on these paths.
func (x *shifts) readTree(d int32, lid mad.LID) {
	g, next := x.g, x.toward.Next
	for s := range x.via {
		x.depth[s], x.via[s] = -1, max(graph.NoChannel, g.Target(int32(s), x.r.Row(s).Port(lid)).Channel())
	}
	x.depth[d], x.via[d] = 0, graph.NoChannel
	x.stack = append(x.stack[:0], d)
	steps, n := x.toward.Steps[:0], int32(0)
	for i := 0; i < len(x.stack); i++ {
		s := x.stack[i]
		for c := g.FirstChannel(int(s)); c < g.FirstChannel(int(s+1)); c++ {
			if from := g.ChannelTo(c); x.via[from] == g.Channels()[c].Reverse {
				x.depth[from] = x.depth[s] + 1
				x.stack = append(x.stack, from)
			}
		}
	}
	for _, s := range x.stack[1:] {
		first := n
		for c := g.FirstChannel(int(s)); c < g.FirstChannel(int(s+1)); c++ {
			if depth := x.depth[g.ChannelTo(c)]; 0 <= depth && depth < x.depth[s] {
				next[n] = c
				n++
			}
		}
		steps = append(steps, graph.Step{Switch: s, First: first, Last: n})
	}
	x.toward.Steps = steps
}

// addAllTurns adds the turns of the paths to a LID on switch d, and reports whether they close no
// cycle.
func (x *shifts) addAllTurns(d int32) bool {
	for _, st := range x.toward.Steps {
		c := x.via[st.Switch]
		if to := x.g.ChannelTo(c); to != d && !x.turns.Add(c, x.via[to]) {
			return false
		}
	}
	return true
}

// shiftSquares is the sum of the squares of flows of tables with distances h; 1: there are too few
// hosts, or too many.
func shiftSquares(ctx context.Context, r *routes.Routes, h *graph.Hops) (float64, error) {
	x := newShifts(newBalancer(r, h))
	if x.flows == nil {
		return 1, nil
	}
	err := x.countFlows(ctx)
	return x.squares(), err
}

// shiftWalks is the number of paths, about, whose flows shiftBandwidth reads: all shifts of 512 hosts.
const shiftWalks = 1 << 18

// shiftBandwidth is the mean, over the flows of shifts of compute nodes between switches, of 1 over
// the largest number of flows on a channel of the path, times its cost where rates differ; without flows it is 1. Where all shifts would
// take long, some stand for all.
func shiftBandwidth(ctx context.Context, r *routes.Routes) (float64, error) {
	g := r.Graph()
	hosts := shiftHosts(g, graph.ClassCN)
	n := len(hosts)
	step := n*n/shiftWalks | 1 // odd: it should not have a factor in common with the hosts of a switch
	sums, counts := make([]float64, n/step+1), make([]int, n/step+1)
	flows, costs := make([][]int32, g.Workers()), g.Capacity().Costs()
	err := graph.Each(ctx, g.Workers(), len(sums), func(worker, at int) {
		if flows[worker] == nil {
			flows[worker] = make([]int32, len(g.Channels()))
		}
		on, k := flows[worker], 1+at*step
		clear(on)
		if k >= n {
			return
		}
		for i := range hosts {
			eachChannel(r, hosts[i], hosts[(i+k)%n], func(c int32) { on[c]++ })
		}
		for i := range hosts {
			most := int64(0)
			eachChannel(r, hosts[i], hosts[(i+k)%n], func(c int32) {
				load := int64(on[c])
				if costs != nil {
					load *= costs[c]
				}
				most = max(most, load)
			})
			if most > 0 {
				sums[at] += 1 / float64(most)
				counts[at]++
			}
		}
	})
	sum, count := 0.0, 0
	for at := range sums {
		sum += sums[at]
		count += counts[at]
	}
	if count == 0 {
		return 1, err
	}
	return sum / float64(count), err
}

// eachChannel calls fn with the channels of the path between two terminals, as far as there is one.
// The tables have no loops.
func eachChannel(r *routes.Routes, from, to int, fn func(c int32)) {
	g := r.Graph()
	t := &g.Terminals()[to]
	for s := int32(g.Terminals()[from].Switch); int(s) != t.Switch; {
		c := g.Target(s, r.Row(int(s))[t.LID]).Channel()
		if c < 0 {
			return
		}
		fn(c)
		s = g.ChannelTo(c)
	}
}

// shiftHosts are the terminals of hosts of a class, in the order in which shifts take them.
func shiftHosts(g *graph.Graph, class graph.Class) (hosts []int) {
	for i, t := range g.Terminals() {
		if t.Switch >= 0 && t.IsEndpoint(class) {
			hosts = append(hosts, i)
		}
	}
	slices.SortFunc(hosts, func(i, j int) int {
		return cmp.Or(cmp.Compare(g.Terminals()[i].Port.GUID(), g.Terminals()[j].Port.GUID()), cmp.Compare(i, j))
	})
	return hosts
}

// squares is the sum of the squares of flows.
func (x *shifts) squares() (sum float64) {
	for i, n := range x.flows {
		square := float64(n) * float64(n)
		if x.costs != nil {
			square *= float64(x.costs[i/x.n])
		}
		sum += square
	}
	return sum
}
