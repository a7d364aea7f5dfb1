package search

import (
	"context"
	"fmt"
	"slices"

	"fabsh/fabric/routing/cdg"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/walk"
)

// Complete adds entries to the tables of up*/down* under ranks, with distances h,
// where up*/down* has no path but the network is connected. Switches with CAs get
// paths that close no cycle in the channel dependency graph of all paths: first to
// CAs, by searches as of nue; then to switches, whose LIDs only management packets
// have, by way of a few switches where such paths turn up again, and, if that leaves
// some, by searches too. Other switches, from which only their own management packets
// come, get shortest paths: those of keep where they are shortest paths still. Notes
// describe what was added. gaps reports whether paths to CAs were missing, and missing is how
// many entries that lead to CAs could not be added.
//
// Time: up to maxAttempts searches as of nue for each LID of a CA with missing paths;
// for those of switches up to maxTurns searches of the dependency graph, O(C + E)
// each for E dependencies, and the length of the paths.
func Complete(ctx context.Context, r *routes.Routes, h *graph.Hops, ranks *graph.Ranks, keep *routes.Routes) (gaps bool, missing int, err error) {
	connected, err := graph.AllHops(ctx, r.Graph())
	if err != nil {
		return false, 0, err
	}
	if lack, all := CountPairs(r.Graph(), h, connected); lack*MaxLack > all && len(r.Graph().Dests()) > manyLIDs {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d pairs of switches with CAs have no path that goes up and then down", lack, all))
		return true, lack, nil
	}
	a := addition{r: r, connected: connected}
	a.findGaps(h)
	if err := a.addPaths(ctx, ranks); err != nil {
		return false, 0, err
	}
	a.note("", a.toCAs)
	a.note(ofSwitches, a.toSwitches)
	return len(a.cas) > 0, a.toCAs.missing, FillIn(ctx, r, h, connected, keep)
}

// MaxLack bounds the share of pairs without a path: where more than one in so many pairs of switches with CAs lacks one, the
// network has not the shape that the ranks suppose; and where there are more than
// manyLIDs, no paths are added then, for the searches would take minutes.
const (
	MaxLack  = 10
	manyLIDs = 2000
)

// CountPairs counts the pairs of switches with CAs that are connected, and those that
// lack a path in h.
func CountPairs(g *graph.Graph, h, connected *graph.Hops) (lack, all int) {
	endpoints := g.Endpoints()
	for s := range endpoints {
		for d := range endpoints {
			if endpoints[s] > 0 && endpoints[d] > 0 && s != d && connected.Distance(s, d) >= 0 {
				all++
				if h.Distance(s, d) < 0 {
					lack++
				}
			}
		}
	}
	return lack, all
}

// addPaths is the part of Complete for switches with CAs.
func (a *addition) addPaths(ctx context.Context, ranks *graph.Ranks) error {
	if len(a.cas)+len(a.switches) == 0 {
		return nil
	}
	g := a.r.Graph()
	if len(a.cas) == 0 {
		if err := a.byTurning(ctx, newStaticDownUp(a.r, ranks)); err != nil || len(a.switches) == 0 {
			return err
		}
	}
	graph, err := walk.Dependencies(ctx, a.r, walk.SelectEndpoints(a.r.Graph(), 0))
	if err != nil {
		return err
	}
	if len(a.cas) > 0 {
		load, err := walk.CountAllRoutes(ctx, a.r)
		if err != nil {
			return err
		}
		if graph, err = a.toEach(ctx, &a.toCAs, a.cas, maxAttempts, func() *nueSearch {
			n := newNueSearch(a.r, graph.Clone(), cdg.UpDownOrder(g, ranks))
			n.load = slices.Clone(load)
			return n
		}); err != nil {
			return err
		}
	}
	if len(a.switches) == 0 {
		return nil
	}
	if graph, err = walk.WithSwitches(ctx, a.r, graph); err != nil {
		return err
	}
	if err := a.byTurning(ctx, newDownUp(a.r, graph)); err != nil || len(a.switches) == 0 {
		return err
	}
	_, err = a.toEach(ctx, &a.toSwitches, a.switches, 1, func() *nueSearch {
		n := newNueSearch(a.r, graph, graph.Positions())
		n.order.Budget = testsOfLast * len(g.Channels())
		return n
	})
	return err
}

// FillIn is the part of Complete for switches without CAs, with shortest paths as
// far as a switch that has a path already. h, if not nil, has which have one. Only
// management packets of these switches take them, so credit loops are not looked for.
//
// Time: O(S*(C + L)).
func FillIn(ctx context.Context, r *routes.Routes, h, connected *graph.Hops, keep *routes.Routes) error {
	g := r.Graph()
	endpoints := g.Endpoints()
	nexts := make([]graph.NextHops, g.Workers())
	return graph.Each(ctx, g.Workers(), len(g.Switches()), func(worker, s int) {
		if endpoints[s] > 0 {
			return
		}
		next, loaded := &nexts[worker], false
		row := r.Row(s)
		for d := range g.Switches() {
			if h != nil && h.Distance(s, d) >= 0 || connected.Distance(s, d) < 0 {
				continue
			}
			for _, dest := range g.DestsOf(d) {
				if row[dest.LID] != routes.NoPort {
					continue
				}
				if keep != nil {
					if old := keep.Row(s).Port(dest.LID); connected.IsNextHop(s, d, old) {
						row[dest.LID] = old
						continue
					}
				}
				if !loaded {
					next.Load(connected, s)
					loaded = true
				}
				ports, _ := next.Ports(d)
				row[dest.LID] = ports[int(dest.LID)%len(ports)]
			}
		}
	})
}
