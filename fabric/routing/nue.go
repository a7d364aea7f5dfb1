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
	n := newNueSearch(r, newCDG(g, 1), ranks)
	n.addTree(root)
	// The LIDs of switches last: they must not take paths away from others.
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
	if n.escaped > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("nue: %d LIDs are reached along the spanning tree of %s", n.escaped, g.switches[root].Label()))
	}
	return r, r.fillIn(ctx, nil, connected, nil)
}

// route finds the paths to one LID.
func (n *nueSearch) route(d int, dest dest) {
	n.begin(d)
	n.search()
	if n.left > 0 {
		// The escape tree for all switches: this is rare.
		n.order.commit(func(v, w int32) bool { return false })
		n.begin(d)
		n.escape()
		n.escaped++
	}
	n.finish(dest)
}

// escapeRoot is the root of the escape tree, and the ranks of the first topological
// order: those of a fat tree, if there is one, so that the turns from up to down
// need no search; else the distances from the root.
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

// addTree adds the dependencies of a spanning tree, the escape tree; of one in each
// component, if the network is not connected.
func (n *nueSearch) addTree(root int) {
	g := n.g
	n.tree = slices.Repeat([]int32{noTarget}, len(g.switches))
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
					n.tree[s] = g.channels[c].Reverse
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
			below[g.chanTo[up]] += below[s]
		}
	}
	for _, s := range order {
		up := n.tree[s]
		if up < 0 {
			continue
		}
		parent := g.chanTo[up]
		if next := n.tree[parent]; next >= 0 {
			if below[s] > 0 {
				n.order.tryAdd(up, next)
			}
			if below[parent] < all {
				n.order.tryAdd(g.channels[next].Reverse, g.channels[up].Reverse)
			}
		}
		for c := g.chanBase[parent]; c < g.chanBase[parent+1] && below[s] > 0; c++ {
			child := g.chanTo[c]
			if child != s && n.tree[child] == g.channels[c].Reverse {
				n.order.tryAdd(up, c)
			}
		}
	}
	n.order.commit(func(v, w int32) bool { return true })
}

// escape gives all switches their path in the escape tree: up, or down from those
// above the destination.
func (n *nueSearch) escape() {
	copy(n.via, n.tree)
	n.via[n.home] = noTarget
	for s := int32(n.home); n.tree[s] >= 0; s = n.g.chanTo[n.tree[s]] {
		up := n.tree[s]
		n.via[n.g.chanTo[up]] = n.g.channels[up].Reverse
	}
}
