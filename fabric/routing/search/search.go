// Package search finds paths that close no credit loop with the paths that already exist, as
// the routing engine nue does (Domke, Hoefler, Matsuoka, 2016), and completes tables by them.
//
// Nue gives some LIDs paths beside given turns; InLanes computes all tables, on one virtual lane
// or more. Complete and CompleteAll add the paths that up*/down* does not have. Patch and
// PatchLIDs repair tables after a change by few blocks, and Compatible makes tables by which the
// tables in force can be replaced without a credit loop on the way. All use nueSearch: Dijkstra's
// algorithm for one LID after the other, with a cycle test for each new dependency, if needed
// beside an escape tree, which leaves no LID without a path. The tables of strategies, in
// strategy.go, list what is tried for a LID and for the gaps of tables, and when the next is tried.
//
// The functions write the tables that they are given, so nothing else may use these meanwhile.
// Package graph explains the letters of times.
package search

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Nue gives lids (nil: all) paths as the engine nue does, such that all of them together close no
// cycle in the channel dependency graph with turns; nil: with the turns of the paths to all other
// LIDs in r. LIDs to which some switch with CAs has no such path get no entries; unreached is
// their number. It is 0 if turns is empty, but not nil, as for LIDs that have a virtual lane of
// their own, and the network is connected.
//
// Time: the time of the engine nue.
func Nue(ctx context.Context, r *routes.Routes, lids []mad.LID, turns []graph.Turn) (unreached int, err error) {
	g := r.Graph()
	if len(g.Switches()) == 0 {
		return 0, errors.New("nue: the fabric has no switch")
	}
	if lids == nil {
		lids = g.LIDs(0)
	}
	wanted := make([]bool, int(g.Top())+1)
	for _, lid := range lids {
		t := g.TerminalByLID(lid)
		if t < 0 || g.Terminals()[t].Switch < 0 {
			return 0, fmt.Errorf("nue: no port on a switch has LID %d", lid)
		}
		wanted[lid] = true
	}
	r.ForgetOrigin()
	r.CopyShared()
	var given *verify.DependencyGraph
	if turns == nil {
		given, err = verify.Dependencies(ctx, r, verify.SelectEndpoints(g, 0).Without(wanted))
	} else {
		given, err = turnGraph(g, turns)
	}
	if err != nil {
		return 0, err
	}
	if cycle := given.Cycle(); cycle != nil {
		return 0, fmt.Errorf("nue: the existing turns already close a credit loop, through %s", g.ChannelPort(int(cycle[0])).Label())
	}
	n, err := newNueBeside(ctx, r, given)
	if err != nil {
		return 0, err
	}
	for _, toSwitches := range []bool{false, true} {
		if toSwitches {
			n.allowTests(testsOfLast)
		}
		for d := range g.Switches() {
			for _, dest := range g.DestsOf(d) {
				if !wanted[dest.LID] || (dest.Out == 0) != toSwitches {
					continue
				}
				if ctx.Err() != nil {
					return 0, context.Cause(ctx)
				}
				for s := range g.Switches() {
					r.Row(s)[dest.LID] = routes.NoPort
				}
				n.avoidSiblings(dest)
				if !n.route(d, dest) {
					unreached++
				}
			}
		}
	}
	return unreached, fillSome(ctx, r, wanted)
}

// nueSearch finds the paths to LIDs, one after the other, such that all paths together close no
// cycle in the channel dependency graph. What it prefers is in its settings; all else is its state.
type nueSearch struct {
	settings
	g         *graph.Graph
	routes    *routes.Routes
	endpoints []int64 // ports of CAs and routers, by switch
	component []int32 // by switch: the lowest switch of its connected component

	// Of the paths so far:
	order   *verify.DependencyOrder // of their dependencies
	load    []int64                 // routes, by channel
	changed *blockSet               // where entries change already; nil: none
	tree    []int32                 // by switch: the channel to its parent in the escape tree; nil: no tree
	escaped int                     // LIDs that took the escape tree
	siblings

	// Of the present LID:
	home    int     // the switch it is on
	via     []int32 // by switch: the channel towards it
	cost    []int64 // by switch, of the best path known
	settled []bool  // by switch: its path is final
	left    int     // switches with CAs in home's component that are not settled
	done    []int32 // switches that have a path, nearest first
	flow    []int64 // by switch: CAs and routers whose packets pass through
	frontier
	levels
	inForce
}

