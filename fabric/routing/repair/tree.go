package repair

import (
	"context"
	"slices"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// repairTree repairs the tables of DModK on a fat tree. Its choices depend only on the next
// hops, so only entries whose next hops change are computed: at the switches at the ends of
// cables that differ, and for the destinations to which some distance differs. Nil: g has
// switches, LIDs or cables that the tree of r does not have, or a pair of CAs has lost its last
// path up and down.
func repairTree(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	if g.Weighted() || g.HasPortOrder(-1) || r.Graph().Weighted() || r.Graph().HasPortOrder(-1) || r.SL != nil || r.SL2VL != nil || r.Top() < g.Top() {
		return nil, nil
	}
	x := &treeRepair{g: g, o: r.Graph(), old: r}
	x.findChanged()
	if !x.known() {
		return nil, nil
	}
	t := x.place()
	update := graph.HopsUpdate{Old: engines.BasisOf(r).Hops, Was: x.was, Moved: x.whole, Ranks: x.rank}
	var err error
	if x.h, x.parts, err = update.Run(ctx, g); x.h == nil {
		return nil, err
	}
	x.h.Place = t.Place
	x.findMoved()
	x.new = r.ShareRows(g, x.was)
	b := *engines.BasisOf(r)
	b.Hops = x.h
	x.new.SetOrigin(&b)
	open, err := x.choose(ctx, t)
	if err != nil || !x.closeGaps(open) {
		return nil, err
	}
	return x.new, context.Cause(ctx)
}

// treeRepair is the state of repairTree. Switches are numbered as in the newer graph, unless
// stated otherwise.
type treeRepair struct {
	g, o *graph.Graph
	old  *routes.Routes
	new  *routes.Routes
	was  []int32      // by switch: the older number, or -1
	in   []int32      // by switch: the number in the graph of the basis
	rank *graph.Ranks // of up*/down*; nil: all links are allowed
	h    *graph.Hops
	// Switches whose next hops may have changed: to any destination (whole), or to the
	// destinations in parts.
	whole []bool
	parts [][]int32
	way   []graph.Neighbour // memory of attach
}

// findChanged finds the switches whose cables to others differ.
func (x *treeRepair) findChanged() {
	x.was, _ = graph.OlderNumbers(x.g, x.o)
	x.whole = make([]bool, len(x.g.Switches()))
	for s, was := range x.was {
		x.whole[s] = was < 0 || !slices.EqualFunc(x.g.Neighbours(s), x.o.Neighbours(int(was)), func(a, b graph.Neighbour) bool {
			return x.was[a.To] == b.To && a.Weight == b.Weight && slices.Equal(a.Ports, b.Ports)
		})
	}
}

// known reports whether r's tree had all switches and LIDs of g, and all cables that are
// new: each joins a parent of it.
func (x *treeRepair) known() bool {
	tree := engines.BasisOf(x.old).Tree
	x.in, _ = graph.OlderNumbers(x.g, tree.Graph)
	if slices.Contains(x.in, -1) {
		return false
	}
	for s, changed := range x.whole {
		for _, n := range x.g.Neighbours(s) {
			if !changed {
				break
			}
			a, b := x.in[s], x.in[n.To]
			if !slices.Contains(tree.Parents[a], b) && !slices.Contains(tree.Parents[b], a) {
				return false
			}
		}
	}
	for _, d := range x.g.Dests() {
		if int(d.LID) >= len(tree.Number) || tree.Number[d.LID] < 0 {
			return false
		}
	}
	return true
}

// place returns the tree of r with the numbers of g; -1 is a parent that is missing.
func (x *treeRepair) place() *engines.Tree {
	old, ranks := engines.BasisOf(x.old).Tree, engines.BasisOf(x.old).Ranks
	if ranks != nil {
		x.rank = &graph.Ranks{Rank: make([]int, len(x.in))}
	}
	t := &engines.Tree{Place: make([]int32, len(x.in)), Parents: make([][]int32, len(x.in)), Number: old.Number, Divider: make([]int, len(x.in)), Own: make([][]engines.Span, len(x.in))}
	now := slices.Repeat([]int32{-1}, len(old.Place))
	for s, i := range x.in {
		now[i] = int32(s)
	}
	for s, i := range x.in {
		t.Place[s], t.Divider[s], t.Parents[s], t.Own[s] = old.Place[i], old.Divider[i], old.Parents[i], old.Own[i]
		if x.rank != nil {
			x.rank.Rank[s] = ranks.Rank[i]
		}
		if len(x.in) != len(now) {
			t.Parents[s] = make([]int32, len(old.Parents[i]))
			for k, p := range old.Parents[i] {
				t.Parents[s][k] = now[p]
			}
		}
	}
	return t
}

// findMoved marks all switches for the destinations that have moved to another port.
func (x *treeRepair) findMoved() {
	var moved []bool
	for d := range x.g.Switches() {
		for _, dest := range x.g.DestsOf(d) {
			if t := x.o.TerminalByLID(dest.LID); t >= 0 && x.o.Terminals()[t].Switch == int(x.was[d]) && x.o.Terminals()[t].Out == dest.Out {
				continue
			}
			if moved == nil {
				moved = make([]bool, len(x.g.Switches()))
			}
			if moved[d] {
				continue
			}
			moved[d] = true
			for s := range x.parts {
				x.parts[s] = append(x.parts[s], int32(d))
			}
		}
	}
}

// choose writes the entries of all that is marked, and returns the pairs of switches
// for which there is no next hop.
func (x *treeRepair) choose(ctx context.Context, t *engines.Tree) ([][2]int32, error) {
	g := x.g
	digits := t.On(g)
	choices := make([]routes.Row, g.Workers())
	nexts := make([]graph.NextHops, g.Workers())
	open := make([][][2]int32, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		list := x.parts[s]
		next := &nexts[worker]
		if x.whole[s] {
			next.Load(x.h, s)
			list = x.all(list)
		}
		if len(list) == 0 {
			return
		}
		if choices[worker] == nil {
			choices[worker] = make(routes.Row, int(x.new.Top())+1)
		}
		chosen := choices[worker]
		// A row is copied once an entry of it changes.
		row := x.new.Row(s)
		set := func(lid mad.LID, port uint8) {
			if row[lid] != port {
				row = x.new.WritableRow(s)
				row[lid] = port
			}
		}
		for _, d := range list {
			from, to := g.FirstDest(int(d)), g.FirstDest(int(d+1))
			if from == to { // no LID; the next destination may have other next hops
				continue
			}
			var ports []uint8
			same := false
			if x.whole[s] {
				ports, same = next.Ports(int(d))
			} else if s != int(d) {
				ports = next.Find(x.h, s, int(d))
			}
			switch {
			case s == int(d):
				for _, dest := range g.Dests()[from:to] {
					set(dest.LID, dest.Out)
				}
			case len(ports) == 0:
				open[worker] = append(open[worker], [2]int32{int32(s), d})
			default:
				if !same {
					digits.FindParents(s, next.List(), len(ports), false)
				}
				digits.Write(s, int(from), int(to), next.List(), chosen)
				for _, dest := range g.Dests()[from:to] {
					port := row[dest.LID]
					if chosen[dest.LID] == port {
						continue
					}
					// It stays if it is a next hop still, unless the choice is one that is gained.
					if slices.Contains(ports, port) && (dest.Out == 0 || x.wasNextHop(s, d, chosen[dest.LID])) {
						continue
					}
					set(dest.LID, chosen[dest.LID])
				}
			}
		}
	})
	pairs := slices.Concat(open...)
	slices.SortFunc(pairs, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(pairs), err
}

// wasNextHop reports whether a port of switch s led to d before.
func (x *treeRepair) wasNextHop(s int, d int32, port uint8) bool {
	was, to := x.was[s], x.was[d]
	return was >= 0 && to >= 0 && slices.Contains(engines.BasisOf(x.old).Hops.Next(int(was), int(to)), port)
}

// all returns all destinations, in the memory of list.
func (x *treeRepair) all(list []int32) []int32 {
	list = list[:0]
	for d := range x.g.Switches() {
		list = append(list, int32(d))
	}
	return list
}

// closeGaps handles the pairs of switches without a next hop. Where all links are allowed,
// they are not connected, and packets are dropped. Under up*/down*, packets to the LIDs of
// switches get a path by way of a neighbour from which they arrive; for packets from CAs, all
// such paths together must close no credit loop with any paths that go up and then down. False:
// it found no such paths, or CAs themselves are not reached.
func (x *treeRepair) closeGaps(open [][2]int32) bool {
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

// gaps returns the pairs of a switch with CAs and a destination that lack a path up and down,
// in the order of switches.
func (x *treeRepair) gaps() (pairs [][2]int32) {
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

// close finds paths for packets to a LID on switch d from all of sources, and reports whether
// it could.
func (x *treeRepair) close(d int32, dest graph.Dest, sources, part []int32, endpoints []int64) bool {
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
	// First switches whose own entry is broken: packets that pass through them arrive then.
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

// attach sends packets from s to a neighbour from which they arrive, by the shortest way.
func (x *treeRepair) attach(s, d int32, dest graph.Dest) bool {
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

// arrives returns the number of links that packets from s to a LID take, or -1 if they do not
// arrive.
func (x *treeRepair) arrives(s int32, dest graph.Dest) int {
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

// turn is a turn from a link that goes down, from a to b, to a link that goes up, to c.
type turn struct{ a, b, c int32 }

// addTurns adds the turns of packets from s to a LID.
func (x *treeRepair) addTurns(turns []turn, s int32, lid mad.LID) []turn {
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

// safe reports whether no path that goes up and then down leads from any of the turns back to
// it, also by way of other turns: then no credit loop is possible, whatever such paths packets
// take.
//
// Time: O(S + N) for each switch that turns lead up to.
func (x *treeRepair) safe(turns []turn) bool {
	if len(turns) == 0 {
		return true
	}
	from := map[int32][]bool{} // by switch: the switches that paths from there reach
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

// below returns s and the switches that paths which go up from s and then down reach.
func (x *treeRepair) below(s int32) []bool {
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
