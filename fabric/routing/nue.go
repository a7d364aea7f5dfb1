package routing

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// nue finds paths in the channel dependency graph (Domke, Hoefler, Matsuoka,
// "Routing on the dependency graph: a new approach to deadlock-free
// high-performance routing", 2016), as OpenSM's nue. In any network that is
// connected, LID after LID gets the shortest and least used paths that close no
// cycle with the dependencies of all LIDs before on its virtual lane, with detours
// where they must be. The turns of a spanning tree are always allowed (the escape
// paths), so no LID is left without a path. With several lanes, the LIDs of a switch
// are on the first on which their paths are shortest ones, or else as short as can be.
// Where paths up to a root and then down, from the centre, are shorter at the longest,
// or as short and the busiest link has fewer routes, these are taken. On a fat tree,
// paths go up and then down where all pairs have such a path, and on very large
// networks: see nueUpDown.
//
// Time: for each LID a search of O(C*log C), on each lane that is tried, and a cycle
// test for each dependency that is new. A test takes O(1) if the edge agrees with the
// topological order so far, which most do; else up to O(C + E) for E dependencies.
var nue = Engine{
	Name:        "nue",
	Doc:         "No credit loops on any topology, on one virtual lane or more, and all pairs reached.",
	OpenSM:      "nue",
	Lanes:       true,
	OpenSMNeeds: "nue_max_num_vls",
	Options:     []Option{rootsOption, maxVLsOption.by(nueVLs, ": with more, paths are shorter and more even")},
	Acyclic:     true,
	Repair:      Patch,
	compute:     computeNue,
}

// nueVLs is how many virtual lanes are used, if nothing else is said.
const nueVLs = 1

func computeNue(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
	root, ranks, err := escapeRoot(ctx, g, o.Roots)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	var r *routes.Routes
	if graph.FindLevels(g).Check() == nil {
		r, err = nueUpDown(ctx, g, ranks, connected)
	}
	if r == nil && err == nil && len(g.Dests())*len(g.Channels()) > manySteps {
		if r, err = nueUpDown(ctx, g, graph.RanksFrom(g, []int{root}), connected); r != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("nue: paths go up to %s and then down, for %d LIDs over %d channels are too many to search for others", g.Switches()[root].Label(), len(g.Dests()), len(g.Channels())))
		}
	}
	if r == nil && err == nil {
		if r, err = nueLanes(ctx, g, root, ranks, connected, max(nueVLs, o.MaxVLs)); err == nil {
			r, err = orUpDown(ctx, r, root, connected)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, fillIn(ctx, r, nil, connected, nil)
}

// nueLanes is nue with searches, on so many lanes.
func nueLanes(ctx context.Context, g *graph.Graph, root int, ranks *graph.Ranks, connected *graph.Hops, lanes int) (*routes.Routes, error) {
	if lanes > MaxLanes {
		return nil, fmt.Errorf("nue: %d virtual lanes: a link has from 1 to %d for data", lanes, MaxLanes)
	}
	r := routes.New(g, 0)
	searches := make([]*nueSearch, lanes)
	position := cdg.UpDownOrder(g, ranks)
	for i := range searches {
		searches[i] = newNueSearch(r, cdg.New(g, 1), slices.Clone(position))
		searches[i].load = searches[0].load
		searches[i].addTree(root)
	}
	sl := make([]uint8, int(r.Top())+1)
	for d := range g.Switches() {
		lane := -1 // that of the LIDs on d
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
	if err := searches[0].toSwitches(ctx, connected); err != nil {
		return nil, err
	}
	if slices.Max(sl) > 0 {
		r.SL, r.SL2VL = &routes.SL{Dest: sl}, routes.NewSL2VL(g)
	}
	escaped := 0
	for _, n := range searches {
		escaped += n.escaped
	}
	if escaped > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("nue: %d LIDs are reached along the spanning tree of %s", escaped, g.Switches()[root].Label()))
	}
	return r, nil
}

