package engines

import (
	"context"
	"math"
	"slices"

	"fabsh/fabric/routing/lanes"
	"fabsh/mad"
)

// shifts counts the flows over each channel of all shifts of hosts, in the order of their GUIDs:
// of shift k, each host sends to the one k places after it (traffic.Shift). Loads alone say little
// of these: in a dragonfly they are least where all flows between two groups take the one link
// between them.
type shifts struct {
	*balancer
	n     int       // hosts
	place []int32   // by LID: that of the host in the order; -1: another LID
	hosts [][]int32 // by switch: their places
	flows []int32   // by channel, then shift; nil: not counted
	most  int64     // routes that a channel may have
	moves int       // next hops that the present pass has replaced
	// relieve replaces only next hops on whose paths a channel has more than most routes, and takes
	// the best of the others even if it spreads flows less.
	relieve bool
	depth   []int32 // by switch: links of its path to the present LID; -1: no path. Nil: all are shortest ones

	// Of the present LID, or of all on a switch, whose paths are the same (bySwitch), and of the switch that
	// may get another next hop:
	to               []int32 // the places of their hosts
	lids             int64   // how many
	pairs            int64   // the sum of the squares of flows from below, by shift
	own              []int32 // by shift: those flows; 0 outside of collect
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
	// a third group do so. Paths that spread LIDs over ports at first need more of it than those
	// that spread routes, for bandwidths of at least 0.97 times OpenSM's of the same engine.
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
	x.most = int64(b.slack * float64(x.most))
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
	for x.moves = 1; n > 0 && x.moves > 0; n-- {
		x.moves = 0
		if err := x.each(ctx, x.move); err != nil {
			return err
		}
	}
	return nil
}

// each calls do for the first LID of each host, on switch d, when its paths have been read.
func (x *shifts) each(ctx context.Context, do func(d int32, lid mad.LID)) error {
	for d := range x.g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if x.depth == nil {
			x.begin(d)
		}
		if x.trunk != nil {
			if x.setSwitch(d); len(x.to) > 0 {
				lid := x.g.DestsOf(d)[0].LID
				x.read(lid)
				do(int32(d), lid)
			}
			continue
		}
		for _, dest := range x.g.DestsOf(d) {
			if !x.setLID(dest.LID) {
				continue
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

// setSwitch makes those on switch d the present LIDs.
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

// collect finds the hosts below s, and how many of their flows have the same shift.
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

// shift is that of a flow between two places.
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

// price is how much half the sum of the squares of flows grows with the other path in place of that
// which was. fits reports whether no channel gets too much load.
func (x *shifts) price(flow int64) (more int64, fits bool) {
	own := len(x.other) // channels before the paths meet: from there they are the same
	for i, c := range x.other {
		if x.onPath[c] {
			own = i
			break
		}
		if x.load[c]+flow > x.most {
			return 0, false
		}
		more += x.meeting(c)
	}
	fits = !x.relieve
	for _, c := range x.was[:len(x.was)-(len(x.other)-own)] {
		more -= x.meeting(c) - x.pairs
		fits = fits || x.overloaded(c)
	}
	return more, fits
}

// meeting are the flows over channel c of the same shifts as those from below; the routes over it, if
// flows are not counted.
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

// send adds n times the flows from below to those over a path.
func (x *shifts) send(path []int32, n int32, flow int64) {
	for _, c := range path {
		x.load[c] += int64(n) * flow
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
