package routing

import (
	"context"
	"fmt"
	"slices"
)

// nue finds paths in the channel dependency graph (Domke, Hoefler, Matsuoka,
// "Routing on the dependency graph: a new approach to deadlock-free
// high-performance routing", 2016), as OpenSM's nue, on one virtual lane. In any
// network that is connected, LID after LID gets the shortest and least used paths
// that close no cycle with the dependencies of all LIDs before, with detours where
// they must be. The turns of a spanning tree are always allowed (the escape
// paths), so no LID is left without a path.
//
// Time: for each LID a search of O(C*log C), and a cycle test for each dependency
// that is new. A test takes O(1) if the edge agrees with the topological order
// so far, which most do; else up to O(C + E) for E dependencies.
var nue = Engine{
	Name:    "nue",
	Doc:     "No credit loops on any topology, on one virtual lane, and all pairs reached.",
	Options: []string{"roots"},
	Acyclic: true,
	compute: computeNue,
}

func computeNue(ctx context.Context, g *Graph, o *Options) (*Routes, error) {
	root, ranks, err := g.escapeRoot(ctx, o.Roots)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	r := NewRoutes(g, 0)
	n := newNue(r, newCDG(g, 1), ranks)
	n.addTree(root)
	// The LIDs of switches last: they are to be in nobody's way.
	for _, ofSwitches := range []bool{false, true} {
		for d := range g.switches {
			for _, dest := range g.destsOf(d) {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				if (dest.out == 0) == ofSwitches {
					n.route(d, dest)
				}
			}
		}
	}
	connected, err := g.Hops(ctx)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	if n.detours > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("nue: %d LIDs are reached along the spanning tree of %s", n.detours, g.switches[root].Label()))
	}
	return r, r.fillIn(ctx, nil, connected, nil)
}

// route finds the paths to one LID.
func (n *nueState) route(d int, dest dest) {
	n.begin(d)
	n.spread()
	if n.left > 0 {
		// Other ways would do as well, but this is rare, and sure.
		n.order.commit(func(v, w int32) bool { return false })
		n.begin(d)
		n.escape()
		n.detours++
	}
	n.finish(dest)
}

// escapeRoot is the root of the spanning tree, and ranks for the order that
// turns are in to begin with: those of a fat tree, if there is one, so that its
// usual turns need no search; else the distances from the root.
func (g *Graph) escapeRoot(ctx context.Context, roots []int) (int, *Ranks, error) {
	if len(roots) > 0 {
		return roots[0], g.Ranks(roots[:1]), nil
	}
	centre, err := g.center(ctx)
	if err != nil {
		return 0, nil, err
	}
	if l := g.levels(); l.check() == nil {
		return centre[0], (&Ranks{l.level}).Reverse(), nil
	}
	return centre[0], g.Ranks(centre), nil
}

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

// endpointsOn counts CA and router ports, by switch.
func (g *Graph) endpointsOn() []int64 {
	on := make([]int64, len(g.switches))
	for _, t := range g.terminals {
		if t.Switch >= 0 && t.Out > 0 {
			on[t.Switch]++
		}
	}
	return on
}

// addTree allows all turns of a spanning tree; of several, where the network
// is in parts.
func (n *nueState) addTree(root int) {
	g := n.g
	n.escapes = slices.Repeat([]int32{noTarget}, len(g.switches))
	seen := make([]bool, len(g.switches))
	var order []int32
	for s := -1; s < len(g.switches); s++ {
		at := s
		if s < 0 {
			at = root
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		order = append(order, int32(at))
		for i := len(order) - 1; i < len(order); i++ {
			t := order[i]
			for c := g.chanBase[t]; c < g.chanBase[t+1]; c++ {
				if s := g.chanTo[c]; !seen[s] {
					seen[s] = true
					n.escapes[s] = g.channels[c].Reverse
					order = append(order, s)
				}
			}
		}
	}
	n.addTurns(order)
}

// addTurns allows the turns of the tree that packets from CAs take: others
// would only keep better paths from using theirs. order has parents first.
func (n *nueState) addTurns(order []int32) {
	g := n.g
	below, all := slices.Clone(n.on), int64(0) // CAs in a subtree
	for _, s := range slices.Backward(order) {
		all += n.on[s]
		if up := n.escapes[s]; up >= 0 {
			below[g.chanTo[up]] += below[s]
		}
	}
	for _, s := range order {
		up := n.escapes[s]
		if up < 0 {
			continue
		}
		parent := g.chanTo[up]
		if next := n.escapes[parent]; next >= 0 {
			if below[s] > 0 {
				n.order.try(up, next)
			}
			if below[parent] < all {
				n.order.try(g.channels[next].Reverse, g.channels[up].Reverse)
			}
		}
		for c := g.chanBase[parent]; c < g.chanBase[parent+1] && below[s] > 0; c++ {
			child := g.chanTo[c]
			if child != s && n.escapes[child] == g.channels[c].Reverse {
				n.order.try(up, c)
			}
		}
	}
	n.order.commit(func(v, w int32) bool { return true })
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

// escape takes the spanning tree: up from all switches but those above the
// destination, down from these.
func (n *nueState) escape() {
	copy(n.via, n.escapes)
	n.via[n.home] = noTarget
	for s := int32(n.home); n.escapes[s] >= 0; s = n.g.chanTo[n.escapes[s]] {
		up := n.escapes[s]
		n.via[n.g.chanTo[up]] = n.g.channels[up].Reverse
	}
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
