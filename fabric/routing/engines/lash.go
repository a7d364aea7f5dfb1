package engines

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/mad"
)

// lash is layered shortest-path routing (Skeie, Lysne, Theiss, "Layered shortest path
// (LASH) routing in irregular system area networks", 2002), as OpenSM's lash: one
// shortest path from switch to switch, and the paths there and back on one lane, so that
// an answer can have the service level of its question. LIDs are spread over parallel
// links, which count as one. The paths by the lowest ports, which are paths of dimension
// order where ports have that order, determine how many lanes are used at most.
// Paths that are spread more evenly are taken if they need no more, and of these the ones
// with the fewest lanes; on small networks, they then spread the flows of shifts, in as many. In
// a torus of long rings even the lowest ports may need more lanes than there are: then see
// byDatelines.
//
// Time: the times of AllHops, Assign and Layer, for each of up to five tables.
var lash = Engine{
	Name:    "lash",
	Doc:     "One shortest path from switch to switch, on virtual lanes without credit loops.",
	OpenSM:  "lash",
	Lanes:   true,
	Options: []Option{maxVLsOption, effortOption},
	Minimal: true,
	Acyclic: true,
	Repair:  KeepLanes,

	layering: lashLayering,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		r, err := computeLash(ctx, g, o)
		if err != nil {
			return nil, err
		}
		return r, spreadParallel(ctx, r)
	},
}

// computeLash are the tables of lash; of parallel links, any.
func computeLash(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
	h, err := graph.AllHops(ctx, g)
	if err != nil {
		return nil, &Precondition{Reason: err}
	}
	lowest := routes.New(g, 0)
	if err := Assign(ctx, lowest, h, AssignOptions{Policy: First}); err != nil {
		return nil, err
	}
	_, first := withLanes(ctx, lowest, lashLayering(g), o)
	if first != nil {
		if !errors.As(first, new(*Precondition)) {
			return nil, first
		}
		if t := byDatelines(ctx, g, o.MaxVLs); t != nil {
			return t, nil
		}
	}
	if search.IsLarge(g) || g.Weighted() {
		return lowest, first
	}
	even, err := evenLash(ctx, g, h)
	if err != nil {
		return nil, err
	}
	var best laneTables
	with := *o
	if first == nil {
		best.r, with.MaxVLs = lowest, lowest.Lanes()
		if best.load, err = largestLoad(ctx, lowest); err != nil {
			return nil, err
		}
		even = slices.DeleteFunc(even, func(t laneTables) bool { return t.load >= best.load })
	}
	for _, t := range even {
		switch _, err := withLanes(ctx, t.r, lashLayering(g), &with); {
		case err == nil && (best.r == nil || t.r.Lanes() < best.r.Lanes() || t.load < best.load):
			best, with.MaxVLs = t, t.r.Lanes()
		case err != nil && !errors.As(err, new(*Precondition)):
			return nil, err
		}
	}
	if best.r == nil {
		return nil, first
	}
	spread, err := spreadLash(ctx, best.r, h)
	if err != nil || spread == nil {
		return best.r, err
	}
	switch _, err := withLanes(ctx, spread, lashLayering(g), &with); {
	case err == nil:
		return spread, nil
	case !errors.As(err, new(*Precondition)):
		return nil, err
	}
	return best.r, nil
}

// spreadParallel divides the destinations over parallel links of different rates by load; the levels of paths do not
// depend on which of them they take. Where rates are equal, or the network is too large, nothing changes.
//
// Time: O(P) for each LID and switch, P links a path.
func spreadParallel(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	cost := g.Capacity().Costs()
	if cost == nil || search.IsLarge(g) {
		return nil
	}
	ends := g.Endpoints()
	through := make([][]int64, len(ends)) // by switch, LID: routes
	for s := range through {
		through[s] = make([]int64, int(r.Top())+1)
	}
	err := graph.Each(ctx, g.Workers(), len(g.Dests()), func(_, i int) {
		lid := g.Dests()[i].LID
		if g.Dests()[i].Out == 0 { // of a switch
			return
		}
		home := g.Terminals()[g.Dests()[i].Terminal].Switch
		for s, n := range ends {
			for at, left := s, len(ends); n > 0 && at != home && left > 0; left-- {
				through[at][lid] += n
				t := g.Target(int32(at), r.Row(at).Port(lid))
				if !t.IsChannel() {
					break
				}
				at = int(g.ChannelTo(t.Channel()))
			}
		}
	})
	if err != nil {
		return err
	}
	for s := range g.Switches() {
		for _, n := range g.Neighbours(s) {
			if len(n.Ports) < 2 {
				continue
			}
			var lids []mad.LID
			for _, d := range g.Dests() {
				if slices.Contains(n.Ports, r.Row(s).Port(d.LID)) {
					lids = append(lids, d.LID)
				}
			}
			slices.SortStableFunc(lids, func(a, b mad.LID) int { return cmp.Compare(through[s][b], through[s][a]) })
			load, row := make([]int64, len(n.Ports)), r.WritableRow(s)
			for _, lid := range lids {
				best, least := 0, int64(math.MaxInt64)
				for i, port := range n.Ports {
					if after := load[i] + through[s][lid]*cost[g.Target(int32(s), port).Channel()]; after < least {
						best, least = i, after
					}
				}
				load[best], row[lid] = least, n.Ports[best]
			}
		}
	}
	return nil
}

