package graph

import (
	"context"
	"slices"
)

// Factor is a dimension of a network: the ring of a torus in one direction, the line of a mesh, the
// switches of a HyperX that are linked to each other.
type Factor struct {
	// Ranks are the places of switches in it, from 0: breadth first from the switch with number 0.
	Ranks *Ranks
	// Has reports, by channel, whether its link is of this dimension.
	Has []bool
}

// mostFactored is the most pairs of neighbours of which FindFactors finds the dimensions: in larger
// networks it would take more than a second.
const mostFactored = 1 << 13

// FindFactors finds the dimensions of a network: the factors of it as a Cartesian product of smaller networks,
// in which switches are neighbours if they are so in one factor and equal in all others. nil: it is not such a
// product, as where links are missing, or it is not connected, or too large.
//
// Two links are of one dimension if the distances between their ends say so (Winkler, "Proving integrality by
// reducing real matrices", 1984), or if they meet and are not two sides of one square, and so are all that are
// of one dimension with these (Feder, "Product graph representations", 1992).
//
// h has the distances in links. Time: O(N*N).
func FindFactors(ctx context.Context, g *Graph, h *Hops) ([]Factor, error) {
	if len(g.switches) < 4 || len(g.neighbours) > 2*mostFactored || slices.Max(components(g, func(int) bool { return true })) > 0 {
		return nil, nil
	}
	x := newFactoring(g)
	for i := range x.links {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if x.count == 1 {
			return nil, nil
		}
		x.relate(h, i)
	}
	return x.factors(), nil
}

// factoring has the sets of links that are of one dimension.
type factoring struct {
	g      *Graph
	links  [][2]int32 // neighbours, the lower first
	parent []int      // by link: another of its set, or itself, which stands for the set
	count  int        // of sets
	at     map[[2]int32]int
}

func newFactoring(g *Graph) *factoring {
	x := &factoring{g: g, at: map[[2]int32]int{}}
	for s := range g.switches {
		for _, n := range g.Neighbours(s) {
			if link := [2]int32{int32(s), n.To}; int32(s) < n.To {
				x.at[link] = len(x.links)
				x.parent = append(x.parent, len(x.links))
				x.links = append(x.links, link)
			}
		}
	}
	x.count = len(x.links)
	return x
}

// set is the link that stands for the set of link i.
func (x *factoring) set(i int) int {
	for x.parent[i] != i {
		x.parent[i] = x.parent[x.parent[i]]
		i = x.parent[i]
	}
	return i
}

// relate joins the set of link i with the sets of links after it that are of its dimension.
func (x *factoring) relate(h *Hops, i int) {
	a := x.links[i]
	for j := i + 1; j < len(x.links); j++ {
		b := x.links[j]
		p, q := x.set(i), x.set(j)
		if p != q && (h.Distance(int(a[0]), int(b[0]))+h.Distance(int(a[1]), int(b[1])) != h.Distance(int(a[0]), int(b[1]))+h.Distance(int(a[1]), int(b[0])) || x.onlyMeet(a, b)) {
			x.parent[q] = p
			x.count--
		}
	}
}

// onlyMeet reports whether two links have a switch in common, and no square has both: their other ends
// have no other neighbour in common.
func (x *factoring) onlyMeet(a, b [2]int32) bool {
	at, from, to := a[0], a[1], b[1]
	switch {
	case a[0] == b[0]:
	case a[1] == b[1]:
		at, from, to = a[1], a[0], b[0]
	case a[1] == b[0]:
		at, from = a[1], a[0]
	case a[0] == b[1]:
		to = b[0]
	default:
		return false
	}
	next := x.g.Neighbours(int(to))
	for _, n := range x.g.Neighbours(int(from)) {
		if n.To != at && slices.ContainsFunc(next, func(m Neighbour) bool { return m.To == n.To }) {
			return false
		}
	}
	return true
}

// factors are the dimensions of the sets; nil: there is only one.
func (x *factoring) factors() (list []Factor) {
	product := 1
	for i := range x.links {
		if x.set(i) != i {
			continue
		}
		f := Factor{Ranks: &Ranks{Rank: slices.Repeat([]int{-1}, len(x.g.switches))}, Has: make([]bool, len(x.g.channels))}
		for c, ch := range x.g.channels {
			f.Has[c] = x.set(x.at[[2]int32{min(ch.From, ch.To), max(ch.From, ch.To)}]) == i
		}
		row := x.spread(0, f.Has, true)
		for rank, s := range row {
			for _, t := range x.spread(s, f.Has, false) {
				f.Ranks.Rank[t] = rank
			}
		}
		if slices.Contains(f.Ranks.Rank, -1) {
			return nil
		}
		product *= len(row)
		list = append(list, f)
	}
	if len(list) < 2 || product != len(x.g.switches) {
		return nil
	}
	return list
}

// spread are the switches that are reached from s by channels for which has is want, the nearest first.
func (x *factoring) spread(s int32, has []bool, want bool) []int32 {
	order, in := []int32{s}, make([]bool, len(x.g.switches))
	in[s] = true
	for i := 0; i < len(order); i++ {
		for c := x.g.chanBase[order[i]]; c < x.g.chanBase[order[i]+1]; c++ {
			if t := x.g.chanTo[c]; has[c] == want && !in[t] {
				in[t] = true
				order = append(order, t)
			}
		}
	}
	return order
}
