package search

import (
	"context"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// refiner gives LIDs other paths than before, where that evens out the load. The
// channels of each lane are in a fixed order. As long as all paths agree with it, they close
// no cycle, so that no test is needed.
type refiner struct {
	g         *graph.Graph
	r         *routes.Routes
	lane      []uint8   // by LID
	position  [][]int32 // by lane and channel: its place in the order
	endpoints []int64   // by switch
	load      []int64   // routes, by channel
	squares   float64   // the sum of the squares of load
	hop       float64   // what a link costs beside its load, in mean squares of the load
	least     int64     // what it costs in addition
	into      []arc     // the channels into each switch, in the order of Channels, which lead out of it
	// shared are the numbers of other LIDs of the same port (LMC) whose paths take a channel, and
	// siblings the channels where that is not 0.
	shared   []int64
	siblings []int32

	// Of the present LID:
	home     int32
	via, was []int32 // by switch: the channel of its path, and of its path before
	cost     []int64
	settled  []bool
	left     int     // switches with CAs that had a path, and have none yet
	flow     []int64 // by switch
	done     []int32 // switches that have a path, each after the switches on it
	children []int32 // by switch: paths that lead there next
	queue    graph.CostHeap
}

// arc is a channel into a switch.
type arc struct {
	channel, from int32
	weight        int64
}

// Costs of a link, in mean squares of the load: with the first, few paths are longer than
// necessary; with the second, some paths around the busiest links are.
const (
	shortHop  = 1000
	detourHop = 4
)

// firstHop is what a link costs in begin: while there are few routes, no path is longer to evade them.
const firstHop = 1 << 40

// RefineSteps is the product of LIDs and channels up to which LIDs are given paths again.
// Beyond, as in a tree of 11,664 hosts, that takes seconds.
const RefineSteps = 1 << 27

// IsLarge reports whether g is too large to give LIDs paths again.
func IsLarge(g *graph.Graph) bool { return len(g.Dests())*len(g.Channels()) > RefineSteps }

// refinePasses is how often each LID gets paths again: later ones change little.
const refinePasses = 3

func newRefiner(r *routes.Routes, load []int64, hop float64) *refiner {
	g := r.Graph()
	n := len(g.Switches())
	f := &refiner{g: g, r: r, endpoints: g.Endpoints(), load: load, hop: hop, least: 1}
	f.via, f.was, f.cost = make([]int32, n), make([]int32, n), make([]int64, n)
	f.settled, f.flow, f.children = make([]bool, n), make([]int64, n), make([]int32, n)
	for _, c := range g.Channels() {
		f.into = append(f.into, arc{c.Reverse, c.To, int64(g.Channels()[c.Reverse].Weight)})
	}
	for _, x := range load {
		f.squares += float64(x) * float64(x)
	}
	return f
}

// run gives all LIDs of CAs paths again.
func (f *refiner) run(ctx context.Context) error {
	if IsLarge(f.g) {
		return nil
	}
	for range refinePasses {
		if err := f.each(ctx, f.again); err != nil {
			return err
		}
	}
	return nil
}

// begin gives all LIDs of CAs paths that have few links, and of these few routes so far.
func (f *refiner) begin(ctx context.Context) error {
	f.least = firstHop
	component := graph.Components(f.g)
	return f.each(ctx, func(d int32, dest graph.Dest) {
		f.home = d
		for s := range f.was { // all that are connected get a path
			if f.was[s] = graph.NoChannel; component[s] == component[d] {
				f.was[s] = 0
			}
		}
		f.search(f.position[f.lane[dest.LID]])
		f.count(1)
		f.r.Row(int(d))[dest.LID] = dest.Out
		f.write(dest)
	})
}

// each calls do for each LID of a CA, on switch d.
func (f *refiner) each(ctx context.Context, do func(d int32, dest graph.Dest)) error {
	for d := range f.g.Switches() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, dest := range f.g.DestsOf(d) {
			if dest.Out > 0 {
				do(int32(d), dest)
			}
		}
	}
	return nil
}

// again gives a LID the cheapest paths, now that the load of all other LIDs is known, or leaves its
// paths unchanged if some switch with CAs would get none.
func (f *refiner) again(d int32, dest graph.Dest) {
	f.avoidSiblings(d, dest)
	f.read(d, dest)
	f.count(-1)
	copy(f.was, f.via)
	if f.search(f.position[f.lane[dest.LID]]) {
		f.count(1)
		f.write(dest)
		return
	}
	copy(f.via, f.was)
	f.sort()
	f.count(1)
}

// avoidSiblings notes which channels are on the paths to the other LIDs of the port of next.
func (f *refiner) avoidSiblings(d int32, next graph.Dest) {
	for _, c := range f.siblings {
		f.shared[c] = 0
	}
	f.siblings = f.siblings[:0]
	t := &f.g.Terminals()[next.Terminal]
	if t.Count == 1 {
		return
	}
	if f.shared == nil {
		f.shared = make([]int64, len(f.load))
	}
	for _, dest := range f.g.DestsOf(int(d)) {
		if dest.Terminal != next.Terminal || dest.LID == next.LID {
			continue
		}
		f.read(d, dest)
		f.count(0)
		for s, c := range f.via {
			if c < 0 || f.flow[s] == 0 {
				continue
			}
			if f.shared[c] == 0 {
				f.siblings = append(f.siblings, c)
			}
			f.shared[c]++
		}
	}
}