// frontier is the state of a search by a queue: the paths that may be settled next.
type frontier struct {
	queue    graph.CostHeap
	bound    []int   // by switch: at least so many hops from the nearest that has no path, when it began; nil: 0
	blocked  []bool  // by channel: its dependency would close a cycle
	rejected []int32 // those channels
	patient  bool    // paths of switches without CAs wait: see search
}

// siblings are the channels on the paths to the other LIDs of a port.
type siblings struct {
	port    int32   // terminal of the present LID; -1: none
	sibling []int32 // channels that cost siblingCost more
}

// hopCost is the cost of a hop: more than the cost of the routes on any path, so that a short
// path goes before one with few routes.
const hopCost = graph.MaxWeight

// newNueSearch begins with the dependencies of d, and the channels in an order in
// which all of these lead forward.
func newNueSearch(r *routes.Routes, d *verify.DependencyGraph, position []int32, s settings) *nueSearch {
	g := r.Graph()
	n := &nueSearch{settings: s, g: g, routes: r, order: verify.NewDependencyOrder(d, position), siblings: siblings{port: -1}}
	n.allowTests(s.tests)
	n.load, n.blocked = make([]int64, len(g.Channels())), make([]bool, len(g.Channels()))
	n.component = graph.Components(g)
	n.endpoints, n.flow = g.Endpoints(), make([]int64, len(g.Switches()))
	n.via, n.cost, n.settled = make([]int32, len(g.Switches())), make([]int64, len(g.Switches())), make([]bool, len(g.Switches()))
	return n
}

// allowTests bounds the cycle tests from now on to so many passes through all channels; 0: no bound.
func (n *nueSearch) allowTests(passes int) { n.order.Budget = passes * len(n.g.Channels()) }

// begin starts the search for a LID on switch home.
func (n *nueSearch) begin(home int) {
	n.prepare(home)
	n.settle(int32(home), graph.NoChannel, 0)
}

// prepare forgets the search before.
func (n *nueSearch) prepare(home int) {
	n.reset(home)
	n.queue = n.queue[:0]
	for _, c := range n.rejected {
		n.blocked[c] = false
	}
	n.rejected, n.patient = n.rejected[:0], true
}

// reset forgets all paths.
func (n *nueSearch) reset(home int) {
	n.home, n.swept, n.found = home, false, false
	for s := range n.via {
		n.via[s], n.cost[s], n.settled[s] = graph.NoChannel, -1, false
	}
	n.left = 0
	for s, endpoints := range n.endpoints {
		if endpoints > 0 && n.component[s] == n.component[home] {
			n.left++
		}
	}
}

// settle makes via the path of s, and relaxes the channels into s.
func (n *nueSearch) settle(s, via int32, cost int64) {
	n.fix(s, via, cost)
	for c := n.g.FirstChannel(int(s)); c < n.g.FirstChannel(int(s+1)); c++ {
		n.relax(n.g.Channels()[c].Reverse, cost)
	}
}

// fix makes via the path of s, and relaxes nothing.
func (n *nueSearch) fix(s, via int32, cost int64) {
	if n.endpoints[s] > 0 && !n.settled[s] {
		n.left--
	}
	n.settled[s], n.via[s], n.cost[s] = true, via, cost
}

