// Package search finds paths that close no credit loop with those that are there, as the
// routing engine nue does (Domke, Hoefler, Matsuoka, 2016), and completes tables by them.
//
//	search.go   the search for the paths to one LID after the other
//	levels.go   the same without cycle tests, and the lane on which it finds shortest paths
//	resume.go   of the paths that are missing only, or apart from those to the same port
//	escape.go   the spanning tree that leaves no LID without a path
//	lane.go     InLanes: all tables, on one virtual lane or more
//	refine.go   other paths for LIDs, now that the load of all is known
//	beside.go   Nue: some LIDs, beside given turns
//	complete.go Complete: tables of up*/down*, where some paths are missing
//	addition.go the paths that are missing, and how often they are searched for
//	downup.go   paths to switches that turn from down to up once
//	patch.go    Patch: tables of which nothing is known, and those of nue, after a change;
//	ways.go     in the way by which the fewest blocks change; blocks.go: which these are
//	toswitches.go paths to switches that are missing then, by few blocks
//	relevel.go  service levels of paths that change, where lanes depend on ports of switches
//	room.go     where a lane has no room for the paths that change; move.go: on others
//	compatible.go Compatible: tables near those of an engine that those in force can be
//	            replaced by
//
// The functions write the tables that they are given, so no others may use these meanwhile.
// Package graph explains the letters of times.
package search

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// nueSearch finds the paths to one LID after the other, such that all of them
// together close no cycle in the channel dependency graph.
type nueSearch struct {
	g         *graph.Graph
	routes    *routes.Routes
	order     *verify.DependencyOrder // of the dependencies of all paths so far
	load      []int64                 // routes so far, by channel
	endpoints []int64                 // ports of CAs and routers, by switch
	component []int32                 // by switch: the lowest switch of its connected component
	tree      []int32                 // by switch: the channel to its parent in the escape tree
	escaped   int                     // LIDs that took the escape tree
	tests     int                     // channels that the cycle tests of a LID go through, as far as it has paths without more; -1: none; 0: all
	port      int32                   // terminal of the present LID
	dear      []int32                 // channels that cost siblingCost more

	// Of the present LID:
	home     int     // the switch it is on
	via      []int32 // by switch: the channel towards it
	cost     []int64 // by switch, of the best path known
	settled  []bool  // by switch: its path is final
	left     int     // switches with CAs in home's component that are not settled
	bound    []int   // by switch: hops from the nearest of these, when it began, at least; nil: 0
	blocked  []bool  // by channel: its dependency would close a cycle
	rejected []int32 // those channels
	patient  bool    // see search
	queue    graph.CostHeap
	done     []int32      // switches that have a path, nearest first
	flow     []int64      // by switch: CAs and routers whose packets pass through
	walk     *verify.Walk // of tables that there are already
	kept     []int32      // by switch: the channel of its entry in force, if that costs less than others, or -1; nil: none
	behind   []int32      // by switch: see linksBehind; with kept
	changed  *blockSet    // where entries change already
	fresh    freshCost    // of dependencies, with kept
	thrifty  bool         // no entry changes that may stay, outside of changed
	older    [][]int32    // by switch: the channels by which packets come that an entry in force sent; nil: none
	levels                // without cycle tests
}

// hopCost is the cost of a hop: more than that of the routes on any path, so that
// a short path goes before one with few routes.
const hopCost = graph.MaxWeight

// changeCost is what it costs to change an entry in force that may stay: detours of some hops are
// better.
const changeCost = 8 * hopCost

// newNueSearch begins with the dependencies of d, and the channels in an order in
// which all of these lead forward.
func newNueSearch(r *routes.Routes, d *verify.DependencyGraph, position []int32) *nueSearch {
	g := r.Graph()
	n := &nueSearch{port: -1, g: g, routes: r, order: verify.NewDependencyOrder(d, position)}
	n.load, n.blocked = make([]int64, len(g.Channels())), make([]bool, len(g.Channels()))
	n.component = graph.Components(g)
	n.endpoints, n.flow = g.Endpoints(), make([]int64, len(g.Switches()))
	n.via, n.cost, n.settled = make([]int32, len(g.Switches())), make([]int64, len(g.Switches())), make([]bool, len(g.Switches()))
	return n
}

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

// item is the path over channel c as the queue orders it: by its cost, and a lower
// bound of the cost from there to a switch that is not settled.
func (n *nueSearch) item(c int32) graph.CostItem {
	s := n.g.Channels()[c].From
	if n.bound == nil {
		return graph.CostItem{Cost: n.cost[s], Channel: c}
	}
	return graph.CostItem{Cost: n.cost[s] + hopCost*int64(n.bound[s]), Channel: c, Bound: int32(n.bound[s])}
}

// relax puts the path over channel c in the queue if it is the best one known for
// the switch that c begins at. beyond is the cost of the rest of the path.
func (n *nueSearch) relax(c int32, beyond int64) {
	s := n.g.Channels()[c].From
	if n.settled[s] || n.blocked[c] {
		return
	}
	change := n.change(s, c)
	cost := beyond + hopCost*int64(n.g.Channels()[c].Weight) + n.load[c] + change
	if n.cost[s] >= 0 && n.cost[s] <= cost || n.thrifty && change > 0 || n.waits(s, c) {
		return
	}
	if cost += n.newDependencies(s, c); n.cost[s] >= 0 && n.cost[s] <= cost {
		return
	}
	n.cost[s] = cost
	n.queue.Push(n.item(c))
}

// change is what it costs that the entry of s leads to channel c. It counts once, when s is
// settled: what is behind s, as before, does not change.
func (n *nueSearch) change(s, c int32) int64 {
	if n.kept == nil || n.kept[s] < 0 || n.kept[s] == c {
		return 0
	}
	return changeCost * int64(1+n.behind[s])
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
		switch {
		case n.left == 0 || n.order.Budget < 0:
			return
		case n.patient:
			n.patient = false
			for s := range n.settled {
				if !n.settled[s] {
					n.relaxOut(int32(s))
				}
			}
		case !n.backtrack():
			return
		}
	}
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

// takesOlder reports whether packets that an entry in force sent to the switch that channel
// c begins at may go on over c.
func (n *nueSearch) takesOlder(c int32) bool {
	if n.older == nil {
		return true
	}
	for _, in := range n.older[n.g.Channels()[c].From] {
		if !n.order.TryAdd(in, c) {
			return false
		}
	}
	return true
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
