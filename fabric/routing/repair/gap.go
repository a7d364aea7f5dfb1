package repair

import (
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// closeGaps sees to the pairs of switches without a next hop. Where all links are
// allowed, they are not connected, and packets are dropped. Under up*/down*, packets to
// the LIDs of switches get a path by way of a neighbour from which they arrive: those of
// CAs only if all such paths together close no credit loop with any paths that go up
// and then down. False: it found none, or CAs themselves are not reached.
func (x *repair) closeGaps(open [][2]int32) bool {
	if x.rank == nil {
		for _, p := range open {
			for _, d := range x.g.DestsOf(int(p[1])) {
				x.new.WritableRow(int(p[0]))[d.LID] = routes.NoPort
			}
		}
		return true
	}
	gaps := x.gaps()
	byDest := map[int32][]int32{} // switches, by destination
	var dests []int32
	for _, p := range slices.Concat(open, gaps) {
		if byDest[p[1]] == nil {
			dests = append(dests, p[1])
		}
		byDest[p[1]] = append(byDest[p[1]], p[0])
	}
	if len(dests) == 0 {
		return true
	}
	part := graph.Components(x.g)
	endpoints := x.g.Endpoints()
	for _, d := range dests {
		sources := byDest[d]
		slices.Sort(sources)
		sources = slices.Compact(sources)
		for _, dest := range x.g.DestsOf(int(d)) {
			if !x.close(d, dest, sources, part, endpoints) {
				return false
			}
		}
	}
	n := 0
	var turns []turn
	for _, p := range gaps {
		for _, dest := range x.g.DestsOf(int(p[1])) {
			if part[p[0]] == part[p[1]] {
				n++
				turns = x.addTurns(turns, p[0], dest.LID)
			}
		}
	}
	search.NoteAddedToSwitches(x.new, n)
	return x.safe(turns)
}

// gaps are the pairs of a switch with CAs and a destination that lack a path up and
// down, in the order of switches.
func (x *repair) gaps() (pairs [][2]int32) {
	for s, n := range x.g.Endpoints() {
		if n == 0 {
			continue
		}
		for d := x.h.NextUnreachable(s, 0); d >= 0; d = x.h.NextUnreachable(s, d+1) {
			pairs = append(pairs, [2]int32{int32(s), int32(d)})
		}
	}
	return pairs
}

// close sees to packets to a LID on switch d from all of sources, and reports whether it
// could.
func (x *repair) close(d int32, dest graph.Dest, sources, part []int32, endpoints []int64) bool {
	var open []int32
	for _, s := range sources {
		switch {
		case part[s] != part[d]:
			x.new.WritableRow(int(s))[dest.LID] = routes.NoPort
		case endpoints[s] > 0 && dest.Out > 0:
			return false
		case x.arrives(s, dest) < 0:
			open = append(open, s)
		}
	}
	// First those that are broken themselves: what comes by way of them arrives then.
	for patient := true; len(open) > 0; {
		before := len(open)
		open = slices.DeleteFunc(open, func(s int32) bool {
			if x.arrives(s, dest) >= 0 {
				return true
			}
			if next := x.g.Target(s, x.new.Row(int(s))[dest.LID]); patient && next >= 0 && slices.Contains(open, x.g.ChannelTo(int32(next))) {
				return false
			}
			return x.attach(s, d, dest)
		})
		if len(open) == before {
			if !patient {
				return false
			}
			patient = false
		}
	}
	return true
}

// attach sends packets from s to a neighbour from which they arrive, by the shortest of
// these ways.
func (x *repair) attach(s, d int32, dest graph.Dest) bool {
	best, way := -1, x.way[:0]
	for _, n := range x.g.Neighbours(int(s)) {
		hops := x.h.Distance(int(n.To), int(d))
		if hops < 0 {
			hops = x.arrives(n.To, dest)
		}
		switch {
		case hops < 0 || best >= 0 && hops > best:
			continue
		case hops != best:
			best, way = hops, way[:0]
		}
		way = append(way, n)
	}
	if x.way = way; best < 0 {
		return false
	}
	ports := way[int(dest.LID)%len(way)].Ports
	x.new.WritableRow(int(s))[dest.LID] = ports[int(dest.LID)%len(ports)]
	return true
}

// arrives is the number of links that packets from s to a LID take, or -1 if they do
// not arrive.
func (x *repair) arrives(s int32, dest graph.Dest) int {
	g := x.g
	for hops := 0; hops <= graph.MaxDistance; hops++ {
		target := g.Target(s, x.new.Row(int(s))[dest.LID])
		if target < 0 {
			if target == graph.ToTerminal(dest.Terminal) {
				return hops
			}
			break
		}
		s = g.ChannelTo(int32(target))
	}
	return -1
}

// turn is one from a link that goes down, from a to b, to one that goes up, to c.
type turn struct{ a, b, c int32 }

// addTurns adds those of the packets from s to a LID.
func (x *repair) addTurns(turns []turn, s int32, lid mad.LID) []turn {
	g := x.g
	before := int32(-1)
	for {
		target := g.Target(s, x.new.Row(int(s))[lid])
		if target < 0 {
			return turns
		}
		to := g.ChannelTo(int32(target))
		if before >= 0 && !x.rank.Up(int(before), int(s)) && x.rank.Up(int(s), int(to)) {
			if t := (turn{before, s, to}); !slices.Contains(turns, t) {
				turns = append(turns, t)
			}
		}
		before, s = s, to
	}
}

// safe reports whether no path that goes up and then down leads from any of the turns back
// to it, be it by way of others: then no credit loop is possible, whatever such paths
// packets take.
//
// Time: O(S + N) for each switch that turns lead up to.
func (x *repair) safe(turns []turn) bool {
	if len(turns) == 0 {
		return true
	}
	from := map[int32][]bool{} // by switch: those that paths from there come to
	for _, t := range turns {
		if from[t.c] == nil {
			from[t.c] = x.below(t.c)
		}
	}
	// Take away turns that lead to no other, until none is left, or a cycle.
	for len(turns) > 0 {
		rest := slices.DeleteFunc(slices.Clone(turns), func(t turn) bool {
			return !slices.ContainsFunc(turns, func(next turn) bool { return from[t.c][next.a] })
		})
		if len(rest) == len(turns) {
			return false
		}
		turns = rest
	}
	return true
}

// below are the switches that paths which go up from s and then down come to, and s.
func (x *repair) below(s int32) []bool {
	g := x.g
	seen := make([]bool, len(g.Switches()))
	seen[s] = true
	list := []int32{s}
	ups := 1 // how many of list were reached upwards
	for i := 0; i < ups; i++ {
		for j := g.FirstNeighbour(int(list[i])); j < g.FirstNeighbour(int(list[i]+1)); j++ {
			if t := g.NeighbourTo(j); x.h.GoesUp(j) && !seen[t] {
				seen[t] = true
				list = append(list, t)
				ups++
			}
		}
	}
	for i := 0; i < len(list); i++ {
		for j := g.FirstNeighbour(int(list[i])); j < g.FirstNeighbour(int(list[i]+1)); j++ {
			if t := g.NeighbourTo(j); !x.h.GoesUp(j) && !seen[t] {
				seen[t] = true
				list = append(list, t)
			}
		}
	}
	return seen
}
