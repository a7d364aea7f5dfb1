package routing

import "slices"

// nueSearch finds the paths to one LID after the other, such that all of them
// together close no cycle in the channel dependency graph.
type nueSearch struct {
	g         *Graph
	routes    *Routes
	order     *topoOrder // of the dependencies of all paths so far
	load      []int64    // routes so far, by channel
	endpoints []int64    // ports of CAs and routers, by switch
	component []int32    // by switch: the lowest switch of its connected component
	tree      []int32    // by switch: the channel to its parent in the escape tree
	escaped   int        // LIDs that took the escape tree
	port      int32      // terminal of the present LID
	dear      []int32    // channels that cost siblingCost more

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
	queue    costHeap
	done     []int32 // switches that have a path, nearest first
	flow     []int64 // by switch: CAs and routers whose packets pass through
	walk     *walk   // of tables that there are already
}

// hopCost is the cost of a hop: more than that of the routes on any path, so that
// a short path goes before one with few routes.
const hopCost = 1 << 40

// newNueSearch begins with the dependencies of d, and the channels in an order in
// which all of these lead forward.
func newNueSearch(r *Routes, d *CDG, position []int32) *nueSearch {
	g := r.graph
	n := &nueSearch{port: -1, g: g, routes: r, order: newTopoOrder(d, position)}
	n.load, n.blocked = make([]int64, len(g.channels)), make([]bool, len(g.channels))
	n.component = g.connected()
	n.endpoints, n.flow = g.endpointsOn(), make([]int64, len(g.switches))
	n.via, n.cost, n.settled = make([]int32, len(g.switches)), make([]int64, len(g.switches)), make([]bool, len(g.switches))
	return n
}

// begin starts the search for a LID on switch home.
func (n *nueSearch) begin(home int) {
	n.home = home
	n.queue = n.queue[:0]
	for s := range n.via {
		n.via[s], n.cost[s], n.settled[s] = noTarget, -1, false
	}
	for _, c := range n.rejected {
		n.blocked[c] = false
	}
	n.rejected, n.patient = n.rejected[:0], true
	n.left = 0
	for s, endpoints := range n.endpoints {
		if endpoints > 0 && n.component[s] == n.component[home] {
			n.left++
		}
	}
	n.settle(int32(home), noTarget, 0)
}

