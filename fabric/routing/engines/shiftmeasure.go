package engines

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// shiftSquares is the sum of the squares of flows of tables with distances h; 1: there are too few
// hosts, or too many.
func shiftSquares(ctx context.Context, r *routes.Routes, h *graph.Hops) (float64, error) {
	x := newShifts(newBalancer(r, h))
	if x.flows == nil {
		return 1, nil
	}
	err := x.countFlows(ctx)
	return x.squares(), err
}

// shiftWalks is of about how many paths shiftBandwidth reads the flows: those of all shifts of 512 hosts.
const shiftWalks = 1 << 18

// shiftBandwidth is the mean, over the flows of shifts of compute nodes between switches, of 1 over
// the largest number of flows on a channel of the path; without flows it is 1. Where all shifts would
// take long, some stand for all.
func shiftBandwidth(ctx context.Context, r *routes.Routes) (float64, error) {
	g := r.Graph()
	hosts := shiftHosts(g, graph.ClassCN)
	n := len(hosts)
	step := n*n/shiftWalks | 1 // odd: it should not have a factor in common with the hosts of a switch
	sums, counts := make([]float64, n/step+1), make([]int, n/step+1)
	flows := make([][]int32, g.Workers())
	err := graph.Each(ctx, g.Workers(), len(sums), func(worker, at int) {
		if flows[worker] == nil {
			flows[worker] = make([]int32, len(g.Channels()))
		}
		on, k := flows[worker], 1+at*step
		clear(on)
		if k >= n {
			return
		}
		for i := range hosts {
			eachChannel(r, hosts[i], hosts[(i+k)%n], func(c int32) { on[c]++ })
		}
		for i := range hosts {
			most := int32(0)
			eachChannel(r, hosts[i], hosts[(i+k)%n], func(c int32) { most = max(most, on[c]) })
			if most > 0 {
				sums[at] += 1 / float64(most)
				counts[at]++
			}
		}
	})
	sum, count := 0.0, 0
	for at := range sums {
		sum += sums[at]
		count += counts[at]
	}
	if count == 0 {
		return 1, err
	}
	return sum / float64(count), err
}

// eachChannel calls fn with the channels of the path between two terminals, as far as there is one.
// The tables have no loops.
func eachChannel(r *routes.Routes, from, to int, fn func(c int32)) {
	g := r.Graph()
	t := &g.Terminals()[to]
	for s := int32(g.Terminals()[from].Switch); int(s) != t.Switch; {
		c := g.Target(s, r.Row(int(s))[t.LID]).Channel()
		if c < 0 {
			return
		}
		fn(c)
		s = g.ChannelTo(c)
	}
}

// shiftHosts are the terminals of hosts of a class, in the order in which shifts take them.
func shiftHosts(g *graph.Graph, class graph.Class) (hosts []int) {
	for i, t := range g.Terminals() {
		if t.Switch >= 0 && t.IsEndpoint(class) {
			hosts = append(hosts, i)
		}
	}
	slices.SortFunc(hosts, func(i, j int) int {
		return cmp.Or(cmp.Compare(g.Terminals()[i].Port.GUID(), g.Terminals()[j].Port.GUID()), cmp.Compare(i, j))
	})
	return hosts
}

// squares is the sum of the squares of flows.
func (x *shifts) squares() (sum float64) {
	for _, n := range x.flows {
		sum += float64(n) * float64(n)
	}
	return sum
}
