package repair

import (
	"context"
	"math/bits"
	"slices"
	"sync/atomic"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// keepUnknown is keepLanes for tables of unknown origin, as of a file, whose paths are shortest ones on
// several lanes: as lash or dfsssp makes them, by OpenSM too. It adds no lane, for how many ports have
// is unknown. Nil: r is not such, or the lanes that it has are not enough.
//
// Time: that of keepLanes, and of Hops on the graph of r.
func keepUnknown(ctx context.Context, r *routes.Routes, g *graph.Graph) (*routes.Routes, error) {
	upTo := uint16(1)<<bits.Len16(r.SL.Used()) - 1 // paths may move to any level below the highest
	if !r.SL.Any() || !r.SL2VL.DirectFor(upTo) {
		return nil, nil
	}
	if shortest, err := allShortest(ctx, r); !shortest || err != nil {
		return nil, err
	}
	like := *r
	like.SL2VL = routes.NewSL2VL(r.Graph())
	name := "dfsssp"
	if bothWays(r) {
		name = "lash"
	}
	like.SetOrigin(engines.AsIf(name, r.Lanes()))
	t, err := keepLanes(ctx, &like, g, r.Lanes())
	if t == nil || err != nil {
		return nil, err
	}
	t.ForgetOrigin()
	t.SL2VL = r.On(g).SL2VL
	return t, nil
}

// allShortest reports whether each entry leads along a shortest path.
func allShortest(ctx context.Context, r *routes.Routes) (bool, error) {
	g := r.Graph()
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return false, err
	}
	var other atomic.Bool
	nexts := make([]graph.NextHops, g.Workers())
	err = graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		next, row := &nexts[worker], r.Row(s)
		next.Load(h, s)
		for d := range g.Switches() {
			ports, _ := next.Ports(d)
			for _, dest := range g.DestsOf(d) {
				if port := row.Port(dest.LID); s != d && len(ports) > 0 && !slices.Contains(ports, port) {
					other.Store(true)
				}
			}
		}
	})
	return !other.Load(), err
}

// bothWays reports whether, as with lash, the paths between two switches are on one lane both ways, and
// those to all CAs of a switch go by the same switches.
func bothWays(r *routes.Routes) bool {
	g := r.Graph()
	first := make([]int, len(g.Switches())) // of the terminals on a switch
	for s := range first {
		first[s] = -1
		var before []int32
		for _, dest := range g.DestsOf(s) {
			if dest.Out == 0 {
				continue
			}
			ways := make([]int32, len(g.Switches()))
			for t := range g.Switches() {
				ways[t] = -1
				if c := g.Target(int32(t), r.Row(t).Port(dest.LID)).Channel(); c >= 0 {
					ways[t] = g.ChannelTo(c)
				}
			}
			if before != nil && !slices.Equal(before, ways) {
				return false
			}
			before = ways
			if first[s] < 0 {
				first[s] = int(dest.Terminal)
			}
		}
	}
	for s, t := range first {
		for d, u := range first[:s] {
			if t < 0 || u < 0 {
				continue
			}
			level := r.SL.Of(t, g.Terminals()[u].LID)
			for _, way := range [][2]int{{s, d}, {d, s}} {
				for _, dest := range g.DestsOf(way[1]) {
					if dest.Out > 0 && r.SL.Of(first[way[0]], dest.LID) != level {
						return false
					}
				}
			}
		}
	}
	return true
}
