package route

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
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
}

// Verdict says whether packets arrive, and whether they may deadlock.
type Verdict struct {
	Policy      string  // what was judged: "static forwarding tables, SL 0"
	Endpoints   string  // between which ports
	Terminals   int     // as many
	Pairs       int64   // of a port and a LID of another
	Unreachable int64   // pairs that must reach each other, and do not
	Excused     int64   // pairs that do not, but need not
	Loops       int64   // pairs whose packets go round in circles
	Acyclic     bool    // no credit loop
	Cycle       []Wait  // a credit loop, if there is one
	Channels    int     // that paths take, counted for each virtual lane
	Waits       int     // edges of the channel dependency graph
	MaxHops     int     // links on the longest path that arrives, those of CAs too
	Hops        []int64 // pairs by the links between them
	// Detours are pairs by how many links more than necessary they take.
	Detours []int64
	Broken  []Broken // examples of pairs that do not reach each other
	Notes   []string
}

// OK: all that must arrive does, and cannot deadlock.
func (v *Verdict) OK() bool { return v.Unreachable == 0 && v.Loops == 0 && v.Acyclic }

// Wait is a step of a credit loop: packets that hold the link out of Port, on
// virtual lane VL, wait for the link of the next step. LID is one of those that
// such packets go to.
type Wait struct {
	Port *fabric.Port
	VL   uint8
	LID  mad.LID
}

// Broken is a pair that does not reach each other.
type Broken struct {
	From *fabric.Port
	LID  mad.LID
	Why  string

	terminal int32
}

// Walk is a credit loop in words, a line a link.
func Walk(cycle []Wait) string {
	var b strings.Builder
	for _, w := range cycle {
		fmt.Fprintf(&b, "%s -> %s, VL %d, to LID %d\n", w.Port.Name(), w.Port.Peer().Name(), w.VL, w.LID)
	}
	return b.String()
}

// Verify follows the packets between all pairs of endpoints.
func (r *Routes) Verify(ctx context.Context, o VerifyOptions) (*Verdict, error) {
	if o.Examples == 0 {
		o.Examples = 10
	}
	if o.With != nil && o.With.graph != r.graph {
		o.With = o.With.On(r.graph)
	}
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

// sum puts together what the workers found.
func (v *verification) sum(r *Routes) *Verdict {
	s := &Verdict{Terminals: v.all}
	graph := newCDG(v.g, v.lanes)
	for i := range v.workers {
		f := &v.workers[i]
		if f.graph == nil {
			continue
		}
		graph.union(f.graph)
		for hops, n := range f.hops {
			s.Hops = grow(s.Hops, hops)
			s.Hops[hops] += n
		}
		for detour, n := range f.detours {
			s.Detours = grow(s.Detours, detour)
			s.Detours[detour] += n
		}
		s.Unreachable += f.lost
		s.Excused += f.excused
		s.Loops += f.loops
		s.Broken = append(s.Broken, f.broken...)
	}
	slices.SortFunc(s.Broken, func(a, b Broken) int { return cmp.Or(cmp.Compare(a.LID, b.LID), cmp.Compare(a.terminal, b.terminal)) })
	s.Broken = s.Broken[:min(len(s.Broken), v.o.Examples)]
	s.MaxHops = max(0, len(s.Hops)-1)
	s.Pairs = s.Unreachable + s.Excused
	for _, n := range s.Hops {
		s.Pairs += n
	}
	s.Channels, s.Waits = graph.size()
	cycle := graph.cycle()
	s.Acyclic = cycle == nil
	for i, at := range cycle {
		c := int(at) / v.lanes
		next := cycle[(i+1)%len(cycle)]
		s.Cycle = append(s.Cycle, Wait{Port: v.g.ChannelPort(c), VL: uint8(int(at) % v.lanes), LID: v.example(r, c, int(next)/v.lanes)})
	}
	s.Endpoints = v.describe()
	s.Notes = append(slices.Clone(v.g.notes), r.Notes...)
	return s
}

// example is the first LID whose packets come through channels c and next, in
// that order, in r or in the tables beside it.
func (v *verification) example(r *Routes, c, next int) mad.LID {
	a, b := v.g.channels[c], v.g.channels[next]
	w := newWalk(v.g)
	for _, t := range []*Routes{r, v.o.With} {
		if t == nil {
			continue
		}
		first, second := t.Row(int(a.From)), t.Row(int(b.From))
		ports := make([]uint8, len(v.g.switches))
		for lid := range v.wanted {
			if !v.wanted[lid] || first[lid] != a.Port || second[lid] != b.Port {
				continue
			}
			for s := range ports {
				ports[s] = t.Row(s)[lid]
			}
			w.begin()
			for _, s := range v.sources {
				w.from(s, ports, v.g.byLID[lid])
			}
			if w.state[a.From] != unknown {
				return mad.LID(lid)
			}
		}
	}
	return 0
}

// describe says which endpoints are assumed.
func (v *verification) describe() string {
	count := map[Class]int{}
	for i, is := range v.ends {
		for c := ClassCN; is && c <= ClassSwitch; c <<= 1 {
			if v.g.terminals[i].Class&c != 0 {
				count[c]++
			}
		}
	}
	var parts []string
	for c := ClassCN; c <= ClassSwitch; c <<= 1 {
		if count[c] > 0 && c != ClassSM {
			parts = append(parts, fmt.Sprintf("%d %s", count[c], c))
		}
	}
	s := fmt.Sprintf("%d ports", v.all)
	if v.o.Endpoints == 0 {
		s = fmt.Sprintf("all %d ports of CAs and routers", v.all)
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}
