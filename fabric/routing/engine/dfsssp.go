package engine

import (
	"context"
	"errors"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/lanes"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/walk"
)

// dfsssp is deadlock-free single-source shortest-path routing (Domke, Hoefler, Nagel,
// "Deadlock-free oblivious routing for arbitrary topologies", 2011), as OpenSM's
// dfsssp: shortest paths, balanced over the whole network, and virtual lanes by Layer.
// Where those of sssp need several lanes, other shortest paths are tried as well:
// see lowLaneTables and fewestLanes.
//
// Time: those of sssp and Layer, for each of up to five tables.
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
		if balanced.load, err = largestLoad(ctx, r); err != nil {
			return nil, err
		}
		others, err := lowLaneTables(ctx, g, h)
		if err != nil {
			return nil, err
		}
		return fewestLanes(ctx, append(others, balanced), o)
	},
}

// lanePrice is how much more load is worth a lane less: a part of it.
const lanePrice = 0.03

// laneTables are tables, and the largest number of routes on a channel.
type laneTables struct {
	r    *routes.Routes
	load int64
}

// inLanes gives the paths lanes.
func (t *laneTables) inLanes(ctx context.Context, o *Options, most int) error {
	with := *o
	with.MaxVLs = most
	_, err := inLanes(ctx, t.r, &lanes.Layering{}, &with)
	return err
}

// fewestLanes are the tables of list with the least product of load and 1 + lanePrice for
// each lane. Those that are likely to need few lanes come first: then the others end early.
func fewestLanes(ctx context.Context, list []laneTables, o *Options) (*routes.Routes, error) {
	allowed := o.MaxVLs
	if allowed == 0 {
		allowed = DefaultLanes
	}
	var best *routes.Routes
	var price float64
	var refusal error
	for _, t := range list {
		most := allowed
		if best != nil {
			most = min(most, int(math.Ceil((price/float64(t.load)-1)/lanePrice))-1)
		}
		if most < 1 {
			continue
		}
		switch err := t.inLanes(ctx, o, most); {
		case err == nil:
			best, price = t.r, float64(t.load)*(1+lanePrice*float64(t.r.Lanes()))
		case !errors.As(err, new(*Precondition)):
			return nil, err
		case most == allowed:
			refusal = err
		}
	}
	if best == nil {
		return nil, refusal
	}
	return best, nil
}

// largestLoad is the largest number of routes on a channel.
func largestLoad(ctx context.Context, r *routes.Routes) (int64, error) {
	load, err := walk.CountAllRoutes(ctx, r)
	if err != nil {
		return 0, err
	}
	return slices.Max(append(load, 0)), nil
}
