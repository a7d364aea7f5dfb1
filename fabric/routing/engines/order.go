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
// A search begins with a graph.DenseOrder. Then it moves switches to other places, and keeps a move that lowers
// the sum of the 8th powers of loads, if the routes of each pair are divided over all paths.
type orderSearch struct {
	g         *graph.Graph
	endpoints []int64
	reached   []int64 // by switch: endpoints in its component

	toward     graph.Toward
	load, flow []float64 // by channel, by switch
}

const (
	orderWork  = 3 << 26 // of all searches: switches and channels that are met, about a second
	orderMoves = 1000    // most moves of a search
	orders     = 4       // searches: for each an order
)

// findOrders are orders of the switches, as ranks; none: the network is too large, or links have weights.
//
// Time: O(S*(S + C)) for each move.
func findOrders(ctx context.Context, g *graph.Graph) ([]*graph.Ranks, error) {
	n := len(g.Switches())
	tries := min(orderStarts+orderMoves, orderWork/orders/max(1, n*(n+len(g.Channels()))))
	if tries < 1 || g.Weighted() || n < 3 {
		return nil, nil
	}
	found, failed := make([]*graph.Ranks, orders), make([]error, orders)
	err := graph.Each(ctx, g.Workers(), orders, func(_, i int) {
		found[i], failed[i] = newOrderSearch(g).run(ctx, tries, rand.New(rand.NewPCG(uint64(i), uint64(n))))
	})
	return slices.DeleteFunc(found, func(r *graph.Ranks) bool { return r == nil }), cmp.Or(err, errors.Join(failed...))
}

// firstOrder is an order of a search without moves, or ranks, if under that not all pairs have a path.
//
// Time: O(S*(S + C)).
func firstOrder(ctx context.Context, g *graph.Graph, ranks *graph.Ranks) (*graph.Ranks, error) {
	found, err := newOrderSearch(g).run(ctx, 1, rand.New(rand.NewPCG(0, 0)))
	if found == nil {
		return ranks, err
	}
	return found, nil
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

// run searches with so many orders and moves.
func (x *orderSearch) run(ctx context.Context, tries int, random *rand.Rand) (*graph.Ranks, error) {
	n := len(x.g.Switches())
	var best []int
	var least float64
	for i := range min(orderStarts, tries) {
		tie := make([]int, n) // by number, or at random
		if i%2 == 1 {
			tie = random.Perm(n)
		}
		order := graph.DenseOrder(x.g, random.IntN(n), tie)
		cost, ok, err := x.cost(ctx, order)
		if err != nil {
			return nil, err
		}
		if ok && (best == nil || cost < least) {
			best, least = order, cost
		}
	}
	for move := orderStarts; move < tries && best != nil; move++ {
		i, j := random.IntN(n), random.IntN(n)
		if nbrs := x.g.Neighbours(best[i]); move%2 == 0 && len(nbrs) > 0 { // beside a neighbour
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
