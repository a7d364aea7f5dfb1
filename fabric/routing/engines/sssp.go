package engines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// sssp is single-source shortest-path routing (Hoefler, Schneider, Lumsdaine,
// "Optimized routing for large-scale InfiniBand networks", 2009), as OpenSM's
// sssp: LID after LID gets the shortest paths that have the fewest routes on their
// links so far, counted over the whole network, and then each again, where that
// makes loads more even, spreads the flows of shifts, or lowers the largest load.
//
// Time: the time of AllHops, and O(S*C + L*(S + C)). There is no logarithmic factor: the
// next hops of all switches are known from the distances, so there is no need for
// Dijkstra's algorithm for each LID.
var sssp = Engine{
	Name:    "sssp",
	Doc:     "Shortest paths, balanced over the whole network. Credit loops are possible outside of fat trees.",
	OpenSM:  "sssp",
	Options: []Option{hopWeightsOption},
	Minimal: true,
	Repair:  KeepLIDs,
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := routes.New(g, 0)
		return r, balanceLoad(ctx, r, h)
	},
}

// SSSP gives each of lids (nil: all) in turn the cheapest paths, where channel c
// costs weight[c], and adds the number of these paths to the weights of their
// channels (Hoefler, Schneider, Lumsdaine, "Optimized routing for large-scale
// InfiniBand networks", 2009). So in the end the weights show how much each channel
// is used.
//
// Time: O(L*C*log C).
func SSSP(ctx context.Context, r *routes.Routes, weight []int64, lids []mad.LID) error {
	r.ForgetOrigin()
	r.CopyShared()
	g := r.Graph()
	if err := graph.CheckWeights(g, weight); err != nil {
		return fmt.Errorf("sssp: %w", err)
	}
	if lids == nil {
		lids = g.LIDs(0)
	}
	x := graph.NewCheapest(g)
	endpoints, flow := g.Endpoints(), make([]int64, len(g.Switches()))
	for _, lid := range lids {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := g.TerminalByLID(lid)
		if i < 0 || g.Terminals()[i].Switch < 0 {
			return fmt.Errorf("sssp: no port on a switch has LID %d", lid)
		}
		t := &g.Terminals()[i]
		x.From(t.Switch, weight)
		for s := range g.Switches() {
			r.Row(s)[lid] = routes.NoPort
		}
		r.Row(t.Switch)[lid] = t.Out
		for _, s := range x.Done[1:] {
			r.Row(int(s))[lid] = g.Channels()[x.Via[s]].Port
		}
		if t.Out == 0 {
			continue
		}
		copy(flow, endpoints)
		for _, s := range slices.Backward(x.Done[1:]) {
			c := x.Via[s]
			weight[c] = min(weight[c]+flow[s], graph.MaxWeight)
			flow[g.ChannelTo(c)] += flow[s]
		}
	}
	return nil
}

// dfsssp is deadlock-free single-source shortest-path routing (Domke, Hoefler, Nagel,
// "Deadlock-free oblivious routing for arbitrary topologies", 2011), as OpenSM's
// dfsssp: shortest paths, balanced over the whole network, and virtual lanes by Layer.
// Where the paths of sssp need several lanes, other shortest paths are tried as well:
// see lowLaneTables and fewestLanes.
//
// Time: the times of sssp and Layer, for each of up to five tables.
var dfsssp = Engine{
	Name:    "dfsssp",
	Doc:     "Shortest paths, balanced over the whole network, on virtual lanes without credit loops.",
	OpenSM:  "dfsssp",
	Lanes:   true,
	Options: []Option{maxVLsOption, effortOption},
	Minimal: true,
	Acyclic: true,
	Repair:  KeepLanes,

	layering: func(*graph.Graph) *lanes.Layering { return &lanes.Layering{} },
	compute: func(ctx context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		h, err := graph.AllHops(ctx, g)
		if err != nil {
			return nil, &Precondition{Reason: err}
		}
		r := routes.New(g, 0)
		if err := balanceLoad(ctx, r, h); err != nil {
			return nil, err
		}
		if err := checkLanes(o.MaxVLs); err != nil {
			return nil, err
		}
		balanced := laneTables{r: r}
		large := search.IsLarge(g)
		most := 1
		if large {
			most = o.MaxVLs
		}
		switch err := balanced.inLanes(ctx, o, most); {
		case err == nil:
			return r, nil
		case large || !errors.As(err, new(*Precondition)):
			return nil, err
		}
		list, err := lowLaneTables(ctx, g, h)
		if err != nil {
			return nil, err
		}
		list = append(list, balanced)
		for i := range list {
			if err := list[i].measure(ctx, h); err != nil {
				return nil, err
			}
		}
		return fewestLanes(ctx, list, o)
	},
}

