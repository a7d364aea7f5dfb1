package state

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"fabsh/fabric/adaptive"
	"fabsh/mad"
)

// The forwarding tables that the subnet manager of a simulated subnet sets: up*/down* routes in
// fat trees, minimal routes elsewhere; and for adaptive routing, the ports that may be chosen.

// lftSwitch is a switch of the network.
type lftSwitch struct {
	Ports        int              // with port 0
	Links        lftLinks         // to other switches
	Destinations []lftDestination // its own LID, then the LIDs of the end ports at it
	Hosts        bool             // there are hosts among them
}

// computeLFTs returns the tables of switches, with entries up to LID top.
func computeLFTs(switches []lftSwitch, top mad.LID) [][]uint8 {
	r := newRouter(switches)
	r.rankSwitches()
	return r.compute(top)
}

func (r *router) compute(top mad.LID) [][]uint8 {
	switches := r.links
	size := (int(top)/mad.LFTBlock + 1) * mad.LFTBlock
	inParallel(len(switches), func(at int) {
		r.tables[at] = bytes.Repeat([]byte{mad.NoPort}, size)
		if r.choices != nil {
			r.choices.add(at, r.tables[at])
		}
	})
	// Some destinations at a time, for all switches; a switch takes them in order.
	var some [64]*distances
	for first := 0; first < len(switches); first += len(some) {
		n := min(len(some), len(switches)-first)
		inParallel(n, func(i int) {
			if some[i] == nil {
				some[i] = r.newDistances()
			}
			some[i].compute(first + i)
		})
		inParallel(len(switches), func(at int) {
			for _, to := range some[:n] {
				r.fillEntries(at, to)
			}
		})
	}
	return r.tables
}

// router fills the forwarding tables.
//
// The rank of a switch is its distance from the nearest switch with hosts. If
// every link between switches joins neighbouring ranks, the network is a fat
// tree or similar, and gets up*/down* routes, which are free of credit loops:
// up by the destination's number (d-mod-k), then down to the destination. Other
// networks get minimal routes, through the port that is least loaded.
type router struct {
	tables       [][]uint8
	links        []lftLinks // of each switch
	ups          []lftLinks // of each switch, its links to switches of higher rank
	rank         []int      // nil: the links do not join neighbouring ranks
	stride       []int      // of d-mod-k, by rank
	digits       [][]int32  // of each rank, the numbers of hosts over stride
	destinations [][]lftDestination
	leaf         []bool    // it has hosts
	loads        [][]int32 // routes through each port of each switch

	order  []int32    // switches by falling rank
	group  []int32    // of each switch; the switches of a group have equal links up
	groups []lftLinks // these links

	choices *choices // of adaptive routing; nil: none are computed
	dor     bool     // lowest ports first: dimension order, where ports are in the order of dimensions
}

// pathType is the type of a route.
type pathType uint8

const (
	minimalPath pathType = iota
	downPath             // down only
	upDownPath           // up first, then down
)

// lftLinks are the links from one switch to others, by port. They are small, because they
// are read for each destination.
type lftLinks struct {
	to   []uint16 // the switch; there are fewer than LIDs
	port []uint8
}

func (l *lftLinks) add(to uint16, port uint8) {
	l.to, l.port = append(l.to, to), append(l.port, port)
}

// lftDestination is a LID of a switch, or of a host at a switch.
type lftDestination struct {
	LID    mad.LID
	Port   uint8
	Number int32 // among hosts
}

func newRouter(switches []lftSwitch) *router {
	n := len(switches)
	r := &router{tables: make([][]uint8, n), links: make([]lftLinks, n), destinations: make([][]lftDestination, n), loads: make([][]int32, n), leaf: make([]bool, n)}
	for i, sw := range switches {
		r.links[i], r.destinations[i], r.loads[i], r.leaf[i] = sw.Links, sw.Destinations, make([]int32, sw.Ports), sw.Hosts
	}
	return r
}

// inParallel calls f for 0 to n-1, as many at a time as there are processors.
func inParallel(n int, f func(i int)) {
	var wait sync.WaitGroup
	var next atomic.Int64
	const block = 16
	for range min(runtime.GOMAXPROCS(0), (n+block-1)/block) {
		wait.Go(func() {
			for {
				first := int(next.Add(block)) - block
				if first >= n {
					return
				}
				for i := first; i < min(first+block, n); i++ {
					f(i)
				}
			}
		})
	}
	wait.Wait()
}