// shortestLane is the first lane on which paths to switch d are as short as can be.
func shortestLane(searches []*nueSearch, d int, connected *graph.Hops) int {
	if len(searches) == 1 {
		return 0
	}
	best, least := 0, int64(-1)
	for i, n := range searches {
		n.begin(d)
		n.search()
		excess := int64(0) // links beyond those of shortest paths; much, where there is none
		for s, endpoints := range n.endpoints {
			if x := connected.Distance(s, d); endpoints > 0 && x > 0 {
				if n.settled[s] {
					excess += endpoints * (n.cost[s]/hopCost - int64(x))
				} else {
					excess += endpoints * graph.MaxDistance
				}
			}
		}
		n.order.Commit(func(v, w int32) bool { return false })
		if least < 0 || excess < least {
			best, least = i, excess
		}
		if excess == 0 {
			break
		}
	}
	return best
}

// orUpDown is r, or, if they are better, tables whose paths go up to root and then down.
func orUpDown(ctx context.Context, r *routes.Routes, root int, connected *graph.Hops) (*routes.Routes, error) {
	g := r.Graph()
	if g.Weighted() {
		return r, nil // the weights say which paths are better
	}
	longest, busiest, err := worst(ctx, r)
	if err != nil {
		return nil, err
	}
	u, err := nueUpDown(ctx, g, graph.RanksFrom(g, []int{root}), connected)
	if u == nil || err != nil {
		return r, err
	}
	switch far, busy, err := worst(ctx, u); {
	case err != nil:
		return nil, err
	case far < longest || far == longest && busy < busiest:
		return u, nil
	}
	return r, nil
}

// worst is how many links the longest path has, between switches with CAs, and how many
// routes the busiest link.
func worst(ctx context.Context, r *routes.Routes) (longest int32, busiest int64, err error) {
	e := SelectEndpoints(r.Graph(), 0)
	most := make([]int32, r.Graph().Workers())
	load, err := loadOf(ctx, r, e, func(worker int, w *walk, lid mad.LID) {
		for _, s := range e.Sources {
			most[worker] = max(most[worker], w.state[s])
		}
	})
	if err != nil {
		return 0, 0, err
	}
	return slices.Max(most), slices.Max(append(load, 0)), nil
}

// manySteps: where LIDs times channels are more, searches of the dependency graph would
// take longer than 20 s.
const manySteps = 1 << 28

// nueUpDown is nue on a fat tree, perhaps with parts missing, where each pair of switches
// with CAs has a path up and then down: then no others are looked for, and no cycle
// test is needed. So it is on very large networks of other shapes. Nil: it is none, or
// not all pairs have such a path.
func nueUpDown(ctx context.Context, g *graph.Graph, ranks *graph.Ranks, connected *graph.Hops) (*routes.Routes, error) {
	h, err := graph.UpDown(ctx, g, ranks)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	r := routes.New(g, 0)
	if lack, _ := (&addition{r: r, connected: connected}).countPairs(h); lack > 0 {
		return nil, nil
	}
	if err := balanceLoad(ctx, r, h); err != nil {
		return nil, err
	}
	return r, complete(ctx, r, h, ranks, nil)
}

// route finds the paths to one LID, which without an escape tree may fail.
func (n *nueSearch) route(d int, dest graph.Dest) bool {
	n.begin(d)
	n.search()
	if n.left > 0 { // this is rare
		n.order.Commit(func(v, w int32) bool { return false })
		if n.tree == nil {
			return false
		}
		n.takeEscape(d, dest)
		return true
	}
	n.finish(dest)
	return true
}

// takeEscape gives all switches the paths of the escape tree to a LID.
func (n *nueSearch) takeEscape(d int, dest graph.Dest) {
	for s := range n.g.Switches() {
		n.routes.Row(s)[dest.LID] = routes.NoPort
	}
	n.begin(d)
	n.escape()
	n.escaped++
	n.finish(dest)
}

