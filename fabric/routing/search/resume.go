package search

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/walk"
)

// resume starts the search for a LID with the switches settled by which packets of CAs arrive
// already, and returns which these are. Entries that none of these packets take have dependencies that
// were not tested.
func (n *nueSearch) resume(x gap) []bool {
	n.begin(x.d)
	n.queue = n.queue[:0]
	n.keep(x.old)
	if n.walk == nil {
		n.walk = walk.New(n.g)
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

// keep makes it cost more to change those of the entries that still lead to a switch; nil: it
// does not matter.
func (n *nueSearch) keep(entries []uint8) {
	n.kept = n.kept[:0]
	for s, port := range entries {
		n.kept = append(n.kept, max(graph.NoChannel, n.g.Target(int32(s), port).Channel()))
	}
	if entries == nil {
		n.kept = nil
	}
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