// item returns the path over channel c as the queue orders it: by its cost, and a lower
// bound of the cost from there to a switch that is not settled.
func (n *nueSearch) item(c int32) graph.CostItem {
	s := n.g.Channels()[c].From
	if n.bound == nil {
		return graph.CostItem{Cost: n.cost[s], Channel: c}
	}
	return graph.CostItem{Cost: n.cost[s] + hopCost*int64(n.bound[s]), Channel: c, Bound: int32(n.bound[s])}
}

// relax puts the path over channel c in the queue if it is the best known path of the switch
// where c begins. beyond is the cost of the rest of the path.
func (n *nueSearch) relax(c int32, beyond int64) {
	s := n.g.Channels()[c].From
	if n.settled[s] || n.blocked[c] {
		return
	}
	change := n.change(s, c)
	cost := beyond + hopCost*int64(n.g.Channels()[c].Weight) + n.load[c] + change
	if n.cost[s] >= 0 && n.cost[s] <= cost || n.sameBlocks && change > 0 || n.waits(s, c) {
		return
	}
	if cost += n.newDependencies(s, c); n.cost[s] >= 0 && n.cost[s] <= cost {
		return
	}
	n.cost[s] = cost
	n.queue.Push(n.item(c))
}

// waits reports whether the path from s over channel c must wait: see search.
func (n *nueSearch) waits(s, c int32) bool {
	next := n.via[n.g.ChannelTo(c)]
	switch {
	case next < 0:
		return false
	case n.order.Budget < 0:
		return !n.order.Agrees(c, next)
	}
	return n.patient && n.endpoints[s] == 0 && !n.order.Expects(c, next)
}

// search is Dijkstra's algorithm from the destination, or, where bound is known, A*
// (Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of
// minimum cost paths", 1968). A path whose dependency would close a cycle is
// rejected when it comes out of the queue, and the switch's next best one takes its
// place. If all paths of a switch are rejected, backtrack may help. The search ends
// when all switches with CAs are settled: others carry only their own management
// packets, and each cycle test takes time. So paths of switches without CAs wait, if
// their dependency is not in the first topological order, until it turns out that
// the rest cannot be reached otherwise.
func (n *nueSearch) search() {
	for n.left > 0 {
		n.settleQueue()
		if n.left == 0 || n.order.Budget < 0 || !n.stopWaiting() && !n.backtrack() {
			return
		}
	}
}

// settleQueue settles switches, the cheapest path first, until no path is left in the queue or all switches
// with CAs are settled.
func (n *nueSearch) settleQueue() {
	for len(n.queue) > 0 && n.left > 0 {
		item := n.queue.Pop()
		s := n.g.Channels()[item.Channel].From
		if n.settled[s] || n.item(item.Channel) != item || n.blocked[item.Channel] {
			continue
		}
		if next := n.via[n.g.ChannelTo(item.Channel)]; (next < 0 || n.order.TryAdd(item.Channel, next)) && n.takesOlder(item.Channel) {
			n.settle(s, item.Channel, n.cost[s]-n.change(s, item.Channel))
			continue
		}
		n.blocked[item.Channel] = true
		n.rejected = append(n.rejected, item.Channel)
		n.relaxOut(s)
	}
}

// stopWaiting queues the paths that waited, and reports whether any may have.
func (n *nueSearch) stopWaiting() bool {
	if !n.patient {
		return false
	}
	n.patient = false
	for s := range n.settled {
		if !n.settled[s] {
			n.relaxOut(int32(s))
		}
	}
	return true
}

// relaxOut looks for the next best path of s.
func (n *nueSearch) relaxOut(s int32) {
	n.cost[s] = -1
	for c := n.g.FirstChannel(int(s)); c < n.g.FirstChannel(int(s+1)); c++ {
		if to := n.g.ChannelTo(c); n.settled[to] {
			n.relax(c, n.cost[to])
		}
	}
}