// toSwitches finds the paths to the LIDs of switches, which only management packets
// have: after all others, so that they take no paths away from them, and with few
// cycle tests, for where links are missing most of these would fail. First come
// searches in the topological order that there is; what these leave is closed by way
// of a few switches (see downUp), and the rest by searches with tests and by the
// escape tree.
func (n *nueSearch) toSwitches(ctx context.Context, connected *graph.Hops) error {
	a := addition{r: n.routes, connected: connected}
	n.order.Budget = -1
	for d := range n.g.Switches() {
		for _, dest := range n.g.DestsOf(d) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if dest.Out > 0 {
				continue
			}
			n.begin(d)
			n.search()
			left := n.left
			n.finish(dest)
			if left > 0 {
				a.switches = append(a.switches, gap{d, dest, nil})
			}
		}
	}
	if len(a.switches) == 0 {
		return nil
	}
	graph := n.order.Graph
	if err := a.byTurning(ctx, newDownUp(n.routes, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	last := newNueSearch(n.routes, graph, graph.Positions())
	last.tree = n.tree
	last.order.Budget = testsOfLast * len(n.g.Channels())
	for _, x := range a.switches {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !a.close(last, x, &a.toSwitches) && n.tree != nil {
			last.takeEscape(x.d, x.dest)
		}
	}
	if n.tree == nil {
		a.note(ofSwitches, tally{missing: a.toSwitches.missing})
	}
	n.escaped += last.escaped
	return nil
}

// escapeRoot is the root of the escape tree, and the ranks of the first topological
// order: those of a fat tree, if there is one, so that the turns from up to down
// need no search; else the distances from the root.
func escapeRoot(ctx context.Context, g *graph.Graph, roots []int) (int, *graph.Ranks, error) {
	if len(roots) > 0 {
		return roots[0], graph.RanksFrom(g, roots[:1]), nil
	}
	centre, err := graph.Center(ctx, g)
	if err != nil {
		return 0, nil, err
	}
	if l := graph.FindLevels(g); l.Check() == nil {
		return centre[0], l.Ranks(), nil
	}
	return centre[0], graph.RanksFrom(g, centre), nil
}

// addTree adds the dependencies of a spanning tree, the escape tree; of one in each
// component, if the network is not connected.
func (n *nueSearch) addTree(root int) {
	g := n.g
	n.tree = slices.Repeat([]int32{graph.NoChannel}, len(g.Switches()))
	seen := make([]bool, len(g.Switches()))
	var order []int32
	for s := -1; s < len(g.Switches()); s++ {
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
			for c := g.FirstChannel(int(t)); c < g.FirstChannel(int(t+1)); c++ {
				if s := g.ChannelTo(c); !seen[s] {
					seen[s] = true
					n.tree[s] = g.Channels()[c].Reverse
					order = append(order, s)
				}
			}
		}
	}
	n.allowTurns(order)
}

// allowTurns adds the dependencies of those turns of the tree that packets from CAs
// take. Others would only take dependencies away from better paths. order has
// parents first.
func (n *nueSearch) allowTurns(order []int32) {
	g := n.g
	below, all := slices.Clone(n.endpoints), int64(0) // CAs in a subtree
	for _, s := range slices.Backward(order) {
		all += n.endpoints[s]
		if up := n.tree[s]; up >= 0 {
			below[g.ChannelTo(up)] += below[s]
		}
	}
	for _, s := range order {
		up := n.tree[s]
		if up < 0 {
			continue
		}
		parent := g.ChannelTo(up)
		if next := n.tree[parent]; next >= 0 {
			if below[s] > 0 {
				n.order.TryAdd(up, next)
			}
			if below[parent] < all {
				n.order.TryAdd(g.Channels()[next].Reverse, g.Channels()[up].Reverse)
			}
		}
		for c := g.FirstChannel(int(parent)); c < g.FirstChannel(int(parent+1)) && below[s] > 0; c++ {
			child := g.ChannelTo(c)
			if child != s && n.tree[child] == g.Channels()[c].Reverse {
				n.order.TryAdd(up, c)
			}
		}
	}
	n.order.Commit(func(v, w int32) bool { return true })
}

// escape gives all switches their path in the escape tree: up, or down from those
// above the destination.
func (n *nueSearch) escape() {
	copy(n.via, n.tree)
	n.via[n.home] = graph.NoChannel
	for s := int32(n.home); n.tree[s] >= 0; s = n.g.ChannelTo(n.tree[s]) {
		up := n.tree[s]
		n.via[n.g.ChannelTo(up)] = n.g.Channels()[up].Reverse
	}
}
