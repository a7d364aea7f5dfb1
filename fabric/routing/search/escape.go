package search

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// EscapeRoot returns the root of the escape tree, and the ranks of the first topological order:
// the ranks of a fat tree, if there is one, so that the turns from up to down need no search; else
// the distances from the root.
func EscapeRoot(ctx context.Context, g *graph.Graph, roots []int) (int, *graph.Ranks, error) {
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

// maxRoots is how many roots findTree tries beside the first, and treeWork how many channels the cycle
// tests of these go through: about a second.
const (
	maxRoots = 64
	treeWork = 1 << 23
)

// findTree finds an escape tree whose turns close no cycle with given dependencies, and returns, by
// switch, the channel to its parent; if the network is not connected, also in other parts, where it
// finds one. Nil: none was found. Tables of nue leave such a tree, unless what was lost was part of it.
// best is the root from which a tree grew to most switches.
func findTree(ctx context.Context, r *routes.Routes, given *verify.DependencyGraph) (tree []int32, best int, err error) {
	g := r.Graph()
	first, _, err := EscapeRoot(ctx, g, nil)
	if err != nil {
		return nil, 0, err
	}
	roots := []int{first}
	for s := 0; s < len(g.Switches()); s += max(1, len(g.Switches())/maxRoots) {
		roots = append(roots, s)
	}
	position := given.Positions()
	most, work := -1, 0
	for i, root := range roots {
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		n := newNueSearch(r, given.Clone(), slices.Clone(position), settings{})
		n.order.Budget = work
		grown, whole := n.growTree(root)
		if whole {
			n.order.Budget = 0
			n.growOthers(root)
			return n.tree, root, nil
		}
		if grown > most {
			best, most = root, grown
		}
		if work = n.order.Budget; i == 0 {
			work = treeWork
		} else if work < 0 {
			break
		}
	}
	return nil, best, nil
}

// growTree makes an escape tree from root whose turns close no cycle with the dependencies, and
// adds these. It returns how many switches it has. Not whole: there is no such tree to all, or the
// order in which it grows does not lead to it.
func (n *nueSearch) growTree(root int) (grown int, whole bool) {
	n.tree = slices.Repeat([]int32{graph.NoChannel}, len(n.g.Switches()))
	left := 0 // switches to which the tree must grow
	for s := range n.tree {
		if n.component[s] == n.component[root] {
			left++
		}
	}
	grown = len(n.grow(root, func(int32) bool { return false }))
	return grown, grown == left
}

// growOthers makes trees in the parts of the network where root is not. A tree that does not reach all
// switches of its part is left out.
func (n *nueSearch) growOthers(root int) {
	size := map[int32]int{}
	for _, c := range n.component {
		size[c]++
	}
	for s, c := range n.component {
		if int(c) != s || c == n.component[root] {
			continue
		}
		if order := n.grow(s, func(int32) bool { return false }); len(order) < size[c] {
			for _, t := range order {
				n.tree[t] = graph.NoChannel
			}
		}
	}
}

// grow makes a tree from root of switches that are not taken, and returns these.
func (n *nueSearch) grow(root int, taken func(s int32) bool) (order []int32) {
	g := n.g
	in := make([]bool, len(g.Switches()))
	order = []int32{int32(root)}
	in[root] = true
	for i := 0; i < len(order); i++ {
		t := order[i]
		for c := g.FirstChannel(int(t)); c < g.FirstChannel(int(t+1)); c++ {
			s := g.ChannelTo(c)
			if in[s] || taken(s) {
				continue
			}
			n.tree[s] = g.Channels()[c].Reverse
			fits := n.addTurns(s)
			n.order.Commit(func(v, w int32) bool { return fits })
			if in[s] = fits; fits {
				order = append(order, s)
			} else {
				n.tree[s] = graph.NoChannel
			}
		}
	}
	return order
}

// addTurns adds the turns of packets from s to its parent in the tree and back. False: some close a
// cycle.
func (n *nueSearch) addTurns(s int32) bool {
	g, up := n.g, n.tree[s]
	down, parent := g.Channels()[up].Reverse, g.ChannelTo(up)
	if next := n.tree[parent]; next >= 0 && (!n.order.TryAdd(up, next) || !n.order.TryAdd(g.Channels()[next].Reverse, down)) {
		return false
	}
	for c := g.FirstChannel(int(parent)); c < g.FirstChannel(int(parent+1)); c++ {
		if back := g.Channels()[c].Reverse; c != down && n.tree[g.ChannelTo(c)] == back && (!n.order.TryAdd(up, c) || !n.order.TryAdd(back, down)) {
			return false
		}
	}
	return true
}

// setTree adds the turns of an escape tree, if tree is not nil.
func (n *nueSearch) setTree(tree []int32) {
	if n.tree = tree; tree == nil {
		return
	}
	for s, up := range tree {
		if up >= 0 {
			n.addTurns(int32(s))
		}
	}
	n.order.Commit(func(v, w int32) bool { return true })
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

// allowTurns adds the dependencies of the turns of the tree that packets from CAs take. Other turns
// would only take dependencies away from better paths. order has parents first.
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

// escape gives all switches their path in the escape tree: up, or down from switches above the
// destination.
func (n *nueSearch) escape() {
	copy(n.via, n.tree)
	n.via[n.home] = graph.NoChannel
	for s := int32(n.home); n.tree[s] >= 0; s = n.g.ChannelTo(n.tree[s]) {
		up := n.tree[s]
		n.via[n.g.ChannelTo(up)] = n.g.Channels()[up].Reverse
	}
}

// route finds the paths to one LID, which without an escape tree may fail.
func (n *nueSearch) route(d int, dest graph.Dest) bool {
	for _, search := range passes[n.passes] {
		if search(n, d); n.left == 0 {
			n.finish(dest)
			return true
		}
	}
	n.order.Commit(func(v, w int32) bool { return false }) // this is rare
	if n.tree == nil {
		return false
	}
	n.takeEscape(d, dest)
	return true
}

// inTree reports whether switch s is in the escape tree: it has a parent, or a child.
func (n *nueSearch) inTree(s int) bool {
	in := n.tree[s] >= 0
	for c := n.g.FirstChannel(s); c < n.g.FirstChannel(s+1) && !in; c++ {
		in = n.tree[n.g.ChannelTo(c)] == n.g.Channels()[c].Reverse
	}
	return in
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
