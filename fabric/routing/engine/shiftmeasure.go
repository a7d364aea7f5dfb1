package engine

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// shiftSquares is the sum of the squares of flows of tables with distances h; 1: there are too few
// hosts, or too many.
func shiftSquares(ctx context.Context, r *routes.Routes, h *graph.Hops) (float64, error) {
	x := newShifts(newBalancer(r, h))
	if x == nil {
		return 1, nil
	}
	err := x.each(ctx, x.countPaths)
	return x.squares(), err
}

// shiftBandwidth is the mean, over the flows of all shifts between switches, of 1 over the largest
// number of flows on a channel of the path; 0: there are too few hosts, or too many.
func shiftBandwidth(ctx context.Context, r *routes.Routes, h *graph.Hops) (float64, error) {
	x := newShifts(newBalancer(r, h))
	if x == nil {
		return 0, nil
	}
	if err := x.each(ctx, x.countPaths); err != nil {
		return 0, err
	}
	sum, n := 0.0, 0.0
	err := x.each(ctx, func(d int32, lid mad.LID) {
		for _, st := range x.toward.Steps {
			for _, from := range x.hosts[st.Switch] {
				most, k := int32(1), int(x.shift(from, x.to[0]))
				for s := st.Switch; s != d; s = x.g.ChannelTo(x.via[s]) {
					most = max(most, x.flows[int(x.via[s])*x.n+k])
				}
				sum, n = sum+1/float64(most), n+1
			}
		}
	})
	return sum / max(n, 1), err
}

// squares is the sum of the squares of flows.
func (x *shifts) squares() (sum float64) {
	for _, n := range x.flows {
		sum += float64(n) * float64(n)
	}
	return sum
}