// backtrack settles a switch all of whose paths were rejected, by giving another
// path to a neighbour that is settled already: a switch with CAs if possible, else,
// as others may be reached through it, one without.
func (n *nueSearch) backtrack() bool {
	if n.left == 0 {
		return false
	}
	for _, withoutCAs := range []bool{false, true} {
		for _, c := range n.rejected {
			v := n.g.ChannelTo(c)
			s := n.g.Channels()[c].From
			if (n.endpoints[s] > 0 || withoutCAs) && !n.settled[s] && n.settled[v] && int(v) != n.home && n.reroute(c, v) {
				n.settle(s, c, n.cost[v]+hopCost*int64(n.g.Channels()[c].Weight)+n.load[c])
				return true
			}
		}
	}
	return false
}

// reroute gives v another path such that neither the paths that pass through v now
// nor a path over channel c would close a cycle.
func (n *nueSearch) reroute(c, v int32) bool {
	g := n.g
	for other := g.FirstChannel(int(v)); other < g.FirstChannel(int(v+1)); other++ {
		w := g.ChannelTo(other)
		if other == n.via[v] || other == g.Channels()[c].Reverse || !n.settled[w] || n.passesThrough(w, v) {
			continue
		}
		fits := n.order.TryAdd(c, other) && n.takesOlder(c) && n.takesOlder(other) && (n.via[w] < 0 || n.order.TryAdd(other, n.via[w]))
		for in := g.FirstChannel(int(v)); in < g.FirstChannel(int(v+1)) && fits; in++ {
			back := g.Channels()[in].Reverse
			fits = n.via[g.ChannelTo(in)] != back || n.order.TryAdd(back, other)
		}
		if fits {
			n.via[v] = other
			n.cost[v] = n.cost[w] + hopCost*int64(g.Channels()[other].Weight) + n.load[other]
			return true
		}
	}
	return false
}

// passesThrough reports whether the path from s passes through v.
func (n *nueSearch) passesThrough(s, v int32) bool {
	for s != v && n.via[s] >= 0 {
		s = n.g.ChannelTo(n.via[s])
	}
	return s == v
}

// collect puts all switches that have a path in done, nearest first.
func (n *nueSearch) collect() {
	n.done = append(n.done[:0], int32(n.home))
	for i := 0; i < len(n.done); i++ {
		s := n.done[i]
		for c := n.g.FirstChannel(int(s)); c < n.g.FirstChannel(int(s+1)); c++ {
			if from := n.g.ChannelTo(c); n.via[from] == n.g.Channels()[c].Reverse {
				n.done = append(n.done, from)
			}
		}
	}
}

// finish writes the entries, counts the routes, and takes back the dependencies
// that no packet of a CA or router has. Switches that none of these packets pass
// through are left to FillIn.
func (n *nueSearch) finish(dest graph.Dest) {
	n.collect()
	n.routes.Row(n.home)[dest.LID] = dest.Out
	for _, s := range n.done {
		if n.flow[s] = n.endpoints[s]; n.older != nil {
			n.flow[s] += int64(len(n.older[s]))
		}
	}
	for _, s := range slices.Backward(n.done) {
		if via := n.via[s]; via >= 0 && n.flow[s] > 0 {
			n.routes.Row(int(s))[dest.LID] = n.g.Channels()[via].Port
			to := n.g.ChannelTo(via)
			n.flow[to] += n.flow[s]
			if dest.Out > 0 {
				n.load[via] += n.flow[s]
			}
			if next := n.via[to]; n.swept && next >= 0 {
				n.order.Add(via, next)
			}
		}
	}
	n.order.Commit(func(v, w int32) bool {
		from, to := n.g.Channels()[v].From, n.g.ChannelTo(v)
		return n.via[to] == w && (n.via[from] == v && n.flow[from] > 0 || n.older != nil && slices.Contains(n.older[to], v))
	})
}

