package routing

import (
	"context"

	"fabsh/mad"
)

// VerifyOptions say what is judged.
type VerifyOptions struct {
	// Endpoints are the terminals that packets go from and to; 0: all ports
	// of CAs and routers, aggregation nodes among them.
	Endpoints Class
	// Require, if not nil, says which pairs must reach each other. It is asked
	// about pairs that do not, from one goroutine.
	Require func(src, dst *Terminal) bool
	// With are tables that may be in force beside these, while one takes the
	// other's place: credit loops are looked for in the paths of both.
	With *Routes
	// Examples is how many broken pairs are listed; 0: 10.
	Examples int
	// Adaptive is what is known of adaptive routing: where it is on, the verdict
	// is unknown.
	Adaptive Adaptive
}

// Verify follows the packets between all pairs of endpoints.
func (r *Routes) Verify(ctx context.Context, o VerifyOptions) (*Verdict, error) {
	if o.Examples == 0 {
		o.Examples = 10
	}
	o.With = o.With.seenOn(r.graph)
	v := &verification{g: r.graph, o: o, lanes: 1}
	for _, t := range []*Routes{r, o.With} {
		if t != nil && (t.SL != nil || t.SL2VL != nil) {
			v.lanes = 16
		}
	}
	v.choose()
	var err error
	if v.nearest, err = r.graph.linkHops(ctx); err != nil {
		return nil, err
	}
	if err := v.judge(ctx, r, true); err != nil {
		return nil, err
	}
	if o.With != nil {
		if err := v.judge(ctx, o.With, false); err != nil {
			return nil, err
		}
	}
	verdict := v.sum(r)
	verdict.Policy = r.policy(o.With)
	return verdict, context.Cause(ctx)
}

// policy says what is judged.
func (r *Routes) policy(with *Routes) string {
	s := "static forwarding tables, "
	switch {
	case r.SL == nil && r.SL2VL == nil:
		s += "SL 0"
	case r.SL2VL == nil:
		s += "their service levels, all on VL 0"
	default:
		s += "their service levels and virtual lanes"
	}
	if with != nil {
		s += ", and any mixture with the other tables"
	}
	return s
}

// verification is one under way.
type verification struct {
	g       *Graph
	o       VerifyOptions
	lanes   int
	ends    []bool   // by terminal: it is an endpoint
	on      []uint32 // by switch: endpoints on it
	self    []bool   // by switch: it is one of these itself
	sources []int32  // switches with endpoints
	wanted  []bool   // by LID: it is an endpoint's
	all     int      // endpoints
	aside   int      // of these, those on no switch
	nearest *Hops
	workers []verifier
}

// verifier is what a worker finds.
type verifier struct {
	graph   *cdg
	lanes   *laneWalk
	hops    []int64
	detours []int64
	lost    int64
	excused int64
	loops   int64
	broken  []Broken
}

func (v *verification) choose() {
	g := v.g
	v.ends, v.wanted = make([]bool, len(g.terminals)), make([]bool, len(g.byLID))
	v.on, v.self = make([]uint32, len(g.switches)), make([]bool, len(g.switches))
	for i := range g.terminals {
		t := &g.terminals[i]
		if t.Count == 0 || v.o.Endpoints == 0 && t.Class&ClassSwitch != 0 || v.o.Endpoints != 0 && t.Class&v.o.Endpoints == 0 {
			continue
		}
		v.ends[i] = true
		v.all++
		if t.Switch < 0 {
			v.aside++
		} else {
			v.on[t.Switch]++
			v.self[t.Switch] = v.self[t.Switch] || t.Out == 0
		}
		for j := range t.Count {
			v.wanted[int(t.LID)+j] = true
		}
	}
	for s, n := range v.on {
		if n > 0 {
			v.sources = append(v.sources, int32(s))
		}
	}
}