// fillEntries writes the entries of switch at for all LIDs behind a switch.
func (r *router) fillEntries(at int, way *distances) {
	d := way.to
	lft := r.tables[at]
	if at == d {
		for _, t := range r.destinations[d] {
			lft[t.LID] = t.Port
		}
		return
	}
	if way.dist[at] < 0 {
		return
	}
	load := r.loads[at]
	if way.path[at] == upDownPath {
		ports := way.choices[r.group[at]]
		r.fillUp(lft, load, ports, r.digits[r.rank[at]], r.destinations[d])
		r.choices.set(at, way, ports, r.destinations[d])
		return
	}
	var choice [256]uint8
	ports := choice[:0]
	before, links := way.dist[at]-1, &r.links[at]
	next, down := -1, way.path[at] == downPath
	for i, to := range links.to {
		if way.dist[to] == before && (next < 0 || int(to) == next) && !(down && (way.path[to] != downPath || r.above(int32(to), int32(at)))) {
			ports = append(ports, links.port[i])
			if r.dor {
				next = int(to)
			}
		}
	}
	for _, t := range r.destinations[d] {
		port := ports[0]
		for _, p := range ports[1:] {
			if load[p] < load[port] {
				port = p
			}
		}
		load[port]++
		lft[t.LID] = port
	}
	r.choices.set(at, way, ports, r.destinations[d])
}

// fillUp writes the entries for destinations that are reached through ports up,
// by d-mod-k.
func (r *router) fillUp(lft []uint8, load []int32, ports []uint8, digits []int32, to []lftDestination) {
	digit, i := int32(-2), 0
	for _, t := range to {
		switch next := digits[t.Number]; next {
		case digit:
		case digit + 1: // as for neighbours: without a division
			digit = next
			if i++; i == len(ports) {
				i = 0
			}
		default:
			digit, i = next, int(next)%len(ports)
		}
		load[ports[i]]++
		lft[t.LID] = ports[i]
	}
}

// rankSwitches ranks the switches by their distance from hosts, and reports whether all
// links join neighbouring ranks. Else they stay without ranks.
func (r *router) rankSwitches() bool {
	rank := slices.Repeat([]int{-1}, len(r.links))
	var leaves []int32
	for i := range r.links {
		if r.leaf[i] {
			rank[i] = 0
			leaves = append(leaves, int32(i))
		}
	}
	r.searchRanks(rank, leaves)
	for i := range r.links {
		for _, to := range r.links[i].to {
			if d := rank[i] - rank[to]; rank[i] < 0 || d != 1 && d != -1 {
				return false
			}
		}
	}
	r.arrange(rank)
	return true
}

// rankFromRoots ranks the switches of any network for up*/down* routes: by their distance
// from a root, and of equal ones by their number, lower ones up. Each part of a network that
// is not connected has the root from which its farthest switch is the nearest.
func (r *router) rankFromRoots() {
	level := slices.Repeat([]int{-1}, len(r.links))
	for i := range r.links {
		if level[i] >= 0 {
			continue
		}
		part := r.searchRanks(slices.Repeat([]int{-1}, len(r.links)), []int32{int32(i)})
		slices.Sort(part)
		root, nearest := int32(i), len(r.links)
		for _, candidate := range part {
			distance := slices.Repeat([]int{-1}, len(r.links))
			distance[candidate] = 0
			reached := r.searchRanks(distance, []int32{candidate})
			if far := distance[reached[len(reached)-1]]; far < nearest {
				root, nearest = candidate, far
			}
		}
		level[root] = 0
		r.searchRanks(level, []int32{root})
	}
	highest := slices.Max(append(level, 0))
	for i := range level {
		level[i] = highest - level[i]
	}
	r.arrange(level)
}

// searchRanks ranks the switches without a rank by their distance from the switches in queue,
// and returns the switches that it has reached.
func (r *router) searchRanks(rank []int, queue []int32) []int32 {
	for _, at := range queue {
		rank[at] = max(rank[at], 0)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for _, to := range r.links[at].to {
			if rank[to] < 0 {
				rank[to] = rank[at] + 1
				queue = append(queue, int32(to))
			}
		}
	}
	return queue
}

// above reports whether switch b is above a.
func (r *router) above(b, a int32) bool {
	return r.rank[b] > r.rank[a] || r.rank[b] == r.rank[a] && b < a
}

