package engines

import (
	"context"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// balanceLoad gives each LID in turn those of the paths that h allows with the fewest routes
// on their channels so far, and then, where that takes no more than a second or two, each
// again, now that the routes of all others are known, and now that the flows of shifts are.
func balanceLoad(ctx context.Context, r *routes.Routes, h *graph.Hops) error {
	b := newBalancer(r, h)
	if err := b.run(ctx); err != nil {
		return err
	}
	return b.separate(ctx)
}

// balancer spreads routes over shortest paths. The distances are known, so no queue is needed:
// it goes through the switches in the order of their distance, and of each only through the
// channels to next hops, which are the same for all LIDs on a switch.
type balancer struct {
	r         *routes.Routes
	g         *graph.Graph
	h         *graph.Hops
	endpoints []int64 // by switch
	load      []int64 // by channel: the routes over it
	squares   float64 // with turns: the sum of the squares of load
	power     int     // of the load, which a channel costs; 0: 1
	most      int64   // the largest load when the pass began, at least 1
	slack     float64 // see shiftSlack

	// turns, if not nil, are those that close no cycle. A path pays for each other turn
	// toll times the mean cost of a channel.
	turns *lanes.Turns
	toll  float64

	// trunk, if not nil, has for each channel the first of those beside it, which stands for all of
	// them; and paths to the LIDs of a switch are the same, spread over trunks.
	trunk  []int32
	ports  [][]uint8 // by first channel: the ports of its trunk
	spread bool      // count the routes of each switch to another before the next chooses

	toward     graph.Toward // the present switch
	ahead      ahead
	again      bool    // via and cost are those of another LID on it
	via        []int32 // by switch: the channel of its path to the present LID
	cost, flow []int64 // by switch
}

func newBalancer(r *routes.Routes, h *graph.Hops) *balancer {
	g := r.Graph()
	n := len(g.Switches())
	return &balancer{
		r: r, g: g, h: h, endpoints: g.Endpoints(), load: make([]int64, len(g.Channels())), slack: shiftSlack,
		via: make([]int32, n), cost: make([]int64, n), flow: make([]int64, n),
	}
}

// separate gives the LIDs of each port paths that have little in common.
func (b *balancer) separate(ctx context.Context) error {
	return (&assigner{routes: b.r, h: b.h}).separate(ctx)
}

// run gives all LIDs paths.
func (b *balancer) run(ctx context.Context) error {
	if err := b.pass(ctx, false); err != nil {
		return err
	}
	return b.refine(ctx)
}

// evenOut is refine for tables that are there.
func (b *balancer) evenOut(ctx context.Context) error {
	if b.large() {
		return nil
	}
	for d := range b.g.Switches() {
		b.begin(d)
		for _, dest := range b.g.DestsOf(d) {
			if dest.Out != 0 {
				b.read(dest.LID)
				b.count(1)
			}
		}
	}
	b.slack = shiftSlackLIDs
	return b.refine(ctx)
}

// large reports whether to refine would take long.
func (b *balancer) large() bool { return search.IsLarge(b.g) }

// Loads are scaled so that their 8th powers, on paths of so many links, fit in 63 bits:
// 144^8 * 48 < 2^63.
const (
	scaledMost    = 144 // a pass may raise a load above the largest of its beginning, 128
	longestPower8 = 48
)

// refine gives LIDs other paths than those that they have, where that evens out the load, and
// spreads the flows of shifts.
func (b *balancer) refine(ctx context.Context) error {
	if b.large() {
		return nil
	}
	powers := []int{2, 2, 8, 8}
	if b.h.Max() > longestPower8 {
		powers = powers[:2]
	}
	for _, power := range powers {
		b.power, b.most = power, slices.Max(append(b.load, 1))
		if err := b.pass(ctx, true); err != nil {
			return err
		}
	}
	if b.trunk != nil {
		return nil
	}
	if err := b.spreadShifts(ctx); err != nil {
		return err
	}
	return b.lowerPeak(ctx)
}

// pass gives each LID paths in place of those it has, if again, else for the first time.
func (b *balancer) pass(ctx context.Context, again bool) error {
	for d := range b.g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.begin(d)
		if b.trunk != nil {
			b.passSwitch(d, again)
			continue
		}
		for _, dest := range b.g.DestsOf(d) {
			switch {
			case dest.Out == 0 && again:
				continue // little traffic goes to a switch
			case again:
				b.read(dest.LID)
				b.count(-1)
			}
			b.r.Row(d)[dest.LID] = dest.Out
			b.choose(d, dest.LID)
			if dest.Out != 0 {
				b.count(1)
			}
		}
	}
	return nil
}

