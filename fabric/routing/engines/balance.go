package engines

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// balanceLoad gives each LID in turn the paths, of all that h allows, with the fewest routes on
// their channels so far. Then, where it takes no more than a second or two, each LID gets paths
// again, now that the routes of all others are known, and then the flows of shifts.
func balanceLoad(ctx context.Context, r *routes.Routes, h *graph.Hops) error {
	b := newBalancer(r, h)
	if err := b.run(ctx); err != nil {
		return err
	}
	return b.separate(ctx)
}

// balancer spreads routes over shortest paths. The distances are known, so no queue is needed:
// it goes through the switches in the order of their distance, and of each only through the
// channels to next hops, which are equal for all LIDs on a switch.
type balancer struct {
	r         *routes.Routes
	g         *graph.Graph
	h         *graph.Hops
	endpoints []int64 // by switch
	load      []int64 // by channel: the routes over it; where rates differ, times costs
	costs     []int64 // by channel: of a route; nil: 1
	share     int64   // mean number of endpoints of switches that have any, at least 1
	squares   float64 // with turns: the sum of the squares of load
	power     int     // of the load, which a channel costs; 0: 1
	most      int64   // the largest load when the pass began, at least 1
	slack     float64 // see shiftSlack
	peak      float64 // see peakCost
	first     int64   // the largest load before refine

	// turns, if not nil, are turns that close no cycle. A path pays for each other turn
	// toll times the mean cost of a channel.
	turns *lanes.Turns
	toll  float64

	// trunk, if not nil, has for each channel the first of its parallel channels, which stands for
	// all of them; all LIDs of a switch get one path, spread over trunks.
	trunk  []int32
	ports  [][]uint8 // by first channel: the ports of its trunk
	spread bool      // count the routes of each switch to another before the next chooses

	toward     graph.Toward // the present switch
	ahead      lookahead
	again      bool    // via and cost are of another LID on it
	via        []int32 // by switch: the channel of its path to the present LID
	cost, flow []int64 // by switch
}

