package search

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
)

// inForce is what a search respects of the entries in force for a LID. Without any, all is nil.
type inForce struct {
	kept   []int32      // by switch: the channel of its entry, if that costs less than others, or -1
	behind []int32      // by switch: see linksBehind; with kept
	older  [][]int32    // by switch: the channels by which packets come that an entry in force sent
	walk   *verify.Walk // of the tables before
}

// changeCost is the cost of changing an entry in force that may stay: detours of some hops are
// better.
const changeCost = 8 * hopCost

// keep makes it cost more to change entries in force that still lead to a switch, unless their
// block changes anyway: the more, the farther away from what is lost, so that packets from there
// take their way again. Without entries in force, as for Complete, it does not matter.
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

// newDependencies returns the cost of the dependencies that packets get by an entry of s to channel c,
// including packets that come by entries in force.
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

// linksBehind returns, by switch, how many links packets took by the entries before to a switch from
// which these now lead nowhere; 0: they come to no such switch. It uses the memory of list.
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

// change returns the cost if the entry of s leads to channel c. It counts once, when s is
// settled: what is behind s does not change.
func (n *nueSearch) change(s, c int32) int64 {
	if n.kept == nil || n.kept[s] < 0 || n.kept[s] == c {
		return 0
	}
	return changeCost * int64(1+n.behind[s])
}

// takesOlder reports whether packets that an entry in force sent to the switch where channel c
// begins may go on over c.
func (n *nueSearch) takesOlder(c int32) bool {
	if n.older == nil {
		return true
	}
	for _, in := range n.older[n.g.Channels()[c].From] {
		if !n.order.TryAdd(in, c) {
			return false
		}
	}
	return true
}