// begin finds the next hops to switch d.
func (b *balancer) begin(d int) {
	if !b.ahead.take(&b.toward, d) {
		b.toward.Load(b.h, d, b.trunk)
	}
	if b.g.Workers() > 1 && b.large() && d+1 < len(b.g.Switches()) {
		b.ahead.begin(b.h, d+1, b.trunk)
	}
	b.again = false
}

// choose gives lid, on switch d, the cheapest paths. A channel costs its load, or a power of
// it: that is what makes the busiest ones rare, but it is too much while few loads are known.
func (b *balancer) choose(d int, lid mad.LID) {
	switch {
	case b.turns != nil:
		b.chooseTurns(d, lid)
		return
	case b.power == 0 && b.trunk == nil:
		b.chooseFirst(d, lid)
		return
	}
	g := b.g
	b.cost[d] = 0
	for _, st := range b.toward.Steps {
		best, at := int64(-1), int32(-1)
		for _, c := range b.toward.Next[st.First:st.Last] {
			if x := b.price(c) + b.cost[g.ChannelTo(c)]; best < 0 || x < best {
				best, at = x, c
			}
		}
		b.cost[st.Switch], b.via[st.Switch] = best, at
		b.r.Row(int(st.Switch))[lid] = g.Channels()[at].Port
	}
}

// chooseFirst is choose where channels cost their load, which only grows then: so a switch whose
// path costs what that of the LID before did keeps it, for no other has become cheaper.
func (b *balancer) chooseFirst(d int, lid mad.LID) {
	g, load, cost := b.g, b.load, b.cost
	cost[d] = 0
	for _, st := range b.toward.Steps {
		s := st.Switch
		if at := b.via[s]; !b.again || load[at]+cost[g.ChannelTo(at)] != cost[s] {
			next := b.toward.Next[st.First:st.Last]
			to := b.toward.To[st.First:st.Last][:len(next)]
			best := int64(math.MaxInt64)
			for i, c := range next {
				if x := load[c] + cost[to[i]]; x < best {
					best, at = x, c
				}
			}
			cost[s], b.via[s] = best, at
		}
		b.r.Row(int(s))[lid] = g.Channels()[b.via[s]].Port
	}
	b.again = true
}

// chooseTurns is choose where turns that close a cycle have a toll.
func (b *balancer) chooseTurns(d int, lid mad.LID) {
	g := b.g
	toll := b.turnToll()
	b.cost[d] = 0
	for _, st := range b.toward.Steps {
		best, at := int64(-1), int32(-1)
		for _, c := range b.toward.Next[st.First:st.Last] {
			to := g.ChannelTo(c)
			x := b.load[c]*b.load[c] + b.cost[to]
			if int(to) != d && (best < 0 || x < best) && !b.turns.Admits(c, b.via[to]) {
				x += toll
			}
			if best < 0 || x < best {
				best, at = x, c
			}
		}
		b.cost[st.Switch], b.via[st.Switch] = best, at
		if to := g.ChannelTo(at); int(to) != d {
			b.turns.Add(at, b.via[to])
		}
		b.r.Row(int(st.Switch))[lid] = g.Channels()[at].Port
	}
}

// price is the cost of a channel.
func (b *balancer) price(c int32) int64 {
	x := b.load[c]
	if b.trunk != nil {
		x /= int64(len(b.ports[c]))
	}
	switch b.power {
	case 2:
		x *= x
	case 8:
		x = min((x<<7)/b.most, scaledMost)
		x *= x
		x *= x
		x *= x
	}
	return x
}

// turnToll is the cost of a turn that closes a cycle.
func (b *balancer) turnToll() int64 { return int64(b.toll * (b.squares/float64(len(b.load)) + 1)) }

// read reads the paths to lid from the tables.
func (b *balancer) read(lid mad.LID) {
	for _, st := range b.toward.Steps {
		c := b.g.Target(st.Switch, b.r.Row(int(st.Switch))[lid]).Channel()
		if b.trunk != nil {
			c = b.trunk[c]
		}
		b.via[st.Switch] = c
	}
}

// count adds n times the routes of the present LID to the load.
func (b *balancer) count(n int64) {
	flow, load, steps := b.flow, b.load, b.toward.Steps
	copy(flow, b.endpoints)
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i].Switch
		c, x := b.via[s], n*flow[s]
		if x == 0 {
			continue
		}
		if b.turns != nil {
			b.squares += float64(x) * float64(2*load[c]+x)
		}
		load[c] += x
		flow[b.g.ChannelTo(c)] += flow[s]
	}
}
