package search

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
)

// resume starts the search for a LID with the switches settled by which packets of CAs arrive
// already, and returns which these are. Entries that none of these packets take have dependencies that
// were not tested.
func (n *nueSearch) resume(x gap) []bool {
	n.prepare(x.d)
	n.fix(int32(x.d), graph.NoChannel, 0)
	n.keep(x)
	if n.walk == nil {
		n.walk = verify.NewWalk(n.g)
	}
	w := n.walk
	w.Begin()
	for s, endpoints := range n.endpoints {
		if endpoints > 0 {
			w.From(int32(s), x.before, x.dest.Terminal)
		}
	}
	for _, s := range w.Order {
		if w.State[s] >= 0 {
			n.fix(s, w.Via[s], hopCost*int64(w.State[s]))
		}
	}
	var unsettled []int
	for s, endpoints := range n.endpoints {
		if endpoints > 0 && !n.settled[s] {
			unsettled = append(unsettled, s)
		}
	}
	n.bound = graph.DistancesFrom(n.g, unsettled)
	had := slices.Clone(n.settled)
	for s, has := range had {
		for c := n.g.FirstChannel(s); has && c < n.g.FirstChannel(s+1); c++ {
			n.relax(n.g.Channels()[c].Reverse, n.cost[s])
		}
	}
	return had
}

// keep makes it cost more to change those of the entries before that still lead to a switch, unless
// their block changes anyway: the more, the farther away from what is lost, so that packets from
// there come by the same way again. Without entries before, as for Complete, it does not matter.
func (n *nueSearch) keep(x gap) {
	if n.kept = n.kept[:0]; x.old == nil {
		n.kept = nil
		return
	}
	for s, port := range x.old {
		c := int32(graph.NoChannel)
		if !n.changed.has(s, x.dest.LID) {
			c = max(c, n.g.Target(int32(s), port).Channel())
		}
		n.kept = append(n.kept, c)
	}
	n.behind = linksBehind(n.g, x, n.behind)
}

// freshCost is what a dependency costs that no other path has: where it agrees with the topological
// order, and where not, so that it may close a cycle. LIDs that must change take the same ways then, and
// leave each other more of them.
type freshCost struct{ agrees, other int64 }

var (
	freshOfMany = freshCost{hopCost, 4 * hopCost}      // many LIDs find room on a lane, one after the other
	freshOfOne  = freshCost{hopCost * 3 / 10, hopCost} // one LID has to, with few changes
)

// newDependencies is what the dependencies cost that packets get by an entry of s to channel c, those of
// packets included that come by entries before.
func (n *nueSearch) newDependencies(s, c int32) (cost int64) {
	if n.kept == nil || n.fresh == (freshCost{}) {
		return 0
	}
	add := func(v, w int32) {
		switch {
		case n.order.Has(v, w):
		case n.order.Agrees(v, w):
			cost += n.fresh.agrees
		default:
			cost += n.fresh.other
		}
	}
	if next := n.via[n.g.ChannelTo(c)]; next >= 0 {
		add(c, next)
	}
	if n.kept[s] == c {
		return cost
	}
	for out := n.g.FirstChannel(int(s)); out < n.g.FirstChannel(int(s+1)); out++ {
		if in := n.g.Channels()[out].Reverse; n.kept[n.g.ChannelTo(out)] == in {
			add(in, c)
		}
	}
	return cost
}

// linksBehind is, by switch, how many links packets took by the entries before to one from which
// these lead nowhere now; 0: they come to none. It uses the memory of list.
func linksBehind(g *graph.Graph, x gap, list []int32) []int32 {
	list = append(list[:0], make([]int32, len(x.old))...)
	list[x.d] = -1
	var path []int32
	for s := range list {
		at := int32(s)
		for path = path[:0]; list[at] == 0; {
			path = append(path, at)
			list[at] = -1 // a loop ends there
			c := g.Target(at, x.old[at]).Channel()
			if c < 0 {
				list[at] = 1
				path = path[:len(path)-1]
				break
			}
			at = g.ChannelTo(c)
		}
		for _, t := range slices.Backward(path) {
			if list[t] = list[at]; list[t] > 0 {
				list[t]++
			}
			at = t
		}
	}
	for s, n := range list { // 1 is where they lead nowhere
		list[s] = max(0, n-1)
	}
	return list
}

// siblingCost is what a channel costs a search for the LID of a port, where the path to
// another of its LIDs takes it: more than all routes on a channel, and on no path as
// much as hopCost.
const siblingCost = 1 << 32

// avoidSiblings makes the channels dear that the paths to the LIDs of the same port
// take, and those of the port before cheap again.
func (n *nueSearch) avoidSiblings(next graph.Dest) {
	if next.Terminal == n.port {
		for s, via := range n.via {
			if via >= 0 && n.flow[s] > 0 && n.load[via] < siblingCost {
				n.load[via] += siblingCost
				n.dear = append(n.dear, via)
			}
		}
		return
	}
	n.forgetSiblings()
	n.port = next.Terminal
}

// forgetSiblings makes all channels cheap again.
func (n *nueSearch) forgetSiblings() {
	for _, c := range n.dear {
		n.load[c] -= siblingCost
	}
	n.dear, n.port = n.dear[:0], -1
}
