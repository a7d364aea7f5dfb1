package engines

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"fabsh/fabric/routing/graph"
)

// orderSearch looks for orders of the switches by which paths up and then down are short and even: up is
// towards the switch that comes first. Distances from a root leave the order of most switches to their
// numbers, so that the largest load of a network depends on how it is numbered and arranged.
//
// A search begins with an order in which the next switch is the one with most neighbours before it, as in
// maximum cardinality search (Tarjan, Yannakakis, "Simple linear-time algorithms to test chordality of
// graphs", 1984): it takes the switches of a dense part together, such as a group of a dragonfly. Then it
// moves switches to other places, and keeps a move that lowers the sum of the 8th powers of loads, if the
// routes of each pair are divided over all paths.
type orderSearch struct {
	g         *graph.Graph
	endpoints []int64
	reached   []int64 // by switch: endpoints in its component

	toward     graph.Toward
	load, flow []float64 // by channel, by switch
}

const (
	orderWork  = 1 << 27 // of all searches: switches and channels that are met, about a second
	orderMoves = 1000    // most moves of a search
	orderLeast = 50      // with fewer, a search gains little
	orders     = 3       // searches: for each an order
)

// findOrders are orders of the switches, as ranks; none: the network is too large, or links have weights.
//
// Time: O(S*(S + C)) for each move.
func findOrders(ctx context.Context, g *graph.Graph) ([]*graph.Ranks, error) {
	n := len(g.Switches())
	moves := min(orderMoves, orderWork/orders/max(1, n*(n+len(g.Channels()))))
	if moves < orderLeast || g.Weighted() || n < 3 {
		return nil, nil
	}
	found, failed := make([]*graph.Ranks, orders), make([]error, orders)
	err := graph.Each(ctx, g.Workers(), orders, func(_, i int) {
		found[i], failed[i] = newOrderSearch(g).run(ctx, moves, rand.New(rand.NewPCG(uint64(i), uint64(n))))
	})
	return found, cmp.Or(err, errors.Join(failed...))
}

func newOrderSearch(g *graph.Graph) *orderSearch {
	n := len(g.Switches())
	x := &orderSearch{g: g, endpoints: g.Endpoints(), reached: make([]int64, n), load: make([]float64, len(g.Channels())), flow: make([]float64, n)}
	component := graph.Components(g)
	for s, c := range component {
		x.reached[c] += x.endpoints[s]
	}
	for s, c := range component {
		x.reached[s] = x.reached[c]
	}
	return x
}

// orderStarts is how many orders a search begins with, of which it takes the best.
const orderStarts = 8

// run searches with so many moves.
func (x *orderSearch) run(ctx context.Context, moves int, random *rand.Rand) (*graph.Ranks, error) {
	n := len(x.g.Switches())
	var best []int
	var least float64
	for i := range orderStarts {
		tie := make([]int, n) // by number, or at random
		if i%2 == 1 {
			tie = random.Perm(n)
		}
		order := x.dense(random.IntN(n), tie)
		cost, ok, err := x.cost(ctx, order)
		if err != nil {
			return nil, err
		}
		if ok && (best == nil || cost < least) {
			best, least = order, cost
		}
	}
	for ; moves > 0 && best != nil; moves-- {
		i, j := random.IntN(n), random.IntN(n)
		if nbrs := x.g.Neighbours(best[i]); moves%2 == 0 && len(nbrs) > 0 { // beside a neighbour
			j = slices.Index(best, int(nbrs[random.IntN(len(nbrs))].To))
		}
		if i == j {
			continue
		}
		order := slices.Clone(best)
		s := order[i]
		order = slices.Insert(slices.Delete(order, i, i+1), j, s)
		cost, ok, err := x.cost(ctx, order)
		if err != nil {
			return nil, err
		}
		if ok && cost <= least {
			best, least = order, cost
		}
	}
	if best == nil {
		return nil, nil
	}
	return ranksOf(best), nil
}

// ranksOf are the places of switches in an order.
func ranksOf(order []int) *graph.Ranks {
	r := &graph.Ranks{Rank: make([]int, len(order))}
	for i, s := range order {
		r.Rank[s] = i
	}
	return r
}

// dense is an order from root in which the next switch is the one with most neighbours before it, of equal
// ones the one with the least tie, then number. Other parts of the network follow.
func (x *orderSearch) dense(root int, tie []int) (order []int) {
	n := len(x.g.Switches())
	before, in := make([]int, n), make([]bool, n)
	for s := root; s >= 0; {
		order = append(order, s)
		in[s] = true
		for _, t := range x.g.Neighbours(s) {
			before[t.To]++
		}
		s = -1
		for t := range n {
			if !in[t] && (s < 0 || before[t] > before[s] || before[t] == before[s] && tie[t] < tie[s]) {
				s = t
			}
		}
	}
	return order
}

// cost is the sum of the 8th powers of loads under an order. Not ok: some pair has no path.
func (x *orderSearch) cost(ctx context.Context, order []int) (sum float64, ok bool, err error) {
	h, err := graph.UpDown(ctx, x.g, ranksOf(order))
	if ctx.Err() != nil {
		return 0, false, context.Cause(ctx)
	}
	if err != nil {
		return 0, false, nil // some path is too long
	}
	clear(x.load)
	for d, ends := range x.endpoints {
		if ends == 0 {
			continue
		}
		x.toward.Load(h, d, nil)
		reached := ends
		for s, n := range x.endpoints {
			x.flow[s] = float64(n * ends)
		}
		for _, st := range slices.Backward(x.toward.Steps) {
			reached += x.endpoints[st.Switch]
			share := x.flow[st.Switch] / float64(st.Last-st.First)
			for _, c := range x.toward.Next[st.First:st.Last] {
				x.load[c] += share
				x.flow[x.g.ChannelTo(c)] += share
			}
		}
		if reached < x.reached[d] {
			return 0, false, nil
		}
	}
	for _, n := range x.load {
		n *= n
		n *= n
		sum += float64(n * n) // rounded, as on machines that would fuse both
	}
	return sum, true, nil
}
