package search

import (
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// EscapeRoot is the root of the escape tree, and the ranks of the first topological
// order: those of a fat tree, if there is one, so that the turns from up to down
// need no search; else the distances from the root.
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