// arrange prepares routes by ranks.
func (r *router) arrange(rank []int) {
	highest := slices.Max(append(rank, 0))
	r.rank = rank
	r.order = make([]int32, len(rank))
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return rank[b] - rank[a] })
	// d-mod-k: rank i chooses its up port by the digit of the destination's
	// number that the ranks below have not used.
	ups := make([]int, highest+1)
	r.ups = make([]lftLinks, len(rank))
	r.group = make([]int32, len(rank))
	known := map[string]int32{}
	for i := range r.links {
		for k, to := range r.links[i].to {
			if r.above(int32(to), int32(i)) {
				r.ups[i].add(to, r.links[i].port[k])
			}
		}
		key := fmt.Sprint(r.ups[i])
		if _, ok := known[key]; !ok {
			known[key] = int32(len(r.groups))
			r.groups = append(r.groups, r.ups[i])
		}
		r.group[i] = known[key]
		if rank[i] >= 0 {
			ups[rank[i]] = max(ups[rank[i]], len(r.ups[i].to))
		}
	}
	hosts := int32(0)
	for _, list := range r.destinations {
		for _, t := range list {
			hosts = max(hosts, t.Number+1)
		}
	}
	stride := 1
	for _, n := range ups {
		digits := make([]int32, hosts)
		for number := range digits {
			digits[number] = int32(number / stride)
		}
		r.stride, r.digits = append(r.stride, stride), append(r.digits, digits)
		stride = min(stride*max(1, n), math.MaxInt32) // more than the numbers of hosts
	}
}

// distances are the lengths of the routes from all switches to one.
type distances struct {
	*router
	to   int        // the switch
	dist []int16    // length of the route to it; -1: no route
	path []pathType // type of this route

	// Of each group, once one of its switches was routed up: the ports up that are on
	// shortest routes, and the distance behind them; -1: not computed yet.
	choices [][]uint8
	nearest []int16

	queue []int32
}

func (r *router) newDistances() *distances {
	return &distances{router: r, dist: make([]int16, len(r.links)), path: make([]pathType, len(r.links)),
		choices: make([][]uint8, len(r.groups)), nearest: make([]int16, len(r.groups))}
}

