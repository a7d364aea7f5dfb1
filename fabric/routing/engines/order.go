package engines

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"fabsh/fabric"
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
	of        []int // the switches of an order: all, or those of a component
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
	if g.Weighted() || len(g.Switches()) < 3 {
		return nil, nil
	}
	found, _, err := newOrderSearch(g).runAll(ctx)
	return slices.DeleteFunc(found, func(r *graph.Ranks) bool { return r == nil }), err
}

// findOrderWithin is ranks by which paths within a dimension, up and then down, are short and even: those of a fat
// tree, as each plane of a network with several may be; else of an order of one row of switches, each with the
// endpoints of all that are at its place. It is f.Ranks if all switches of a row are linked, or in a line or a ring,
// or if the network is too large.
func findOrderWithin(ctx context.Context, g *graph.Graph, f graph.Factor) (ranks *graph.Ranks, searched bool, err error) {
	if isSimple(g, f) {
		return f.Ranks, false, nil
	}
	part, err := partOf(g, f)
	if err != nil {
		return nil, false, err
	}
	if ranks := treeWithin(g, part); ranks != nil {
		return ranks, false, nil
	}
	if part, err = graph.Canonical(ctx, part); err != nil {
		return nil, false, err
	}
	ranks = &graph.Ranks{Rank: make([]int, len(g.Switches()))}
	number := make([]int, len(g.Switches())) // in part
	for s, n := range g.Switches() {
		number[s] = part.SwitchOf(n)
	}
	places := f.Ranks.Rank
	x := newOrderSearch(part)
	x.of = make([]int, slices.Max(places)+1)
	sum, component := make([]int64, len(x.of)), graph.Components(part)
	for s, i := range number {
		if sum[places[s]] += x.endpoints[i]; component[i] == 0 {
			x.of[places[s]] = i
		}
	}
	clear(x.endpoints)
	clear(x.reached)
	for place, i := range x.of {
		x.endpoints[i] = sum[place]
		for _, n := range sum {
			x.reached[i] += n
		}
	}
	found, cost, err := x.runAll(ctx)
	best := slices.Index(cost, slices.Min(cost))
	if err != nil || found[best] == nil {
		return f.Ranks, true, err
	}
	for s, place := range places {
		ranks.Rank[s] = found[best].Rank[x.of[place]]
	}
	return ranks, true, nil
}

// partOf is g with the links of a dimension only.
func partOf(g *graph.Graph, f graph.Factor) (*graph.Graph, error) {
	return g.Part(func(p *fabric.Port) bool { c := g.ChannelOf(p); return c < 0 || f.Has[c] })
}

// treeWithin are ranks of the switches of g by the levels of part, a part of it, in which each row is a fat tree; 0: a
// top. nil: they are no fat trees.
func treeWithin(g, part *graph.Graph) *graph.Ranks {
	levels := graph.FindLevels(part)
	if levels.Check() != nil {
		return nil
	}
	r, inPart := &graph.Ranks{Rank: make([]int, len(g.Switches()))}, levels.Ranks()
	for s, n := range g.Switches() {
		r.Rank[s] = inPart.Rank[part.SwitchOf(n)]
	}
	return r
}

// planeTops are the top switches of all planes of a network whose planes are fat trees, linked at each switch; nil: it
// is no such network.
func planeTops(ctx context.Context, g *graph.Graph) (tops []int, err error) {
	connected, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	factors, err := graph.FindFactors(ctx, g, connected)
	if err != nil {
		return nil, err
	}
	for _, f := range factors {
		if isSimple(g, f) {
			continue
		}
		part, err := partOf(g, f)
		if err != nil {
			return nil, err
		}
		if ranks := treeWithin(g, part); ranks != nil {
			for s, rank := range ranks.Rank {
				if rank == 0 {
					tops = append(tops, s)
				}
			}
			return tops, nil
		}
	}
	return nil, nil
}

// isSimple reports whether the switches of a dimension are all linked, or in a line or a ring.
func isSimple(g *graph.Graph, f graph.Factor) bool {
	most, least, others := 0, math.MaxInt, slices.Max(f.Ranks.Rank)
	for s := range g.Switches() {
		n := 0
		for _, to := range g.Neighbours(s) {
			if f.Has[g.Target(int32(s), to.Ports[0]).Channel()] {
				n++
			}
		}
		most, least = max(most, n), min(least, n)
	}
	return most <= 2 || least == others
}

// firstOrder is an order of a search without moves, or ranks, if under that not all pairs have a path.
//
// Time: O(S*(S + C)).
func firstOrder(ctx context.Context, g *graph.Graph, ranks *graph.Ranks) (*graph.Ranks, error) {
	found, _, err := newOrderSearch(g).run(ctx, 1, rand.New(rand.NewPCG(0, 0)))
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
		x.of = append(x.of, s)
	}
	return x
}

// orderTries is how many orders each search may try.
func orderTries(g *graph.Graph) int {
	n := len(g.Switches())
	return min(orderStarts+orderMoves, orderWork/orders/max(1, n*(n+len(g.Channels()))))
}

// runAll makes searches, and returns the order of each, nil for none, and its cost.
func (x *orderSearch) runAll(ctx context.Context) (found []*graph.Ranks, cost []float64, err error) {
	n, tries := len(x.g.Switches()), orderTries(x.g)
	found, cost = make([]*graph.Ranks, orders), slices.Repeat([]float64{math.Inf(1)}, orders)
	failed := make([]error, orders)
	err = graph.Each(ctx, x.g.Workers(), orders, func(_, i int) {
		own := *x
		own.load, own.flow, own.toward = make([]float64, len(x.load)), make([]float64, n), graph.Toward{}
		found[i], cost[i], failed[i] = own.run(ctx, tries, rand.New(rand.NewPCG(uint64(i), uint64(n))))
	})
	return found, cost, cmp.Or(err, errors.Join(failed...))
}

// orderStarts is how many orders a search begins with, of which it takes the best.
const orderStarts = 8

// run searches with so many orders and moves. nil: no order has paths for all pairs.
func (x *orderSearch) run(ctx context.Context, tries int, random *rand.Rand) (*graph.Ranks, float64, error) {
	n := len(x.of)
	var best []int
	least := math.Inf(1)
	for i := range min(orderStarts, tries) {
		tie := make([]int, len(x.g.Switches())) // by number, or at random
		if i%2 == 1 {
			tie = random.Perm(len(tie))
		}
		order := graph.DenseOrder(x.g, x.of[random.IntN(n)], tie)[:n]
		cost, ok, err := x.cost(ctx, order)
		if err != nil {
			return nil, least, err
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
			return nil, least, err
		}
		if ok && cost <= least {
			best, least = order, cost
		}
	}
	if best == nil {
		return nil, least, nil
	}
	return x.ranksOf(best), least, nil
}

// ranksOf are the places of switches in an order.
func (x *orderSearch) ranksOf(order []int) *graph.Ranks {
	r := &graph.Ranks{Rank: make([]int, len(x.g.Switches()))}
	for i, s := range order {
		r.Rank[s] = i
	}
	return r
}

// cost is the sum of the 8th powers of loads under an order. Not ok: some pair has no path.
func (x *orderSearch) cost(ctx context.Context, order []int) (sum float64, ok bool, err error) {
	h, err := graph.UpDown(ctx, x.g, x.ranksOf(order))
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