// judge follows the packets of one Routes; whole: not only for credit loops.
func (v *verification) judge(ctx context.Context, r *Routes, whole bool) error {
	if v.workers == nil {
		v.workers = make([]verifier, v.g.workers)
	}
	if whole && v.o.Require != nil {
		alone := *v.g // the predicate is asked from one goroutine
		alone.workers = 1
		one := *r
		one.graph, r = &alone, &one
	}
	return r.eachDest(ctx, v.wanted, func(worker int, w *walk, lid mad.LID) {
		f := &v.workers[worker]
		if f.graph == nil {
			f.graph = newCDG(v.g, v.lanes)
		}
		if v.lanes > 1 {
			v.followLanes(f, r, w, lid, whole)
			return
		}
		v.follow(f, w, lid)
		if whole {
			v.tally(f, r, w, lid)
		}
	})
}

// follow walks to lid from all sources, and notes what waits for what.
func (v *verification) follow(f *verifier, w *walk, lid mad.LID) {
	t := v.g.byLID[lid]
	ports := w.column(lid)
	for _, s := range v.sources {
		w.from(s, ports, t)
	}
	for _, s := range w.order {
		c := w.via[s]
		if c < 0 {
			continue
		}
		f.graph.use(c)
		if next := w.via[v.g.chanTo[c]]; next >= 0 {
			f.graph.add(c, next)
		}
	}
}

// tally counts the pairs that a walk has followed.
func (v *verification) tally(f *verifier, r *Routes, w *walk, lid mad.LID) {
	dst := &v.g.terminals[v.g.byLID[lid]]
	for _, s := range v.sources {
		n := int64(v.on[s])
		if int(s) == dst.Switch {
			n-- // itself
		}
		if n == 0 {
			continue
		}
		state := int(w.state[s])
		if state < 0 {
			v.fail(f, r, s, lid, n, state == looping)
			continue
		}
		detour := v.detour(int(s), dst.Switch, state)
		last := min(1, int(dst.Out)) // the link to a CA
		if v.self[s] && (int(s) != dst.Switch || dst.Out > 0) {
			f.arrive(1, state+last, detour)
			n--
		}
		if n > 0 {
			f.arrive(n, 1+state+last, detour)
		}
	}
	if v.aside > 0 {
		v.failAside(f, lid)
	}
}

// detour is how many links more than necessary a path has.
func (v *verification) detour(s, home, links int) int {
	if home < 0 {
		return 0
	}
	return max(0, links-v.nearest.Distance(s, home))
}

func (f *verifier) arrive(pairs int64, hops, detour int) {
	f.hops = grow(f.hops, hops)
	f.hops[hops] += pairs
	f.detours = grow(f.detours, detour)
	f.detours[detour] += pairs
}

func grow(list []int64, i int) []int64 {
	for len(list) <= i {
		list = append(list, 0)
	}
	return list
}

// fail counts n pairs, from switch s to lid, that do not reach each other.
func (v *verification) fail(f *verifier, r *Routes, s int32, lid mad.LID, n int64, loop bool) {
	if loop {
		f.loops += n
	}
	if v.o.Require == nil && len(f.broken) >= v.o.Examples {
		f.lost += n
		return
	}
	dst := v.g.byLID[lid]
	for _, d := range v.g.destsOf(int(s)) {
		src := &v.g.terminals[d.terminal]
		if v.ends[d.terminal] && d.terminal != dst && d.lid == src.LID {
			v.failPair(f, r, d.terminal, lid)
		}
	}
}

// failAside counts the pairs of endpoints that are on no switch.
func (v *verification) failAside(f *verifier, lid mad.LID) {
	for i := range v.g.terminals {
		if v.ends[i] && v.g.terminals[i].Switch < 0 && int32(i) != v.g.byLID[lid] {
			v.failPair(f, nil, int32(i), lid)
		}
	}
}

func (v *verification) failPair(f *verifier, r *Routes, src int32, lid mad.LID) {
	from := &v.g.terminals[src]
	if v.o.Require != nil && !v.o.Require(from, &v.g.terminals[v.g.byLID[lid]]) {
		f.excused++
		return
	}
	f.lost++
	if len(f.broken) >= v.o.Examples {
		return
	}
	b := Broken{From: from.Port, LID: lid, Why: from.Port.Label() + " is on no switch", terminal: src}
	if r != nil {
		if p, err := r.Trace(from.LID, lid); err == nil {
			b.Why = p.Broken
		}
	}
	f.broken = append(f.broken, b)
}