// read reads the paths to a LID on switch d.
func (f *refiner) read(d int32, dest graph.Dest) {
	f.home = d
	for s := range f.via {
		f.via[s] = max(graph.NoChannel, f.g.Target(int32(s), f.r.Row(s).Port(dest.LID)).Channel())
	}
	f.via[d] = graph.NoChannel
	f.sort()
}

// sort puts the switches that have a path in done.
func (f *refiner) sort() {
	clear(f.children)
	for _, c := range f.via {
		if c >= 0 {
			f.children[f.g.ChannelTo(c)]++
		}
	}
	f.done = f.done[:0]
	for s, c := range f.via {
		if c >= 0 && f.children[s] == 0 {
			f.done = append(f.done, int32(s))
		}
	}
	for i := 0; i < len(f.done); i++ {
		to := f.g.ChannelTo(f.via[f.done[i]])
		if f.children[to]--; f.children[to] == 0 && to != f.home {
			f.done = append(f.done, to)
		}
	}
	f.done = append(f.done, f.home)
	slices.Reverse(f.done)
}

// count adds n times the routes of the LID to the load.
func (f *refiner) count(n int64) {
	copy(f.flow, f.endpoints)
	for _, s := range slices.Backward(f.done) {
		if c := f.via[s]; c >= 0 && f.flow[s] > 0 {
			x := n * f.flow[s]
			f.squares += float64(x) * float64(2*f.load[c]+x)
			f.load[c] += x
			f.flow[f.g.ChannelTo(c)] += f.flow[s]
		}
	}
}

// search is Dijkstra's algorithm from the destination, over channels each of which is
// before the next in the order. It reports whether all switches with CAs that had a path
// have one.
func (f *refiner) search(position []int32) bool {
	f.left = 0
	for s := range f.via {
		if f.endpoints[s] > 0 && f.was[s] >= 0 {
			f.left++
		}
		f.settled[s], f.cost[s], f.via[s] = false, -1, graph.NoChannel
	}
	link := int64(min(f.hop*f.squares/float64(len(f.load)), 1<<54)) + f.least
	f.queue, f.done = f.queue[:0], append(f.done[:0], f.home)
	f.settled[f.home], f.cost[f.home] = true, 0
	f.relax(f.home, link, position)
	for len(f.queue) > 0 && f.left > 0 {
		item := f.queue.Pop()
		s := f.g.Channels()[item.Channel].From
		if f.settled[s] || f.cost[s] != item.Cost {
			continue
		}
		f.settled[s], f.via[s] = true, item.Channel
		f.done = append(f.done, s)
		if f.endpoints[s] > 0 && f.was[s] >= 0 {
			f.left--
		}
		f.relax(s, link, position)
	}
	return f.left == 0
}

// relax queues the paths over channels into s.
func (f *refiner) relax(s int32, link int64, position []int32) {
	last := int32(math.MaxInt32) // channels before it may lead to s
	if via := f.via[s]; via >= 0 {
		last = position[via]
	}
	beyond := f.cost[s]
	for _, in := range f.into[f.g.FirstChannel(int(s)):f.g.FirstChannel(int(s+1))] {
		if f.settled[in.from] || position[in.channel] >= last {
			continue
		}
		load := f.load[in.channel]
		cost := beyond + link*in.weight + load*load
		if f.shared != nil {
			cost += link / 2 * f.shared[in.channel] // so that few paths are longer for it
		}
		if was := f.cost[in.from]; was < 0 || cost < was {
			f.cost[in.from] = cost
			f.queue.Push(graph.CostItem{Cost: cost, Channel: in.channel})
		}
	}
}

// write writes the entries of switches that packets of CAs pass through; FillIn writes the entries
// of other switches.
func (f *refiner) write(dest graph.Dest) {
	for s := range f.via {
		port := uint8(routes.NoPort)
		if c := f.via[s]; c >= 0 && f.flow[s] > 0 {
			port = f.g.Channels()[c].Port
		}
		if int32(s) != f.home {
			f.r.Row(s)[dest.LID] = port
		}
	}
}

// dependencies returns the dependencies of the paths of CAs on the first lane.
func (f *refiner) dependencies() *verify.DependencyGraph {
	all := verify.NewDependencyGraph(f.g, 1)
	for d := range f.g.Switches() {
		for _, dest := range f.g.DestsOf(d) {
			if dest.Out == 0 || f.lane[dest.LID] > 0 {
				continue
			}
			f.read(int32(d), dest)
			f.count(0)
			for _, s := range f.done[1:] {
				if c := f.via[s]; f.flow[s] > 0 {
					all.Use(c)
					if next := f.via[f.g.ChannelTo(c)]; next >= 0 {
						all.Use(next)
						all.Add(c, next)
					}
				}
			}
		}
	}
	return all
}