// compute computes the distances to switch d.
func (w *distances) compute(d int) {
	w.to = d
	for i := range w.dist {
		w.dist[i] = -1
	}
	clear(w.path)
	w.dist[d] = 0
	w.queue = append(w.queue[:0], int32(d))
	if w.rank != nil {
		w.bfs(w.ups)
		for _, at := range w.queue {
			w.path[at] = downPath
		}
		// A switch without a route down goes up, to the nearest switch that has a route.
		// The highest ranks come first, so that the switches above have their routes.
		for i := range w.nearest {
			w.nearest[i] = -1
		}
		missing := 0
		for _, at := range w.order {
			if w.dist[at] < 0 && !w.goUp(at) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
		// The remaining switches, such as roots, reach the destination only by a
		// route that turns up again. Only their own packets take it.
		w.queueByDistance()
	}
	w.bfs(w.links)
}

// goUp gives a switch the route over the ports up that are on shortest routes.
func (w *distances) goUp(at int32) bool {
	g := w.group[at]
	if w.nearest[g] < 0 {
		w.chooseUp(g)
	}
	if len(w.choices[g]) == 0 {
		return false
	}
	w.dist[at], w.path[at] = w.nearest[g]+1, upDownPath
	return true
}

// chooseUp finds the ports up of a group that are on shortest routes.
func (w *distances) chooseUp(g int32) {
	nearest := int16(math.MaxInt16)
	ups, choice := &w.groups[g], w.choices[g][:0]
	for i, to := range ups.to {
		switch dist := w.dist[to]; {
		case dist < 0 || dist > nearest:
		case dist < nearest:
			nearest, choice = dist, append(choice[:0], ups.port[i])
		default:
			choice = append(choice, ups.port[i])
		}
	}
	w.choices[g], w.nearest[g] = choice, nearest
}

// queueByDistance puts the switches that have a route into the queue, by its length.
func (w *distances) queueByDistance() {
	var starts []int // of each length, how many are shorter
	for _, dist := range w.dist {
		if dist >= 0 {
			for len(starts) <= int(dist)+1 {
				starts = append(starts, 0)
			}
			starts[dist+1]++
		}
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	n := starts[len(starts)-1]
	w.queue = slices.Grow(w.queue[:0], n)[:n]
	for i, dist := range w.dist {
		if dist >= 0 {
			w.queue[starts[dist]] = int32(i)
			starts[dist]++
		}
	}
}

// bfs is a breadth-first search from the switches in the queue over links, to
// switches without a distance.
func (w *distances) bfs(links []lftLinks) {
	for i := 0; i < len(w.queue) && len(w.queue) < len(w.dist); i++ {
		at := w.queue[i]
		next := w.dist[at] + 1
		for _, to := range links[at].to {
			if w.dist[to] < 0 {
				w.dist[to] = next
				w.queue = append(w.queue, int32(to))
			}
		}
	}
}

// LFTEngines are the routing engines that compute the choices of ports. What each may choose:
//
//   - updn: all ports on the shortest routes that go up first and then down; a switch from
//     which a route goes down only takes no other. Without credit loops between hosts in any
//     network: up is away from hosts in fat trees whose routes all exist, and else to a root.
//   - ftree: as updn in fat trees; in others as minhop, like OpenSM, which falls back to it.
//   - minhop: all ports on the shortest routes.
//   - dor: the parallel links to the next switch, in the order of dimensions.
var LFTEngines = []string{"updn", "ftree", "minhop", "dor"}

// AdaptiveOptions select the routing engine, and what of the choices.
type AdaptiveOptions struct {
	Engine string         // one of LFTEngines
	State  adaptive.State // of the entries with a choice
	// Secondary adds a sub-group to each group: the other ports up, of switches that go up.
	Secondary bool
}

// computeAdaptiveLFTs returns the tables of computeLFTs and the tables of adaptive routing,
// which share their memory. A route that turns up again, as between roots, has no choice. A
// group is of the switch of the destinations, from 1 on, or where these are too many, of an
// equal set of ports.
func computeAdaptiveLFTs(switches []lftSwitch, top mad.LID, o AdaptiveOptions) ([][]uint8, []*adaptive.Table) {
	r := newChoosing(switches, o)
	tree := false
	switch o.Engine {
	case "updn", "ftree":
		tree = r.rankSwitches()
	case "dor":
		r.dor = true
	}
	if tree || o.Engine != "updn" {
		r.compute(top)
	}
	if o.Engine == "updn" && (!tree || r.choices.turned.Load()) {
		r = newChoosing(switches, o)
		r.rankFromRoots()
		r.compute(top)
	}
	return r.tables, r.choices.tables
}

func newChoosing(switches []lftSwitch, o AdaptiveOptions) *router {
	r := newRouter(switches)
	r.choices = &choices{AdaptiveOptions: o, router: r, tables: make([]*adaptive.Table, len(switches)), shared: len(switches) >= adaptive.MaxGroups}
	return r
}

// choices are the tables of adaptive routing in the making.
type choices struct {
	AdaptiveOptions
	*router
	tables []*adaptive.Table
	shared bool        // groups are of equal sets of ports
	turned atomic.Bool // a route between hosts turns up again
}

// add makes the table of a switch, whose static ports are the ports of its forwarding table.
func (c *choices) add(at int, ports []uint8) {
	sub := 1
	if c.Secondary {
		sub = 2
	}
	c.tables[at] = adaptive.NewTable(mad.LID(len(ports)-1), adaptive.NewGroups(sub)).WithPorts(ports)
}

// set lets a switch choose among ports on the way to the LIDs behind a switch.
func (c *choices) set(at int, way *distances, ports []uint8, to []lftDestination) {
	switch {
	case c == nil:
		return
	case c.rank != nil && way.path[at] == minimalPath:
		if c.leaf[at] && c.leaf[way.to] {
			c.turned.Store(true)
		}
		return
	}
	further := c.further(at, way, ports)
	if len(ports) < 2 && further.Empty() {
		return
	}
	t := c.tables[at]
	group := way.to + 1
	if c.shared {
		group, _ = t.Groups.Place(adaptive.PortSet(ports...))
	}
	if t.Groups.Set(group, 0, adaptive.PortSet(ports...)) != nil || c.Secondary && t.Groups.Set(group, 1, further) != nil {
		return // too many: the routes stay static
	}
	for _, d := range to {
		t.Set(d.LID, adaptive.Entry{State: c.State, Port: t.Entry(d.LID).Port, Group: uint16(group)})
	}
}

// further returns the other ports up of a switch that goes up, from which routes go on.
func (c *choices) further(at int, way *distances, ports []uint8) (set adaptive.Ports) {
	if !c.Secondary || c.shared || way.path[at] != upDownPath {
		return set
	}
	for i, to := range c.ups[at].to {
		if port := c.ups[at].port[i]; way.dist[to] >= 0 && way.path[to] != minimalPath && !slices.Contains(ports, port) {
			set.Add(port)
		}
	}
	return set
}