func newBalancer(r *routes.Routes, h *graph.Hops) *balancer {
	g := r.Graph()
	n := len(g.Switches())
	ends, on := int64(0), int64(0)
	for _, e := range g.Endpoints() {
		ends, on = ends+e, on+min(e, 1)
	}
	return &balancer{
		share: max(1, ends/max(on, 1)), r: r, g: g, h: h, endpoints: g.Endpoints(), costs: g.Capacity().Costs(), load: make([]int64, len(g.Channels())), slack: shiftSlack, peak: peakCost,
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
	b.first = slices.Max(append(b.load, 0))
	return b.refine(ctx)
}

// evenOut is refine for tables that are there.
func (b *balancer) evenOut(ctx context.Context) error {
	if b.large() {
		return nil
	}
	for d := range b.g.Switches() {
		b.findNext(d)
		for _, dest := range b.g.DestsOf(d) {
			if dest.Out != 0 {
				b.read(dest.LID)
				b.count(1)
			}
		}
	}
	b.slack, b.peak, b.first = shiftSlackLIDs, peakCostLIDs, slices.Max(append(b.load, 0))
	return b.refine(ctx)
}

// large reports whether to refine would take long.
func (b *balancer) large() bool { return search.IsLarge(b.g) }

// Loads are scaled so that their 8th powers, on paths of so many links, fit in 63 bits:
// 144^8 * 48 < 2^63.
const (
	scaledMost    = 144 // a pass may raise a load above the largest of its beginning, 128
	longestPower8 = 48
	// mostSquared bounds the loads of slow links: the sum of its squares on 256 links fits in 63 bits.
	mostSquared = 1 << 27
)

// refine gives LIDs other paths than they have, where that evens out the load, and
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

// pass gives each LID paths: in place of its present paths, if again, else for the first time.
func (b *balancer) pass(ctx context.Context, again bool) error {
	for d := range b.g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.findNext(d)
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

// findNext finds the next hops to switch d.
func (b *balancer) findNext(d int) {
	if !b.ahead.exchange(&b.toward, d) {
		b.toward.Load(b.h, d, b.trunk)
	}
	if b.g.Workers() > 1 && b.large() && d+1 < len(b.g.Switches()) {
		b.ahead.start(b.h, d+1, b.trunk)
	}
	b.again = false
}

// choose gives lid, on switch d, the cheapest paths. A channel costs its load, or a power of
// it: a power makes busy channels rare, but is too much while few loads are known.
func (b *balancer) choose(d int, lid mad.LID) {
	switch {
	case b.turns != nil:
		b.chooseTurns(d, lid)
		return
	case b.power == 0 && b.trunk == nil && b.costs == nil:
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
// path costs what the path to the LID before cost keeps it, for no other has become cheaper.
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
			x := b.load[c]
			if b.costs != nil {
				x = min(x+b.costs[c]*b.share, mostSquared)
			}
			x = x*x + b.cost[to]
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

// price is the cost of a channel: its load, where rates differ with what the LIDs of a host would add.
func (b *balancer) price(c int32) int64 {
	x := b.load[c]
	if b.costs != nil {
		x += b.costs[c] * b.share
	}
	if b.trunk != nil {
		x /= int64(len(b.ports[c]))
	}
	switch b.power {
	case 2:
		if b.costs != nil {
			x = min(x, mostSquared)
		}
		x *= x
	case 8:
		x = power8(x, b.most)
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
		x = b.routes(c, x)
		if b.turns != nil {
			b.squares += float64(x) * float64(2*load[c]+x)
		}
		load[c] += x
		flow[b.g.ChannelTo(c)] += flow[s]
	}
}

// routes is what n routes add to the load of channel c.
func (b *balancer) routes(c int32, n int64) int64 {
	if b.costs == nil {
		return n
	}
	return n * b.costs[c]
}

// bySwitch gives all LIDs of a switch one path, and counts the loads of trunks. If spread,
// the routes from each switch are added to the load before the next chooses: there are so
// many that the next goes another way, which costs more turns.
func (b *balancer) bySwitch(spread bool) {
	b.spread = spread
	b.trunk = graph.FirstParallel(b.g)
	b.ports = make([][]uint8, len(b.trunk))
	for c, first := range b.trunk {
		b.ports[first] = append(b.ports[first], b.g.Channels()[c].Port)
	}
	if b.costs != nil {
		b.shareTrunks()
	}
}

// shareTrunks lists the ports of trunks in proportion to their rates, and finds the costs of trunks:
// price divides a load by the number of ports.
func (b *balancer) shareTrunks() {
	rates := make([]float64, len(b.trunk))
	for c, first := range b.trunk {
		rates[first] += 1 / float64(b.costs[c])
	}
	b.costs = slices.Clone(b.costs)
	for c, first := range b.trunk {
		if int32(c) == first {
			from := b.g.Channels()[c].From
			b.ports[c] = graph.Proportional(b.g.Capacity(), b.ports[c], func(port uint8) int32 { return b.g.Target(from, port).Channel() })
			b.costs[c] = max(1, int64(float64(len(b.ports[c]))/rates[c]))
		}
	}
}

// passSwitch is pass for the LIDs on a switch.
func (b *balancer) passSwitch(d int, again bool) {
	dests := b.g.DestsOf(d)
	if len(dests) == 0 {
		return
	}
	ends := b.ends(d)
	for _, dest := range dests {
		b.r.Row(d)[dest.LID] = dest.Out
	}
	if again {
		b.read(dests[0].LID)
		b.count(-ends)
	}
	if b.spread {
		b.chooseSwitch(int32(d), ends)
	} else {
		b.choose(d, dests[0].LID)
		b.count(ends)
	}
	for _, st := range b.toward.Steps {
		ports := b.ports[b.via[st.Switch]]
		for i, dest := range dests {
			b.r.Row(int(st.Switch))[dest.LID] = ports[i%len(ports)]
		}
	}
}

// ends is how many LIDs of CAs are on switch d.
func (b *balancer) ends(d int) (n int64) {
	for _, dest := range b.g.DestsOf(d) {
		if dest.Out != 0 {
			n++
		}
	}
	return n
}

// chooseSwitch chooses the cheapest paths to switch d, and adds their routes to the load one
// by one.
func (b *balancer) chooseSwitch(d int32, ends int64) {
	toll := b.turnToll()
	b.cost[d] = 0 // tolls of the path
	for _, st := range b.toward.Steps {
		best, at, tolls := int64(-1), int32(-1), int64(0)
		for _, c := range b.toward.Next[st.First:st.Last] {
			to := b.g.ChannelTo(c)
			paid := b.cost[to]
			if b.turns != nil && to != d && !b.turns.Admits(c, b.via[to]) {
				paid += toll
			}
			x := paid + b.price(c)
			for s := to; s != d; s = b.g.ChannelTo(b.via[s]) {
				x += b.price(b.via[s])
			}
			if best < 0 || x < best {
				best, at, tolls = x, c, paid
			}
		}
		b.cost[st.Switch], b.via[st.Switch] = tolls, at
		if to := b.g.ChannelTo(at); b.turns != nil && to != d {
			b.turns.Add(at, b.via[to])
		}
		flow := b.endpoints[st.Switch] * ends
		for s := st.Switch; s != d && flow > 0; s = b.g.ChannelTo(b.via[s]) {
			c := b.via[s]
			x := b.routes(c, flow)
			b.squares += float64(x) * float64(2*b.load[c]+x)
			b.load[c] += x
		}
	}
}

// lookahead finds the next hops to a switch while paths to the switch before are chosen.
type lookahead struct {
	next   graph.Toward
	d      int           // the switch
	loaded chan struct{} // closed when next is complete; nil: not started
}

// exchange exchanges t for the next hops to switch d if the search for them was started, and
// reports whether it was.
func (a *lookahead) exchange(t *graph.Toward, d int) bool {
	if a.loaded == nil {
		return false
	}
	<-a.loaded
	a.loaded = nil
	if a.d != d {
		return false
	}
	*t, a.next = a.next, *t
	return true
}

// start starts to find the next hops to switch d.
func (a *lookahead) start(h *graph.Hops, d int, trunk []int32) {
	loaded := make(chan struct{})
	a.d, a.loaded = d, loaded
	go func() {
		a.next.Load(h, d, trunk)
		close(loaded)
	}()
}

// The cost of a turn that would close a cycle with earlier turns, in mean costs of a channel:
// with lowToll, loads are nearly as even as without; with highToll, few such turns remain.
const (
	lowToll  = 0.5
	highToll = 4
)

// lowLaneTables are tables of shortest paths that need few lanes: the paths by the lowest
// ports, which in many networks are paths of dimension order; and balanced ones where a turn
// that would close a cycle with the turns of earlier LIDs costs something, or much; or much
// from the beginning with the turns of the lowest ports. The tables that are likely to need
// the fewest lanes come first.
func lowLaneTables(ctx context.Context, g *graph.Graph, h *graph.Hops) ([]laneTables, error) {
	lowest := routes.New(g, 0)
	if err := Assign(ctx, lowest, h, AssignOptions{Policy: First}); err != nil {
		return nil, err
	}
	net := laneNetwork(g)
	tolled := func(toll float64) *balancer {
		b := newBalancer(routes.New(g, 0), h)
		b.turns, b.toll = lanes.NewTurns(net), toll
		return b
	}
	beside, few, seeded := tolled(lowToll), tolled(highToll), tolled(highToll)
	err := runAll(ctx, g, []func() error{
		func() error { return errors.Join(beside.run(ctx), beside.separate(ctx)) },
		func() error { return errors.Join(few.run(ctx), few.separate(ctx)) },
		func() error { seeded.seed(lowest); return errors.Join(seeded.refine(ctx), seeded.separate(ctx)) },
	})
	if err != nil {
		return nil, err
	}
	if err := (&assigner{routes: lowest, h: h}).separate(ctx); err != nil {
		return nil, err
	}
	return []laneTables{{r: lowest}, {r: seeded.r}, {r: few.r}, {r: beside.r}}, nil
}

// runAll calls all of runs, as many at once as there are workers. They may use all workers, too:
// some end before others.
func runAll(ctx context.Context, g *graph.Graph, runs []func() error) error {
	failed := make([]error, len(runs))
	err := graph.Each(ctx, g.Workers(), len(runs), func(_, i int) { failed[i] = runs[i]() })
	return cmp.Or(err, errors.Join(failed...))
}

// seed begins with the paths of other tables, and with their turns as far as these close no
// cycle, the most frequent first.
func (b *balancer) seed(from *routes.Routes) {
	type turn struct{ c, d int32 }
	count := map[turn]int64{}
	for d := range b.g.Switches() {
		b.findNext(d)
		for _, dest := range b.g.DestsOf(d) {
			b.r.Row(d)[dest.LID] = dest.Out
			for _, st := range b.toward.Steps {
				b.r.Row(int(st.Switch))[dest.LID] = from.Row(int(st.Switch))[dest.LID]
			}
			if dest.Out == 0 {
				continue
			}
			b.read(dest.LID)
			b.count(1)
			for _, st := range b.toward.Steps {
				if to := b.g.ChannelTo(b.via[st.Switch]); int(to) != d && b.flow[st.Switch] > 0 {
					count[turn{b.via[st.Switch], b.via[to]}] += b.flow[st.Switch]
				}
			}
		}
	}
	all := make([]turn, 0, len(count))
	for t := range count {
		all = append(all, t)
	}
	slices.SortFunc(all, func(x, y turn) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x.c, y.c), cmp.Compare(x.d, y.d))
	})
	for _, t := range all {
		b.turns.Add(t.c, t.d)
	}
}

const (
	// lowerPeak tries to lower the largest load by 1/peakStep, and where that is too much, by
	// 1/peakLastStep.
	peakStep     = 8
	peakLastStep = 32
	// peakCost is how much the sum of the squares of flows of shifts may grow for a lower peak, and
	// peakCostLIDs the same where paths spread LIDs over ports at first: see shiftSlack.
	peakCost     = 1.06
	peakCostLIDs = 1.015
)

// lowerPeak gives switches other next hops in place of next hops over the busiest channels, as long
// as that lowers the largest load. Passes that give a LID all its paths at once cannot: where a
// leaf of a fat tree has eleven hosts and ten links up, they bring two of its LIDs down one link.
func (b *balancer) lowerPeak(ctx context.Context) error {
	x := newShifts(b)
	if err := x.countFlows(ctx); err != nil {
		return err
	}
	return x.lowerPeak(ctx, b.leastPeak(), b.peak)
}

// lowerPeak is lowerPeak of a balancer, where the flows of x have been counted. least is a lower bound of
// the largest load, and cost how much the sum of the squares of flows may grow.
func (x *shifts) lowerPeak(ctx context.Context, least int64, cost float64) error {
	x.relieve = true
	defer func() { x.relieve = false }()
	limit := x.squares() * cost
	for step := int64(peakStep); ; {
		peak := slices.Max(append(x.load, 0))
		if x.most = peak - max(1, peak/step); x.most < least { // no paths have that
			if step == peakLastStep {
				return nil
			}
			step = peakLastStep
			continue
		}
		entries, load := x.r.Clone(), slices.Clone(x.load)
		if err := x.passes(ctx, shiftPasses); err != nil {
			return err
		}
		if slices.Max(append(x.load, 0)) <= x.most && x.squares() <= limit {
			continue
		}
		for s := range x.g.Switches() {
			copy(x.r.Row(s), entries.Row(s))
		}
		x.load = load
		if step == peakLastStep {
			return nil
		}
		step = peakLastStep
		if err := x.countFlows(ctx); err != nil {
			return err
		}
	}
}

// leastPeak is a lower bound of the largest load of all tables with the distances of b: a channel of a
// switch has at least the mean of the routes that begin or end there, and the busiest of all channels at
// least the mean of all.
//
// Time: O(S*S).
func (b *balancer) leastPeak() (bound int64) {
	g := b.g
	if len(g.Channels()) == 0 {
		return 0
	}
	mean := func(routes, channels int64) int64 { return (routes + channels - 1) / max(1, channels) }
	ends := make([]int64, len(g.Switches()))
	for d := range ends {
		ends[d] = b.ends(d)
	}
	all := int64(0)
	for s := range ends {
		var to, from int64 // LIDs that s reaches, and endpoints that reach s
		for d := range ends {
			if far := b.h.Distance(s, d); far > 0 {
				to += ends[d]
				all += b.endpoints[s] * ends[d] * int64(far)
			}
			if b.h.Distance(d, s) > 0 {
				from += b.endpoints[d]
			}
		}
		channels := int64(g.FirstChannel(s+1) - g.FirstChannel(s))
		bound = max(bound, mean(b.endpoints[s]*to, channels), mean(ends[s]*from, channels))
	}
	if g.Weighted() { // distances are not in links
		return bound
	}
	return max(bound, mean(all, int64(len(g.Channels()))))
}

// overloaded reports whether channel c has more routes than it may have.
func (x *shifts) overloaded(c int32) bool { return x.load[c] > x.most }
