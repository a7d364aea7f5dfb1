package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// InLanes computes tables by the searches of nue, on a virtual lane for each of roots; the first
// lane is enough where it has shortest paths. The first root and ranks are from EscapeRoot, and
// connected has the distances in g. The result is two tables: with paths as short as these
// searches find them, and with detours that even out the load.
func InLanes(ctx context.Context, g *graph.Graph, roots []int, ranks *graph.Ranks, connected *graph.Hops) ([]*routes.Routes, error) {
	r := routes.New(g, 0)
	searches, set := make([]*nueSearch, len(roots)), settings{}
	if len(roots) > 1 { // paths that take dependencies away from other LIDs may go on another lane
		if set.passes = fewTests; len(g.Dests())*len(g.Channels()) > testedSteps {
			set.passes = noTests
		}
	}
	for i, root := range roots {
		if root != roots[0] {
			ranks = graph.RanksFrom(g, roots[i:i+1])
		}
		searches[i] = newNueSearch(r, verify.NewDependencyGraph(g, 1), verify.UpDownOrder(g, ranks), set)
		searches[i].load = searches[0].load
		searches[i].addTree(root)
	}
	sl := make([]uint8, int(r.Top())+1)
	for d := range g.Switches() {
		lane := -1 // of the LIDs on d
		for _, dest := range g.DestsOf(d) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if dest.Out == 0 {
				continue
			}
			if lane < 0 {
				lane = shortestLane(searches, d, connected)
			}
			searches[lane].avoidSiblings(dest)
			searches[lane].route(d, dest)
			sl[dest.LID] = uint8(lane)
		}
		if lane >= 0 {
			searches[lane].forgetSiblings() // the lanes have their loads in common
		}
	}
	escaped := 0
	for _, n := range searches {
		escaped += n.escaped
	}
	positions := make([][]int32, len(roots))
	for i, n := range searches {
		positions[i] = n.order.Positions()
	}
	list, more, err := refined(ctx, r, searches[0].load, sl, positions, searches[0].tree, connected)
	for i, t := range list {
		if slices.Max(sl) > 0 {
			t.SL, t.SL2VL = &routes.SL{Dest: sl}, routes.NewSL2VL(g)
		}
		if n := escaped + more[i]; n > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("nue: %s reached along the spanning tree of %s", plural.Count(n, "LID is", "LIDs are"), treesOf(g, roots)))
		}
	}
	return list, err
}

// InOrder computes tables whose paths take channels in a given order: position is by channel, each from 0 up
// once. In that order there must be a path to each switch that is connected. The result is two tables, as of
// InLanes.
func InOrder(ctx context.Context, g *graph.Graph, position []int32, connected *graph.Hops) ([]*routes.Routes, error) {
	r := routes.New(g, 0)
	lane, positions := make([]uint8, int(r.Top())+1), [][]int32{position}
	f := newRefiner(r, make([]int64, len(g.Channels())), shortHop)
	f.lane, f.position = lane, positions
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	list, _, err := refined(ctx, r, f.load, lane, positions, nil, connected)
	return list, err
}

// refined are two tables of r, which has paths to CAs, when their LIDs have got paths again: short ones, and
// with detours. LIDs of switches get paths too; escaped is, by table, how many of these took the escape tree.
func refined(ctx context.Context, r *routes.Routes, load []int64, lane []uint8, positions [][]int32, tree []int32, connected *graph.Hops) (list []*routes.Routes, escaped []int, err error) {
	hops := []float64{shortHop, detourHop}
	list, escaped = []*routes.Routes{r.Clone(), r}, make([]int, len(hops))
	failed := make([]error, len(hops))
	err = graph.Each(ctx, r.Graph().Workers(), len(hops), func(_, i int) {
		f := newRefiner(list[i], slices.Clone(load), hops[i])
		f.lane, f.position = lane, positions
		if failed[i] = f.run(ctx); failed[i] != nil {
			return
		}
		first := newNueSearch(list[i], f.dependencies(), slices.Clone(positions[0]), settings{})
		first.tree = tree
		failed[i] = first.toSwitches(ctx, connected)
		escaped[i] = first.escaped
	})
	return list, escaped, cmp.Or(err, errors.Join(failed...))
}

