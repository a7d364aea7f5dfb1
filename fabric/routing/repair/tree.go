package repair

import (
	"context"
	"slices"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// repairTree is Repair for DModK on a fat tree. Its choices depend on nothing but the
// next hops, so those change alone whose next hops do: of the switches at the ends of
// the cables that differ, and of the destinations to which some distance differs. Nil:
// g has what r's tree had not, or a pair of CAs has lost its last path up and down.
func repairTree(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	if g.Weighted() || g.HasPortOrder(-1) || r.Graph().Weighted() || r.Graph().HasPortOrder(-1) || r.SL != nil || r.SL2VL != nil || r.Top() < g.Top() {
		return nil, nil
	}
	x := &repair{g: g, o: r.Graph(), old: r}
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

// repair is the state of the repair of a tree. Numbers are those of the newer graph,
// where nothing else is said.
type repair struct {
	g, o *graph.Graph
	old  *routes.Routes
	new  *routes.Routes
	was  []int32      // by switch: the older number, or -1
	in   []int32      // by switch: the number in the graph of the basis
	rank *graph.Ranks // of up*/down*; nil: all links are allowed
	h    *graph.Hops
	// Switches whose next hops may be others than before: to any destination, and to
	// which, one by one.
	whole []bool
	parts [][]int32
	way   []graph.Neighbour // memory of attach
}

// findChanged finds the switches whose cables to others differ.
func (x *repair) findChanged() {
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
func (x *repair) known() bool {
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

// place is r's tree with the numbers of g; -1 is a parent that is missing.
func (x *repair) place() *engines.Tree {
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

// findMoved marks all switches for the destinations that are elsewhere than before.
func (x *repair) findMoved() {
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
func (x *repair) choose(ctx context.Context, t *engines.Tree) ([][2]int32, error) {
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
			if from == to { // its next hops are not those that the next destination may have, too
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
func (x *repair) wasNextHop(s int, d int32, port uint8) bool {
	was, to := x.was[s], x.was[d]
	return was >= 0 && to >= 0 && slices.Contains(engines.BasisOf(x.old).Hops.Next(int(was), int(to)), port)
}

// all are all destinations: list is memory.
func (x *repair) all(list []int32) []int32 {
	list = list[:0]
	for d := range x.g.Switches() {
		list = append(list, int32(d))
	}
	return list
}
