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
