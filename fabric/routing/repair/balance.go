package repair

import (
	"context"
	"errors"
	"slices"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// maxWorse limits by how much the largest number of routes on a link after a repair may exceed
// that of a full run: by one in maxWorse.
const maxWorse = 50

// evenOut replaces entries of r by those of full, LID by LID, until no link has more routes than
// full allows: it takes LIDs on the busiest link whose entries differ. Where up*/down* has gaps,
// paths of different tables may close a credit loop, so it takes all entries or none.
//
// Time: the time of traffic.MeasureBalance, and O(S) for each LID.
func evenOut(ctx context.Context, r *routes.Routes, full *routes.Routes) error {
	g := r.Graph()
	load, err := verify.CountAllRoutes(ctx, r)
	if err != nil {
		return err
	}
	best, err := verify.CountAllRoutes(ctx, full)
	if err != nil {
		return err
	}
	weigh := g.Capacity().Weigh
	most := traffic.DistributionOf(weigh(best)).Max
	most += most / maxWorse
	if traffic.DistributionOf(weigh(load)).Max <= most {
		return nil
	}
	if engines.BasisOf(r) != nil && engines.BasisOf(r).Gaps || engines.BasisOf(full) != nil && engines.BasisOf(full).Gaps {
		r.Replace(full)
		return nil
	}
	e := balancing{r: r, full: full, load: load, on: verify.SelectEndpoints(g, 0).On, walk: verify.NewWalk(g), taken: make([]bool, int(g.Top())+1)}
	for ctx.Err() == nil {
		busiest := traffic.DistributionOf(weigh(load))
		if busiest.Max <= most || !e.relieve(g.Channels()[busiest.Busiest]) {
			break
		}
	}
	if ctx.Err() != nil || engines.BasisOf(r) == nil || engines.BasisOf(r).Hops == nil || !engines.BasisOf(r).Hops.IsUpDown() {
		return context.Cause(ctx)
	}
	// Paths to switches that up*/down* does not have were made for the entries before.
	graph, err := verify.Dependencies(ctx, r, verify.SelectEndpoints(g, 0))
	if err != nil {
		return err
	}
	all, err := verify.WithSwitches(ctx, r, graph)
	if all == graph {
		r.Replace(full)
	}
	return err
}

// balancing is the state of evenOut.
type balancing struct {
	r, full *routes.Routes
	load    []int64
	on      []uint32 // endpoints, by switch
	walk    *verify.Walk
	flow    []int64
	taken   []bool // by LID: its entries are from full
}

// relieve takes from full the entries of a LID whose routes use channel c, if possible of a LID
// whose routes in full do not. False: no LID is left.
func (e *balancing) relieve(c graph.Channel) bool {
	g := e.r.Graph()
	row, other := e.r.Row(int(c.From)), e.full.Row(int(c.From))
	found := -1
	for _, d := range g.Dests() {
		if row[d.LID] != c.Port || d.Out == 0 || e.taken[d.LID] {
			continue
		}
		if found < 0 {
			found = int(d.LID)
		}
		if other[d.LID] != c.Port {
			found = int(d.LID)
			break
		}
	}
	if found < 0 {
		return false
	}
	e.taken[found] = true
	e.count(e.r, found, -1)
	for s := range g.Switches() {
		if port := e.full.Row(s)[found]; e.r.Row(s)[found] != port {
			e.r.WritableRow(s)[found] = port
		}
	}
	e.count(e.r, found, 1)
	return true
}

// count adds the routes of a LID to the load, or takes them off.
func (e *balancing) count(r *routes.Routes, lid int, sign int64) {
	w, t := e.walk, int32(e.r.Graph().TerminalByLID(mad.LID(lid)))
	ports := w.Column(0)
	for s := range ports {
		ports[s] = r.Row(s)[lid]
	}
	w.Begin()
	if e.flow == nil {
		e.flow = make([]int64, len(e.on))
	}
	clear(e.flow)
	for s, n := range e.on {
		if n > 0 {
			w.From(int32(s), ports, t)
			e.flow[s] = int64(n)
		}
	}
	for _, s := range slices.Backward(w.Order) {
		if c := w.Via[s]; c >= 0 && w.State[s] >= 0 {
			e.load[c] += sign * e.flow[s]
			e.flow[w.Graph.ChannelTo(c)] += e.flow[s]
		}
	}
}

// evenTree is evenOut for tables that repairTree has made.
func evenTree(ctx context.Context, r *routes.Routes) error {
	g := r.Graph()
	full, err := engines.Compute(ctx, g, engines.BasisOf(r).Engine, engines.BasisOf(r).On(g))
	if p := new(engines.Precondition); errors.As(err, &p) {
		return nil // it would refuse the current tree
	} else if err != nil {
		return err
	}
	if h := engines.BasisOf(r).Hops; h.IsUpDown() && !h.SameDirections(engines.BasisOf(full).Hops) {
		engines.AddGaps(full, 0) // with other ranks, its paths may close a credit loop with those of r
	}
	return evenOut(ctx, r, full)
}
