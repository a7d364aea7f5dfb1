// Package verify judges forwarding tables: do all packets arrive, and can none deadlock?
//
//	verify.go       Tables: the verdict on tables
//	verdict.go      Verdict, Report: the answers
//	vlwalk.go       paths with service levels, on virtual lanes
//	adaptive.go     all paths that adaptive routing may choose, where its choices are unknown
//	choiceset.go    the same, by the choices that tables have
//	group.go        port groups of switches that route adaptively
//	shortgroup.go   groups with fewer ports than similar ones
//	via.go          rules on what paths cross
//	disjointness.go how disjoint the paths to the LIDs of one port are
//	failure.go      what the failure of each link would break; failurechoice.go, by choices
//
// The functions use all cores (graph.BuildOptions.Workers), and may run at the same time on the
// same tables, which must not change meanwhile. Verdicts belong to the caller. Package
// graph explains the letters of times.
package verify

import (
	"cmp"
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Options choose what Verify checks.
type Options struct {
	// Endpoints are the terminals between which packets go; 0: all ports of
	// CAs and routers, aggregation nodes included.
	Endpoints graph.Class
	// Require, if not nil, reports whether src must reach dst. It is called only
	// about pairs that are unreachable, from one goroutine.
	Require func(src, dst *graph.Terminal) bool
	// Union are tables that may be in force beside these, while one replaces
	// the other: the channel dependency graph is the union of both.
	Union *routes.Routes
	// Via are rules on what paths cross. They are about these tables alone.
	Via []ViaRule
	// Examples is the number of unreachable pairs that are listed, and of paths
	// that break a rule; 0: 10.
	Examples int
	// Adaptive is what is known of adaptive routing: where it is on, the verdict
	// is unknown, unless it has the ports among which switches choose: then credit loops
	// are searched under any choice. AdaptiveUndetermined: what the tables have on it.
	Adaptive Adaptive
}

// Tables follows the packets between all pairs of endpoints, and looks for a cycle
// in the channel dependency graph of their paths (see DependencyGraph).
//
// Time: O(L*S) for the paths, or O(L*(T + C*V)) where service levels and virtual
// lanes matter, T terminals and V lanes; and O(C*V + E) for the cycle, E edges.
func Tables(ctx context.Context, r *routes.Routes, o Options) (*Verdict, error) {
	if o.Examples == 0 {
		o.Examples = 10
	}
	o.Union = o.Union.SeenOn(r.Graph())
	v := &verification{Endpoints: SelectEndpoints(r.Graph(), o.Endpoints), g: r.Graph(), o: o, vls: 1}
	for _, t := range []*routes.Routes{r, o.Union} {
		if t != nil {
			v.vls, v.inLanes = max(v.vls, t.Lanes()), v.inLanes || t.SL2VL != nil
		}
	}
	if o.Adaptive == AdaptiveUndetermined {
		v.prepareChoices(r)
		v.o.Adaptive, v.reason = AdaptiveOf(r)
	}
	var err error
	if v.nearest, err = graph.LinkHops(ctx, r.Graph()); err != nil {
		return nil, err
	}
	if err := v.followAll(ctx, r, true); err != nil {
		return nil, err
	}
	if err := v.followToSwitches(ctx, r); err != nil {
		return nil, err
	}
	if o.Union != nil {
		own := v.sets
		v.sets = v.unionSets
		if err := v.followAll(ctx, o.Union, false); err != nil {
			return nil, err
		}
		v.sets = own
	}
	if o.Adaptive.Among() != "" {
		if v.choices, err = v.newChoices(ctx, r); err != nil {
			return nil, err
		}
		if v.chosen, err = v.choices.graph(ctx, r); err != nil {
			return nil, err
		}
	}
	verdict := v.verdict(r)
	verdict.Judged = v.judged(r)
	if verdict.Disjoint, err = measureDisjointness(ctx, r, v.Endpoints); err != nil {
		return nil, err
	}
	if v.sets != nil && verdict.Disjoint != nil {
		verdict.Notes = append(verdict.Notes, "paths to several LIDs were compared on the static ports alone")
	}
	if verdict.Violations, verdict.Violating, err = checkVia(ctx, r, o.Via, o.Examples); err != nil {
		return nil, err
	}
	return verdict, context.Cause(ctx)
}

// judged describes what a verdict on r is about.
func (v *verification) judged(r *routes.Routes) string {
	o := &v.o
	s := "static forwarding tables, "
	switch {
	case v.sets != nil:
		s = "forwarding tables with all choices of adaptive routing, " + v.sets.judgedLevels(r)
	case r.SL == nil && r.SL2VL == nil:
		s += "SL 0"
	case r.SL2VL == nil:
		s += "their service levels, all on VL 0"
	default:
		s += "their service levels and virtual lanes"
	}
	if among := o.Adaptive.Among(); among != "" {
		s += ", and any choice among " + among
	}
	if o.Union != nil {
		s += ", and any mixture with the other tables"
	}
	return s
}

// verification is the state of Tables.
type verification struct {
	*Endpoints
	g         *graph.Graph
	o         Options
	vls       int         // virtual lanes
	inLanes   bool        // it matters which are used
	nearest   *graph.Hops // distances in links
	workers   []findings
	sets      *choiceSets      // of the tables; nil: they are static
	unionSets *choiceSets      // of Options.Union
	reason    string           // why adaptive routing is unknown or mixed
	choices   *choices         // of adaptive routing; nil: the tables alone
	chosen    *DependencyGraph // what packets may wait for under these
}

// findings are those of a worker; for most fields see Verdict.
type findings struct {
	graph       *DependencyGraph
	walk        *vlWalk
	levels      []uint16   // of followDirect
	edges       *laneEdges // the same
	hops        []int64
	detours     []int64
	unreachable int64
	excused     int64
	loops       int64
	switchPairs int64
	toSwitches  int64
	broken      []BrokenPair
}

// followAll follows all packets under r, for their dependencies and, if whole, for
// the other findings too.
func (v *verification) followAll(ctx context.Context, r *routes.Routes, whole bool) error {
	if v.workers == nil {
		v.workers = make([]findings, v.g.Workers())
	}
	workers := v.g.Workers()
	if v.sets != nil {
		if err := v.sets.follow(ctx, r); err != nil {
			return err
		}
	}
	if whole && v.o.Require != nil {
		workers = 1 // the predicate is called from one goroutine
	}
	var groups []vlGroup
	direct := false
	if v.inLanes {
		groups, direct = v.vlGroups(r), r.SL2VL.Direct()
	}
	err := EachDest(ctx, r, workers, v.Wanted, func(worker int, w *Walk, lid mad.LID) {
		f := &v.workers[worker]
		if f.graph == nil {
			f.graph = NewDependencyGraph(v.g, v.vls)
		}
		switch {
		case !v.inLanes:
			v.follow(f, w, lid)
		case v.sets != nil || !direct || !v.followDirect(f, r, groups, w, lid):
			v.followVLs(f, r, groups, w, lid, whole)
			return
		}
		if whole {
			v.countPairs(f, r, w, lid)
		}
	})
	for i := range v.workers {
		if f := &v.workers[i]; f.edges != nil {
			f.edges.addTo(f.graph)
			f.edges, f.levels = nil, nil
		}
	}
	return err
}

// follow walks to lid from all sources, and adds the dependencies of these paths.
func (v *verification) follow(f *findings, w *Walk, lid mad.LID) {
	t := int32(v.g.TerminalByLID(lid))
	ports := w.Column(lid)
	if v.sets != nil && v.sets.rows == 0 {
		return
	}
	for _, s := range v.Sources {
		w.From(s, ports, t)
	}
	w.AddDependencies(f.graph)
}

// countPairs counts the pairs of a walk to lid.
func (v *verification) countPairs(f *findings, r *routes.Routes, w *Walk, lid mad.LID) {
	dst := &v.g.Terminals()[v.g.TerminalByLID(lid)]
	for _, s := range v.Sources {
		n := int64(v.On[s])
		if int(s) == dst.Switch {
			n-- // itself
		}
		if n == 0 {
			continue
		}
		state := int(w.State[s])
		if v.sets != nil {
			state = int(v.sets.withRows(r, s, lid, w.State[s]))
		}
		if state < 0 {
			v.fail(f, r, s, lid, n, state == Looping)
			continue
		}
		detour := v.detour(int(s), dst.Switch, state)
		last := min(1, int(dst.Out)) // the link to a CA
		if v.Self[s] && (int(s) != dst.Switch || dst.Out > 0) {
			f.addPairs(1, state+last, detour)
			n--
		}
		if n > 0 {
			f.addPairs(n, 1+state+last, detour)
		}
	}
	if v.Detached > 0 {
		v.failDetached(f, lid)
	}
}

// followToSwitches counts the pairs of an endpoint and a LID of a switch that is no
// endpoint itself, and how many arrive, whatever their virtual lane.
func (v *verification) followToSwitches(ctx context.Context, r *routes.Routes) error {
	ofSwitch := make([]bool, len(v.Wanted))
	for _, d := range v.g.Dests() {
		ofSwitch[d.LID] = d.Out == 0 && !v.Wanted[d.LID]
	}
	return EachDest(ctx, r, v.g.Workers(), ofSwitch, func(worker int, w *Walk, lid mad.LID) {
		f, ports := &v.workers[worker], w.Column(lid)
		for _, s := range v.Sources {
			w.From(s, ports, int32(v.g.TerminalByLID(lid)))
			f.switchPairs += int64(v.On[s])
			if w.State[s] >= 0 {
				f.toSwitches += int64(v.On[s])
			}
		}
	})
}

// detour is how many links a path has in excess of the distance.
func (v *verification) detour(s, home, links int) int {
	if home < 0 {
		return 0
	}
	return max(0, links-v.nearest.Distance(s, home))
}

// addPairs counts pairs that reach each other.
func (f *findings) addPairs(pairs int64, hops, detour int) {
	f.hops = grow(f.hops, hops)
	f.hops[hops] += pairs
	f.detours = grow(f.detours, detour)
	f.detours[detour] += pairs
}

// grow makes i an index of list.
func grow(list []int64, i int) []int64 {
	for len(list) <= i {
		list = append(list, 0)
	}
	return list
}

// fail counts n unreachable pairs, from switch s to lid.
func (v *verification) fail(f *findings, r *routes.Routes, s int32, lid mad.LID, n int64, loop bool) {
	if loop {
		f.loops += n
	}
	if v.o.Require == nil && len(f.broken) >= v.o.Examples {
		f.unreachable += n
		return
	}
	dst := int32(v.g.TerminalByLID(lid))
	for _, d := range v.g.DestsOf(int(s)) {
		src := &v.g.Terminals()[d.Terminal]
		if v.Is[d.Terminal] && d.Terminal != dst && d.LID == src.LID {
			v.failPair(f, r, d.Terminal, lid)
		}
	}
}

// failDetached counts the pairs from endpoints that are on no switch.
func (v *verification) failDetached(f *findings, lid mad.LID) {
	for i := range v.g.Terminals() {
		if v.Is[i] && v.g.Terminals()[i].Switch < 0 && int32(i) != int32(v.g.TerminalByLID(lid)) {
			v.failPair(f, nil, int32(i), lid)
		}
	}
}

// failPair counts an unreachable pair, unless it is excused.
func (v *verification) failPair(f *findings, r *routes.Routes, src int32, lid mad.LID) {
	from := &v.g.Terminals()[src]
	if v.o.Require != nil && !v.o.Require(from, &v.g.Terminals()[v.g.TerminalByLID(lid)]) {
		f.excused++
		return
	}
	f.unreachable++
	if len(f.broken) >= v.o.Examples {
		return
	}
	b := BrokenPair{From: from.Port, LID: lid, Why: from.Port.Label() + " is on no switch", terminal: src}
	if r != nil {
		if p, err := r.Trace(from.LID, lid); err == nil {
			b.Why = p.Broken
		}
		if v.sets != nil {
			b.Why = cmp.Or(v.sets.explain(r, src, lid), b.Why)
		}
	}
	f.broken = append(f.broken, b)
}