// settle makes via the path of s, and relaxes the channels into s.
func (n *nueSearch) settle(s, via int32, cost int64) {
	n.fix(s, via, cost)
	for c := n.g.chanBase[s]; c < n.g.chanBase[s+1]; c++ {
		n.relax(n.g.channels[c].Reverse, cost)
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
func (n *nueSearch) item(c int32) costItem {
	s := n.g.channels[c].From
	if n.bound == nil {
		return costItem{cost: n.cost[s], channel: c}
	}
	return costItem{n.cost[s] + hopCost*int64(n.bound[s]), c, int32(n.bound[s])}
}

// relax puts the path over channel c in the queue if it is the best one known for
// the switch that c begins at. beyond is the cost of the rest of the path.
func (n *nueSearch) relax(c int32, beyond int64) {
	s := n.g.channels[c].From
	cost := beyond + hopCost*int64(n.g.channels[c].Weight) + n.load[c]
	if n.settled[s] || n.blocked[c] || n.cost[s] >= 0 && n.cost[s] <= cost || n.waits(s, c) {
		return
	}
	n.cost[s] = cost
	n.queue.push(n.item(c))
}

// waits says whether the path from s over channel c must wait: see search.
func (n *nueSearch) waits(s, c int32) bool {
	if n.order.budget < 0 || n.patient && n.endpoints[s] == 0 {
		next := n.via[n.g.chanTo[c]]
		return next >= 0 && !n.order.expects(c, next)
	}
	return false
}

// search is Dijkstra's algorithm from the destination, or, where bound is known, A*
// (Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of
// minimum cost paths", 1968). A path whose dependency would close a cycle is
// rejected when it comes out of the queue, and the switch's next best one takes its
// place. If all paths of a switch are rejected, backtrack may help. The search ends
// when all switches with CAs are settled: others carry only their own management
// packets, and each cycle test takes time. So paths of switches without CAs wait, if
// their dependency is none of the first topological order, until it turns out that
// the rest cannot be reached otherwise.
func (n *nueSearch) search() {
	for n.left > 0 {
		for len(n.queue) > 0 && n.left > 0 {
			item := n.queue.pop()
			s := n.g.channels[item.channel].From
			if n.settled[s] || n.item(item.channel) != item || n.blocked[item.channel] {
				continue
			}
			if next := n.via[n.g.chanTo[item.channel]]; next < 0 || n.order.tryAdd(item.channel, next) {
				n.settle(s, item.channel, n.cost[s])
				continue
			}
			n.blocked[item.channel] = true
			n.rejected = append(n.rejected, item.channel)
			n.relaxOut(s)
		}
		switch {
		case n.left == 0 || n.order.budget < 0:
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
	for c := n.g.chanBase[s]; c < n.g.chanBase[s+1]; c++ {
		if to := n.g.chanTo[c]; n.settled[to] {
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
			v := n.g.chanTo[c]
			s := n.g.channels[c].From
			if (n.endpoints[s] > 0 || withoutCAs) && !n.settled[s] && n.settled[v] && int(v) != n.home && n.reroute(c, v) {
				n.settle(s, c, n.cost[v]+hopCost*int64(n.g.channels[c].Weight)+n.load[c])
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
	for other := g.chanBase[v]; other < g.chanBase[v+1]; other++ {
		w := g.chanTo[other]
		if other == n.via[v] || other == g.channels[c].Reverse || !n.settled[w] || n.passesThrough(w, v) {
			continue
		}
		fits := n.order.tryAdd(c, other) && (n.via[w] < 0 || n.order.tryAdd(other, n.via[w]))
		for in := g.chanBase[v]; in < g.chanBase[v+1] && fits; in++ {
			back := g.channels[in].Reverse
			fits = n.via[g.chanTo[in]] != back || n.order.tryAdd(back, other)
		}
		if fits {
			n.via[v] = other
			n.cost[v] = n.cost[w] + hopCost*int64(g.channels[other].Weight) + n.load[other]
			return true
		}
	}
	return false
}

// passesThrough says whether the path from s passes through v.
func (n *nueSearch) passesThrough(s, v int32) bool {
	for s != v && n.via[s] >= 0 {
		s = n.g.chanTo[n.via[s]]
	}
	return s == v
}

// collect puts all switches that have a path in done, nearest first.
func (n *nueSearch) collect() {
	n.done = append(n.done[:0], int32(n.home))
	for i := 0; i < len(n.done); i++ {
		s := n.done[i]
		for c := n.g.chanBase[s]; c < n.g.chanBase[s+1]; c++ {
			if from := n.g.chanTo[c]; n.via[from] == n.g.channels[c].Reverse {
				n.done = append(n.done, from)
			}
		}
	}
}

// finish writes the entries, counts the routes, and takes back the dependencies
// that no packet of a CA or router has. Switches that none of these packets pass
// through are left to fillIn.
func (n *nueSearch) finish(dest dest) {
	n.collect()
	n.routes.Row(n.home)[dest.lid] = dest.out
	for _, s := range n.done {
		n.flow[s] = n.endpoints[s]
	}
	for _, s := range slices.Backward(n.done) {
		if via := n.via[s]; via >= 0 && n.flow[s] > 0 {
			n.routes.Row(int(s))[dest.lid] = n.g.channels[via].Port
			n.flow[n.g.chanTo[via]] += n.flow[s]
			if dest.out > 0 {
				n.load[via] += n.flow[s]
			}
		}
	}
	n.order.commit(func(v, w int32) bool {
		from := n.g.channels[v].From
		return n.via[from] == v && n.via[n.g.chanTo[v]] == w && n.flow[from] > 0
	})
}