// resume starts the search for a LID with the switches settled by which packets of CAs already
// arrive, and returns these switches. Entries that none of these packets take have dependencies that
// were not tested.
func (n *nueSearch) resume(x gap) []bool {
	n.prepare(x.d)
	n.fix(int32(x.d), graph.NoChannel, 0)
	n.keep(x)
	if n.walk == nil {
		n.walk = verify.NewWalk(n.g)
	}
	w := n.walk
	w.Begin()
	for s, endpoints := range n.endpoints {
		if endpoints > 0 {
			w.From(int32(s), x.before, x.dest.Terminal)
		}
	}
	for _, s := range w.Order {
		if w.State[s] >= 0 {
			n.fix(s, w.Via[s], hopCost*int64(w.State[s]))
		}
	}
	var unsettled []int
	for s, endpoints := range n.endpoints {
		if endpoints > 0 && !n.settled[s] {
			unsettled = append(unsettled, s)
		}
	}
	n.bound = graph.DistancesFrom(n.g, unsettled)
	had := slices.Clone(n.settled)
	for s, has := range had {
		for c := n.g.FirstChannel(s); has && c < n.g.FirstChannel(s+1); c++ {
			n.relax(n.g.Channels()[c].Reverse, n.cost[s])
		}
	}
	return had
}

// siblingCost is the additional cost of a channel in a search for the LID of a port, if the path
// to another of its LIDs takes it: more than all routes on a channel, and on no path as much as
// hopCost.
const siblingCost = 1 << 32

// avoidSiblings adds siblingCost to the channels on the paths to the LIDs of the port of next, and
// removes it from the channels of the port before.
func (n *nueSearch) avoidSiblings(next graph.Dest) {
	if next.Terminal == n.port {
		for s, via := range n.via {
			if via >= 0 && n.flow[s] > 0 && n.load[via] < siblingCost {
				n.load[via] += siblingCost
				n.sibling = append(n.sibling, via)
			}
		}
		return
	}
	n.forgetSiblings()
	n.port = next.Terminal
}

// forgetSiblings removes siblingCost from all channels.
func (n *nueSearch) forgetSiblings() {
	for _, c := range n.sibling {
		n.load[c] -= siblingCost
	}
	n.sibling, n.port = n.sibling[:0], -1
}

// turnGraph returns the channel dependency graph of turns.
func turnGraph(g *graph.Graph, turns []graph.Turn) (*verify.DependencyGraph, error) {
	d := verify.NewDependencyGraph(g, 1)
	for _, t := range turns {
		channels, err := t.Channels(g)
		if err != nil {
			return nil, err
		}
		for _, c := range channels {
			d.Use(c[0])
			d.Use(c[1])
			d.Add(c[0], c[1])
		}
	}
	return d, nil
}

// newNueBeside begins a search beside given dependencies. Without such dependencies it has an escape
// tree, so that it finds a path to every LID.
func newNueBeside(ctx context.Context, r *routes.Routes, given *verify.DependencyGraph) (*nueSearch, error) {
	if _, edges := given.Size(); edges > 0 {
		return newNueSearch(r, given, given.Positions(), settings{}), nil
	}
	root, ranks, err := EscapeRoot(ctx, r.Graph(), nil)
	if err != nil {
		return nil, err
	}
	n := newNueSearch(r, given, verify.UpDownOrder(r.Graph(), ranks), settings{})
	n.addTree(root)
	return n, nil
}

// fillSome gives switches without CAs, which send only their own management packets, shortest
// paths to the LIDs that are wanted, where they have no path.
func fillSome(ctx context.Context, r *routes.Routes, wanted []bool) error {
	g := r.Graph()
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return err
	}
	endpoints := g.Endpoints()
	return graph.Each(ctx, g.Workers(), len(g.Switches()), func(_, s int) {
		for d := range g.Switches() {
			if endpoints[s] > 0 || connected.Distance(s, d) < 0 || s == d {
				continue
			}
			var ports []uint8
			for _, dest := range g.DestsOf(d) {
				if !wanted[dest.LID] || r.Row(s)[dest.LID] != routes.NoPort {
					continue
				}
				if ports == nil {
					ports = connected.Next(s, d)
				}
				r.Row(s)[dest.LID] = ports[int(dest.LID)%len(ports)]
			}
		}
	})
}