// lanePrice is how much more cost is worth a lane less: a part of it.
const lanePrice = 0.03

// laneTables are tables, and how uneven they are.
type laneTables struct {
	r       *routes.Routes
	load    int64   // the largest number of routes on a channel
	squares float64 // the sum of the squares of flows of shifts; 0: unknown
}

// mostLanes is the largest number of lanes with which x, a number of tables, is less than price.
func mostLanes(x, price float64) int { return int(math.Ceil((price/x-1)/lanePrice)) - 1 }

// priced is x, a number of tables, and what their lanes cost.
func priced(x float64, r *routes.Routes) float64 { return x * (1 + lanePrice*float64(r.Lanes())) }

// measure finds load and squares.
func (t *laneTables) measure(ctx context.Context, h *graph.Hops) (err error) {
	if t.load, err = largestLoad(ctx, t.r); err != nil {
		return err
	}
	t.squares, err = shiftSquares(ctx, t.r, h)
	return err
}

// inLanes gives the paths lanes.
func (t *laneTables) inLanes(ctx context.Context, o *Options, most int) error {
	with := *o
	with.MaxVLs = most
	_, err := withLanes(ctx, t.r, &lanes.Layering{}, &with)
	return err
}

// fewestLanes are the tables of list with the least product of load, squares and 1 + lanePrice for
// each lane. For less squares alone there may be no more lanes, or one where they are shiftGain times
// as large: in a HyperX, paths of dimension order do with one, but shifts meet where they turn. Those
// that are likely to need few lanes come first: then the others end early.
func fewestLanes(ctx context.Context, list []laneTables, o *Options) (*routes.Routes, error) {
	allowed := o.MaxVLs
	if allowed == 0 {
		allowed = DefaultLanes
	}
	var best *laneTables
	var refusal error
	for i := range list {
		t := &list[i]
		most := allowed
		if best != nil {
			load, bestLoad := float64(t.load), float64(best.load)
			bySquares := best.r.Lanes()
			if t.squares < shiftGain*best.squares {
				bySquares++
			}
			byLoad := max(mostLanes(load, priced(bestLoad, best.r)), bySquares)
			most = min(most, byLoad, mostLanes(load*t.squares, priced(bestLoad*best.squares, best.r)))
		}
		if most < 1 {
			continue
		}
		switch err := t.inLanes(ctx, o, most); {
		case err == nil:
			best = t
		case !errors.As(err, new(*Precondition)):
			return nil, err
		case most == allowed:
			refusal = err
		}
	}
	if best == nil {
		return nil, refusal
	}
	return best.r, nil
}

// largestLoad is the largest load of a channel, as Capacity.Weigh counts it.
func largestLoad(ctx context.Context, r *routes.Routes) (int64, error) {
	load, err := weighedRoutes(ctx, r)
	return slices.Max(append(load, 0)), err
}

// weighedRoutes are the routes over each channel; where rates differ, times its cost.
func weighedRoutes(ctx context.Context, r *routes.Routes) ([]int64, error) {
	load, err := verify.CountAllRoutes(ctx, r)
	if err != nil {
		return nil, err
	}
	return r.Graph().Capacity().Weigh(load), nil
}
