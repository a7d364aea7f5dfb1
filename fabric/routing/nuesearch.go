package routing

import "slices"

// nueState is the search for paths to one LID after the other, which all agree.
type nueState struct {
	g       *Graph
	routes  *Routes
	order   *order
	load    []int64 // routes, by channel
	on      []int64 // CAs and routers, by switch
	part    []int32 // by switch: the lowest one of its part of the network
	escapes []int32 // channel towards the root of the spanning tree, by switch

	// Of one LID:
	home    int
	via     []int32 // by switch: the channel towards it
	cost    []int64 // by switch, of the best way known
	settled []bool
	left    int    // switches with CAs that are connected, but not settled
	toGo    []int  // by switch: hops from the nearest of these, when it began; nil: unknown
	blocked []bool // by channel, where it would close a cycle
	refused []int32
	queue   costHeap
	done    []int32 // switches that have a way, nearest first
	flow    []int64
	walk    *walk // of who begins with paths that there are
	detours int
}

// hopCost is what a hop costs: more than the routes on any path.
const hopCost = 1 << 40

func newNue(r *Routes, d *cdg, ranks *Ranks) *nueState {
	g := r.graph
	n := &nueState{g: g, routes: r, order: newOrder(d, g.upDownOrder(ranks))}
	n.load, n.blocked = make([]int64, len(g.channels)), make([]bool, len(g.channels))
	n.part = (&levels{g: g, level: make([]int, len(g.switches))}).parts(func(int) bool { return true })
	n.on, n.flow = g.endpointsOn(), make([]int64, len(g.switches))
	n.via, n.cost, n.settled = make([]int32, len(g.switches)), make([]int64, len(g.switches)), make([]bool, len(g.switches))
	return n
}

// begin starts at the switch that the LID is on.
func (n *nueState) begin(home int) {
	n.home = home
	n.queue = n.queue[:0]
	for s := range n.via {
		n.via[s], n.cost[s], n.settled[s] = noTarget, -1, false
	}
	for _, c := range n.refused {
		n.blocked[c] = false
	}
	n.refused = n.refused[:0]
	n.left = 0
	for s, on := range n.on {
		if on > 0 && n.part[s] == n.part[home] {
			n.left++
		}
	}
	n.settle(int32(home), noTarget, 0)
}

// settle decides on s, and offers the way through it to its neighbours.
func (n *nueState) settle(s, via int32, cost int64) {
	n.decide(s, via, cost)
	for c := n.g.chanBase[s]; c < n.g.chanBase[s+1]; c++ {
		n.offer(n.g.channels[c].Reverse, cost)
	}
}

// decide settles s alone.
func (n *nueState) decide(s, via int32, cost int64) {
	if n.on[s] > 0 && !n.settled[s] {
		n.left--
	}
	n.settled[s], n.via[s], n.cost[s] = true, via, cost
}

// item is the way over channel c for the queue: by what it costs, and what the
// rest of the way to a switch that is looked for will cost at least.
func (n *nueState) item(c int32) costItem {
	s := n.g.channels[c].From
	if n.toGo == nil {
		return costItem{cost: n.cost[s], channel: c}
	}
	return costItem{n.cost[s] + hopCost*int64(n.toGo[s]), c, int32(n.toGo[s])}
}

// offer puts the way over channel c in the queue if it is the best one known.
func (n *nueState) offer(c int32, beyond int64) {
	s := n.g.channels[c].From
	cost := beyond + hopCost*int64(n.g.channels[c].Weight) + n.load[c]
	if n.settled[s] || n.blocked[c] || n.cost[s] >= 0 && n.cost[s] <= cost {
		return
	}
	n.cost[s] = cost
	n.queue.push(n.item(c))
}

// spread is Dijkstra's algorithm; A*, where toGo is known. A way that would
// close a cycle is refused when its turn comes, and the next best one looked
// for. Switches for which all are refused may still get one through a neighbour
// that takes another itself. It ends when all switches with CAs are settled: the
// others need no path that is fit for much traffic, and each turn that is tried
// takes its time.
func (n *nueState) spread() {
	for n.left > 0 {
		for len(n.queue) > 0 && n.left > 0 {
			item := n.queue.pop()
			s := n.g.channels[item.channel].From
			if n.settled[s] || n.item(item.channel) != item || n.blocked[item.channel] {
				continue
			}
			if next := n.via[n.g.chanTo[item.channel]]; next < 0 || n.order.try(item.channel, next) {
				n.settle(s, item.channel, n.cost[s])
				continue
			}
			n.blocked[item.channel] = true
			n.refused = append(n.refused, item.channel)
			n.cost[s] = -1
			for c := n.g.chanBase[s]; c < n.g.chanBase[s+1]; c++ {
				if to := n.g.chanTo[c]; n.settled[to] {
					n.offer(c, n.cost[to])
				}
			}
		}
		if !n.unstick() {
			return
		}
	}
}

// unstick settles a switch that is stuck, by sending a neighbour another way:
// one with CAs, or if none can be helped, and some are cut off, another.
func (n *nueState) unstick() bool {
	if n.left == 0 {
		return false
	}
	for _, withoutCAs := range []bool{false, true} {
		for _, c := range n.refused {
			v := n.g.chanTo[c]
			s := n.g.channels[c].From
			if (n.on[s] > 0 || withoutCAs) && !n.settled[s] && n.settled[v] && int(v) != n.home && n.divert(c, v) {
				n.settle(s, c, n.cost[v]+hopCost*int64(n.g.channels[c].Weight)+n.load[c])
				return true
			}
		}
	}
	return false
}

// divert sends v another way, which those that come through v can follow, and
// who comes by channel c too.
func (n *nueState) divert(c, v int32) bool {
	g := n.g
	for other := g.chanBase[v]; other < g.chanBase[v+1]; other++ {
		w := g.chanTo[other]
		if other == n.via[v] || other == g.channels[c].Reverse || !n.settled[w] || n.leadsThrough(w, v) {
			continue
		}
		fits := n.order.try(c, other) && (n.via[w] < 0 || n.order.try(other, n.via[w]))
		for in := g.chanBase[v]; in < g.chanBase[v+1] && fits; in++ {
			back := g.channels[in].Reverse
			fits = n.via[g.chanTo[in]] != back || n.order.try(back, other)
		}
		if fits {
			n.via[v] = other
			n.cost[v] = n.cost[w] + hopCost*int64(g.channels[other].Weight) + n.load[other]
			return true
		}
	}
	return false
}

// leadsThrough: the way from s leads through v.
func (n *nueState) leadsThrough(s, v int32) bool {
	for s != v && n.via[s] >= 0 {
		s = n.g.chanTo[n.via[s]]
	}
	return s == v
}

// arrange puts all switches that have a way to the destination in done, nearest
// first.
func (n *nueState) arrange() {
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

// finish writes the entries, counts the routes, and forgets dependencies that
// no packet of a CA or router brings about. Switches that none of these comes
// through are left to fillIn.
func (n *nueState) finish(dest dest) {
	n.arrange()
	n.routes.Row(n.home)[dest.lid] = dest.out
	for _, s := range n.done {
		n.flow[s] = n.on[s]
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