// spreadLashSteps is the product of LIDs and channels up to which spreadLash takes tens of
// milliseconds with the lanes for its paths. On larger networks, these often need more lanes.
const spreadLashSteps = search.RefineSteps >> 8

// spreadLash are the tables where other paths from switch to switch spread the flows of shifts.
// Nil: the paths stay, some links are parallel, or finding lanes could take long.
func spreadLash(ctx context.Context, from *routes.Routes, h *graph.Hops) (*routes.Routes, error) {
	b := newBalancer(from.Clone(), h)
	b.bySwitch(false)
	isParallel := func(ports []uint8) bool { return len(ports) > 1 }
	if len(b.g.Dests())*len(b.g.Channels()) > spreadLashSteps || slices.ContainsFunc(b.ports, isParallel) {
		return nil, nil
	}
	for d := range b.g.Switches() {
		b.findNext(d)
		if dests := b.g.DestsOf(d); len(dests) > 0 {
			b.read(dests[0].LID)
			b.count(b.ends(d))
		}
	}
	if err := b.spreadShifts(ctx); err != nil {
		return nil, err
	}
	for s := range b.g.Switches() {
		if !slices.Equal(b.r.Row(s), from.Row(s)) {
			return b.r, nil
		}
	}
	return nil, nil
}

// lashLayering is the layering of lash: parallel links count as one, and paths there and back are on
// one lane.
func lashLayering(g *graph.Graph) *lanes.Layering {
	return &lanes.Layering{Both: true, Class: graph.FirstParallel(g)}
}

// evenLash are tables of one path from switch to switch that even out the load, first the tables
// that are likely to need the fewest lanes.
func evenLash(ctx context.Context, g *graph.Graph, h *graph.Hops) ([]laneTables, error) {
	net := laneNetwork(g)
	variants := []struct {
		toll   float64
		spread bool
	}{{highToll, false}, {highToll, true}, {lowToll, true}, {0, true}}
	list, failed := make([]laneTables, len(variants)), make([]error, len(variants))
	err := graph.Each(ctx, g.Workers(), len(variants), func(_, i int) {
		list[i].r = routes.New(g, 0)
		b := newBalancer(list[i].r, h)
		if b.bySwitch(variants[i].spread); variants[i].toll > 0 {
			b.turns, b.toll = lanes.NewTurns(net), variants[i].toll
		}
		failed[i] = b.run(ctx)
	})
	if err = cmp.Or(err, errors.Join(failed...)); err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].load, err = largestLoad(ctx, list[i].r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// byDatelines are the paths of lash in a whole torus of long rings, where Layer finds no
// lanes: in dimension order, with a lane for each set of datelines that paths cross. That
// closes no ring: a path that crosses a dateline does not get past the point opposite.
// Half way round, the path back is the path there, so it crosses the datelines of the path
// there. nil: this is not a whole torus, or max lanes are not enough.
//
// Time: O(S*L).
func byDatelines(ctx context.Context, g *graph.Graph, max int) *routes.Routes {
	if g.Weighted() {
		return nil
	}
	t, err := laneNetwork(g).Torus(ctx)
	if err != nil {
		return nil
	}
	need := 1
	var lane [1 << lanes.MaxDims]uint8 // by level
	for d := range t.Dims {
		if t.Dateline(d) {
			for level := range lane {
				lane[level] |= uint8(need) * uint8(level>>d&1)
			}
			need *= 2
		}
	}
	if max == 0 {
		max = DefaultLanes
	}
	if switches, links := t.Missing(); switches+links > 0 || need > max {
		return nil
	}
	t.Mirror = true
	r, from, _, err := alongDimensions(ctx, g, t, t.Routes(t.Orders()[0]), nil)
	if err != nil || from >= 0 {
		return nil
	}
	r.SL2VL = routes.NewSL2VL(g)
	if setLevels(ctx, r, func(s, d int) uint8 { return lane[t.Level(int32(s), int32(d))] }) != nil {
		return nil
	}
	return r
}