// treesOf names the switches where the spanning trees of the lanes begin.
func treesOf(g *graph.Graph, roots []int) string {
	var names []string
	for _, root := range roots {
		if name := g.Switches()[root].Label(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// testedSteps is the product of LIDs and channels above which, on several lanes, cycle tests would
// take seconds: paths that need none, if there are such, are a little longer.
const testedSteps = 1 << 24

// toSwitches finds the paths to the LIDs of switches, which only management packets take: after
// all other paths, so that they take no dependencies away from them, and with few cycle tests,
// because most of these would fail where links are missing. First come searches in the present
// topological order; what these leave is closed by way of a few switches (see downUp), and the
// rest by searches with tests and by the escape tree.
func (n *nueSearch) toSwitches(ctx context.Context, connected *graph.Hops) error {
	a := addition{r: n.routes, connected: connected}
	for d := range n.g.Switches() {
		for _, dest := range n.g.DestsOf(d) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if dest.Out > 0 {
				continue
			}
			n.sweep(d)
			left := n.left
			n.finish(dest)
			if left > 0 {
				a.switches = append(a.switches, gap{d: d, dest: dest})
			}
		}
	}
	if len(a.switches) == 0 {
		return nil
	}
	graph := n.order.DependencyGraph
	if err := a.byTurning(ctx, newDownUp(n.routes, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	escaped, err := a.closeRest(ctx, graph, n.tree)
	a.note(ofSwitches, tally{missing: a.toSwitches.missing})
	n.escaped += escaped
	return err
}

// levels is the state of a search without cycle tests: paths are found in the order of their hops,
// which needs no queue. It adds no dependencies; finish does.
type levels struct {
	bucket  [][]int32 // by hops: switches with a path of so many
	hops    int       // all paths of fewer hops are known
	reached int64     // ports of CAs that have a path
	excess  int64     // how many links more than shortest paths have, as far as is known
	swept   bool      // the present paths are of such a search
	found   bool      // the paths to the LID that comes next are found
}

// sweep finds the cheapest paths that need no cycle test.
func (n *nueSearch) sweep(home int) {
	n.beginLevels(home)
	for n.left > 0 && n.hops < len(n.bucket) {
		n.advance()
	}
}

// beginLevels starts a search without cycle tests.
func (n *nueSearch) beginLevels(home int) {
	n.reset(home)
	n.swept, n.hops, n.reached, n.excess = true, 0, 0, 0
	if len(n.bucket) == 0 {
		n.bucket = [][]int32{nil}
	}
	for i := range n.bucket {
		n.bucket[i] = n.bucket[i][:0]
	}
	n.bucket[0] = append(n.bucket[0], int32(home))
	n.cost[home] = 0
}

// advance settles the switches whose paths have the next number of hops.
func (n *nueSearch) advance() {
	for _, s := range n.bucket[n.hops] {
		if !n.settled[s] && int(n.cost[s]/hopCost) == n.hops { // else it has a shorter path
			n.fix(s, n.via[s], n.cost[s])
			n.reached += n.endpoints[s]
		}
	}
	if n.left > 0 {
		for _, s := range n.bucket[n.hops] {
			if int(n.cost[s]/hopCost) == n.hops {
				n.spread(s)
			}
		}
	}
	n.hops++
}

// spread finds paths by way of a switch that is settled. Among paths of equal cost it takes the
// path by way of the cheapest switch, as search does.
func (n *nueSearch) spread(t int32) {
	g, via := n.g, n.via[t]
	channels := g.Channels()
	for c := g.FirstChannel(int(t)); c < g.FirstChannel(int(t+1)); c++ {
		s, back := g.ChannelTo(c), channels[c].Reverse
		if n.settled[s] || via >= 0 && !n.order.Agrees(back, via) {
			continue
		}
		cost, was := n.cost[t]+hopCost*int64(channels[back].Weight)+n.load[back], n.cost[s]
		if was >= 0 && (cost > was || cost == was && !n.before(t, g.ChannelTo(n.via[s]))) {
			continue
		}
		n.cost[s], n.via[s] = cost, back
		if hops := int(cost / hopCost); was < 0 || int(was/hopCost) != hops {
			for len(n.bucket) <= hops {
				n.bucket = append(n.bucket, nil)
			}
			n.bucket[hops] = append(n.bucket[hops], s)
		}
	}
}

// before reports whether search settles s before t.
func (n *nueSearch) before(s, t int32) bool {
	return n.cost[s] < n.cost[t] || n.cost[s] == n.cost[t] && n.via[s] < n.via[t]
}

// within goes on until all paths are found, and reports whether they have no more than limit
// links beyond shortest paths; or until it is known that they have more. near are the ports
// of CAs to which shortest paths have so many hops at most. A path that is missing counts as
// the longest.
func (n *nueSearch) within(limit int64, near []int64, connected *graph.Hops) bool {
	for n.left > 0 && n.hops < len(n.bucket) && n.excess <= limit {
		n.advance()
		n.excess += near[min(n.hops, len(near))-1] - n.reached
	}
	if n.left > 0 && n.excess <= limit {
		n.excess = 0
		for s, endpoints := range n.endpoints {
			switch x := connected.Distance(s, n.home); {
			case x < 0:
			case n.settled[s]:
				n.excess += endpoints * (n.cost[s]/hopCost - int64(x))
			default:
				n.excess += endpoints * graph.MaxDistance
			}
		}
	}
	return n.excess <= limit
}

// shortestLane returns the first lane on which paths to switch d are shortest paths, or the lane
// on which they are the shortest, without cycle tests, which would take most of the time.
func shortestLane(searches []*nueSearch, d int, connected *graph.Hops) (lane int) {
	if len(searches) == 1 {
		return 0
	}
	defer func() { searches[lane].found = true }()
	near := nearPorts(searches[0], d, connected)
	order := make([]int, len(searches))
	for i, n := range searches {
		n.beginLevels(d)
		if n.within(0, near, connected) {
			return i
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(searches[i].excess, searches[j].excess) })
	least := int64(math.MaxInt64)
	for _, i := range order {
		limit := least
		if i > lane {
			limit--
		}
		if n := searches[i]; n.within(limit, near, connected) {
			lane, least = i, n.excess
		}
	}
	return lane
}

// nearPorts returns, by number of hops, the ports of CAs from which shortest paths to switch d have at
// most so many.
func nearPorts(n *nueSearch, d int, connected *graph.Hops) (near []int64) {
	for s, endpoints := range n.endpoints {
		x := connected.Distance(s, d)
		for ; len(near) <= x; near = append(near, 0) {
		}
		if x >= 0 {
			near[x] += endpoints
		}
	}
	for i := range near[1:] {
		near[i+1] += near[i]
	}
	return near
}
