// Package verify judges forwarding tables: do all packets arrive, and can none deadlock?
//
// Tables follows the packets between Endpoints, and returns a Verdict: which pairs do not
// arrive, and whether the DependencyGraph of the paths, of which links packets may hold while
// they wait for which others, has a cycle, a credit loop. Where switches route adaptively, it
// follows all choices that the tables have; PacketKinds and ChoiceClasses determine for which packets
// these are equal. FailEachLink judges failures, Groups and ShortGroups the port groups of
// switches that route adaptively.
//
// Engines, repair and traffic count the paths themselves: a Walk has all paths to one LID,
// Siblings the paths to the LIDs of one port, and a DependencyOrder finds the edges that would
// close a cycle.
//
// The functions use all cores (graph.BuildOptions.Workers), and may run concurrently on shared
// tables, which must not change meanwhile. Verdicts belong to the caller. Endpoints and a
// DependencyGraph are safe for concurrent reading. A Walk, Siblings and a DependencyOrder belong
// to one goroutine; EachDest gives each worker a Walk of its own. Package graph explains the
// letters of times.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Options choose what Tables checks.
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
	v := &verification{Endpoints: SelectEndpoints(r.Graph(), o.Endpoints), g: r.Graph(), o: o, vls: 1, parts: partsOfSwitches(r.Graph())}
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
	v.used = v.lanesUsed()
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
		if v.choices, err = v.assumeChoices(ctx, r); err != nil {
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

// Verdict is the result of Tables: whether packets arrive, and whether they may
// deadlock.
type Verdict struct {
	Engine       string // what made the tables; "": unknown
	Adaptive     Adaptive
	Reason       string // why Adaptive is mixed or unknown
	Judged       string // what was judged: "static forwarding tables, SL 0"
	Endpoints    string // between which ports
	Terminals    int    // as many
	Counts       EndpointCounts
	Pairs        int64          // of an endpoint and a LID of another
	Unreachable  int64          // pairs that must reach each other, and do not
	Excused      int64          // unreachable pairs that need not reach each other
	Loops        int64          // pairs whose packets loop for ever
	Unjudged     int64          // pairs whose packets come to a switch of NoTable
	NoTable      []string       // switches whose table the file does not have
	SwitchPairs  int64          // of an endpoint and a LID of a switch, which is not an endpoint
	ToSwitches   int64          // of these, pairs whose packets arrive: management packets
	LeftOut      []string       // ports that have no LID, or share one, and so are not judged
	Acyclic      bool           // no credit loop exists
	LoopUnknown  string         // why credit loops are not judged, as if Acyclic were unknown; "": they are
	Lanes        int            // how many virtual lanes paths use
	Cycle        []CycleChannel // a credit loop, if there is one
	Channels     int            // that paths take, once for each virtual lane
	Dependencies int            // edges of the channel dependency graph
	MaxHops      int            // links of the longest path that arrives, links of CAs included
	Hops         []int64        // number of pairs, by the links of the path
	// Detours are numbers of pairs, by the links in excess of a shortest path.
	Detours []int64
	// Disjoint describes how far apart the paths to the LIDs of one port are; nil: no
	// endpoint has several.
	Disjoint *Disjointness
	Broken   []BrokenPair // examples of pairs that do not reach each other, though they are connected
	// Apart are the unreachable pairs in different parts of a split network, of which Parts are
	// those with endpoints, the largest first; nil: all are in one.
	Apart int64
	Parts []SplitPart
	// Violations are pairs whose paths break a rule of Options.Via, and
	// Violating examples.
	Violations int64
	Violating  []Violation
	Notes      []string
}

// OK reports whether all packets that must arrive do, and none can deadlock. Where
// switches route adaptively that is unknown, and so not OK; where ports were left out,
// or there is no pair at all, it is not OK either. Packets to switches do not count:
// the tables of most engines have gaps there where links are missing.
func (v *Verdict) OK() bool {
	return v.Pairs > 0 && len(v.LeftOut) == 0 && v.Unjudged == 0 && v.Unreachable == 0 && v.Loops == 0 && v.Violations == 0 && v.Acyclic && v.Adaptive != AdaptiveUnknown
}

// UnreachableSwitches is the number of pairs of an endpoint and a LID of a switch whose packets do
// not arrive.
func (v *Verdict) UnreachableSwitches() int64 { return v.SwitchPairs - v.ToSwitches }

// Wrong reports whether packets that must arrive do not, or a rule is broken, or packets
// may deadlock: what is not OK may also be unknown.
func (v *Verdict) Wrong() bool {
	return v.Unreachable > 0 || v.Loops > 0 || v.Violations > 0 || !v.Acyclic && v.LoopUnknown == ""
}

// EndpointCounts are the endpoints by what their nodes are, and by class.
type EndpointCounts struct {
	CAs, Routers, Switches int
	Classes                map[graph.Class]int
}

// CycleChannel is a channel of a credit loop: packets on the link out of Port, on
// virtual lane VL, may wait for the next channel of the loop. LID is a destination
// of such packets.
type CycleChannel struct {
	Port *fabric.Port
	VL   uint8
	LID  mad.LID
}

// BrokenPair is an unreachable pair.
type BrokenPair struct {
	From *fabric.Port
	LID  mad.LID
	Why  string // where the path ends, and why

	terminal int32
}

// FormatCycle is a credit loop as text, a line for each link.
func FormatCycle(cycle []CycleChannel) string {
	var b strings.Builder
	for _, w := range cycle {
		fmt.Fprintf(&b, "%s -> %s, VL %d, to LID %d\n", w.Port.Name(), w.Port.Peer().Name(), w.VL, w.LID)
	}
	return b.String()
}

// Report is the results about tables. What was not requested is nil.
type Report struct {
	Routes   *routes.Routes
	Verdict  *Verdict
	Diff     *routes.Diff // from the tables that the switches have
	Failures []LinkFailure
}

// Sound reports that nothing speaks against the tables: the verdict is OK, or there
// is no verdict.
func (r *Report) Sound() bool { return r.Verdict == nil || r.Verdict.OK() }

// Clean reports that there is no finding: the tables are sound, and no single link
// cuts the network. A difference is not a finding.
func (r *Report) Clean() bool {
	return r.Sound() && !slices.ContainsFunc(r.Failures, func(f LinkFailure) bool { return f.Cuts })
}

// judged describes what a verdict on r is about.
func (v *verification) judged(r *routes.Routes) string {
	o := &v.o
	s := "static forwarding tables, "
	switch {
	case v.sets != nil && !hasChoice(r):
		s = "forwarding tables with adaptive routing on and no choice of ports, " + v.sets.judgedLevels(r)
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
	used      int         // how many paths use
	nearest   *graph.Hops // distances in links
	workers   []findings
	sets      *choiceSets      // of the tables; nil: they are static
	unionSets *choiceSets      // of Options.Union
	parts     []int32          // by switch: its part of a split network; nil: all are in one
	reason    string           // why adaptive routing is unknown or mixed
	choices   *assumedChoices  // of adaptive routing; nil: the tables alone
	chosen    *DependencyGraph // what packets may wait for under choices
}

// findings are the findings of a worker; for most fields see Verdict.
type findings struct {
	graph       *DependencyGraph
	walk        *vlWalk
	levels      []uint16   // of followDirect
	edges       *laneEdges // of followDirect
	hops        []int64
	detours     []int64
	unreachable int64
	apart       int64
	excused     int64
	loops       int64
	unjudged    int64
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

// lanesUsed counts the virtual lanes that the paths followed so far use.
func (v *verification) lanesUsed() int {
	lanes := uint16(0)
	for i := range v.workers {
		if d := v.workers[i].graph; d != nil {
			lanes |= d.lanes
		}
	}
	return max(1, bits.OnesCount16(lanes))
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
			if w.State[s] < 0 && r.EndsUnread(s, lid) {
				continue
			}
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
	if r.EndsUnread(s, lid) {
		f.unjudged += n
		return
	}
	if loop {
		f.loops += n
	}
	dst := int32(v.g.TerminalByLID(lid))
	if v.o.Require == nil && !loop && v.apart(int(s), v.g.Terminals()[dst].Switch) {
		f.unreachable += n
		f.apart += n
		return
	}
	if v.o.Require == nil && len(f.broken) >= v.o.Examples {
		f.unreachable += n
		return
	}
	for _, d := range v.g.DestsOf(int(s)) {
		src := &v.g.Terminals()[d.Terminal]
		if v.Is[d.Terminal] && d.Terminal != dst && d.LID == src.LID {
			v.failPair(f, r, d.Terminal, lid, loop)
		}
	}
}

// failDetached counts the pairs from endpoints that are on no switch.
func (v *verification) failDetached(f *findings, lid mad.LID) {
	for i := range v.g.Terminals() {
		if v.Is[i] && v.g.Terminals()[i].Switch < 0 && int32(i) != int32(v.g.TerminalByLID(lid)) {
			v.failPair(f, nil, int32(i), lid, false)
		}
	}
}

// failPair counts an unreachable pair, unless it is excused.
func (v *verification) failPair(f *findings, r *routes.Routes, src int32, lid mad.LID, loop bool) {
	from := &v.g.Terminals()[src]
	if v.o.Require != nil && !v.o.Require(from, &v.g.Terminals()[v.g.TerminalByLID(lid)]) {
		f.excused++
		return
	}
	f.unreachable++
	if !loop && v.apart(from.Switch, v.g.Terminals()[v.g.TerminalByLID(lid)].Switch) {
		f.apart++
		return
	}
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

// verdict puts the findings of all workers together.
func (v *verification) verdict(r *routes.Routes) *Verdict {
	s := &Verdict{Engine: r.Engine, Lanes: v.used, Adaptive: v.o.Adaptive, Reason: v.reason, Terminals: v.All}
	if v.o.Adaptive == AdaptiveOn && v.sets == nil { // the caller knows, the tables do not
		s.Adaptive = AdaptiveUnknown
	}
	graph := NewDependencyGraph(v.g, v.vls)
	for i := range v.workers {
		f := &v.workers[i]
		s.SwitchPairs += f.switchPairs
		s.ToSwitches += f.toSwitches
		if f.graph == nil { // no LID of an endpoint was its
			continue
		}
		graph.Union(f.graph)
		for hops, n := range f.hops {
			s.Hops = grow(s.Hops, hops)
			s.Hops[hops] += n
		}
		for detour, n := range f.detours {
			s.Detours = grow(s.Detours, detour)
			s.Detours[detour] += n
		}
		s.Unreachable += f.unreachable
		s.Apart += f.apart
		s.Excused += f.excused
		s.Loops += f.loops
		s.Unjudged += f.unjudged
		s.Broken = append(s.Broken, f.broken...)
	}
	slices.SortFunc(s.Broken, func(a, b BrokenPair) int {
		return cmp.Or(cmp.Compare(a.LID, b.LID), cmp.Compare(a.terminal, b.terminal))
	})
	s.Broken = s.Broken[:min(len(s.Broken), v.o.Examples)]
	s.MaxHops = max(0, len(s.Hops)-1)
	s.Pairs = s.Unreachable + s.Excused + s.Unjudged
	for i, unread := range r.Unread {
		if unread {
			s.NoTable = append(s.NoTable, v.g.Switches()[i].Label())
		}
	}
	for _, n := range s.Hops {
		s.Pairs += n
	}
	if v.chosen != nil {
		v.judgeChoices(s, r)
	} else {
		v.judgeCycle(s, r, graph)
	}
	s.Counts = v.countEndpoints()
	s.Endpoints = v.describeEndpoints(s.Counts.Classes)
	s.Notes = slices.Concat(r.ReadNotes, v.g.Notes(), r.Notes)
	switch {
	case r.Engine == routes.FromSwitches: // the subnet manager set them
	case r.SL.Any():
		s.Notes = append(s.Notes, "paths have service levels that OpenSM's engine file does not set: with it this is analysis only; "+r.RunInstead())
	case r.ChangesLanes():
		s.Notes = append(s.Notes, "paths change to virtual lanes that OpenSM's engine file does not set: with it this is analysis only; "+r.RunInstead())
	}
	s.LeftOut = v.g.LeftOut()
	if s.Apart > 0 {
		s.Parts = v.splitParts(r)
	}
	switch {
	case v.All == 0:
		s.Notes = append(s.Notes, "no endpoint: nothing was judged")
	case s.Pairs == 0:
		s.Notes = append(s.Notes, "no pair of endpoints: nothing was judged")
	}
	if note := s.Adaptive.note(); note != "" {
		if s.Reason != "" {
			note = "adaptive routing is unknown, and so is the verdict: " + s.Reason
		}
		s.Notes = append(s.Notes, note)
	}
	if s.Adaptive == AdaptiveMixed {
		s.Notes = append(s.Notes, "adaptive routing is mixed: "+s.Reason)
	}
	return s
}

// judgeCycle looks for a credit loop in graph.
func (v *verification) judgeCycle(s *Verdict, r *routes.Routes, graph *DependencyGraph) {
	s.Channels, s.Dependencies = graph.Size()
	cycle := graph.Cycle()
	s.Acyclic = cycle == nil
	for i, at := range cycle {
		c := int(at) / v.vls
		next := cycle[(i+1)%len(cycle)]
		s.Cycle = append(s.Cycle, CycleChannel{Port: v.g.ChannelPort(c), VL: uint8(int(at) % v.vls), LID: v.example(r, c, int(next)/v.vls)})
		if last := &s.Cycle[i]; v.sets != nil {
			last.LID = cmp.Or(last.LID, v.sets.example(r, at, next))
		}
	}
}

// example is the first LID whose packets take channel c and then channel next, in r
// or in the tables of Union.
func (v *verification) example(r *routes.Routes, c, next int) mad.LID {
	a, b := v.g.Channels()[c], v.g.Channels()[next]
	w := NewWalk(v.g)
	for _, t := range []*routes.Routes{r, v.o.Union} {
		if t == nil {
			continue
		}
		first, second := t.Row(int(a.From)), t.Row(int(b.From))
		ports := make([]uint8, len(v.g.Switches()))
		for lid := range v.Wanted {
			if !v.Wanted[lid] || first[lid] != a.Port || second[lid] != b.Port {
				continue
			}
			for s := range ports {
				ports[s] = t.Row(s)[lid]
			}
			w.Begin()
			for _, s := range v.Sources {
				w.From(s, ports, int32(v.g.TerminalByLID(mad.LID(lid))))
			}
			if w.State[a.From] != Unknown {
				return mad.LID(lid)
			}
		}
	}
	return 0
}

// countEndpoints counts the endpoints between which packets were followed.
func (v *verification) countEndpoints() EndpointCounts {
	n := EndpointCounts{Classes: map[graph.Class]int{}}
	for i, is := range v.Is {
		if !is {
			continue
		}
		t := &v.g.Terminals()[i]
		switch t.Port.Node().Type() {
		case mad.NodeTypeSwitch:
			n.Switches++
		case mad.NodeTypeRouter:
			n.Routers++
		default:
			n.CAs++
		}
		for c := graph.ClassCN; c <= graph.ClassSwitch; c <<= 1 {
			if t.Class&c != 0 {
				n.Classes[c]++
			}
		}
	}
	return n
}

// describeEndpoints describes between which endpoints packets were followed.
func (v *verification) describeEndpoints(count map[graph.Class]int) string {
	var parts []string
	for c := graph.ClassCN; c <= graph.ClassSwitch; c <<= 1 {
		if count[c] > 0 && c != graph.ClassSM {
			parts = append(parts, fmt.Sprintf("%d %s", count[c], c))
		}
	}
	s := plural.Count(v.All, "port", "ports")
	if v.o.Endpoints == 0 {
		s = "all " + s + " of CAs and routers"
		if v.All == 1 {
			s = "the only port of CAs and routers"
		}
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}
