package engines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/search"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// AssignOptions say how Assign chooses.
type AssignOptions struct {
	Policy string // "": LeastLoaded
	Scope  string // "": Global
	Seed   uint64 // of the random choices

	// LIDs are the LIDs to assign; nil: all. The entries of others stay.
	LIDs []mad.LID
	// Weight is how much a LID counts as load; nil: 1 for LIDs of CAs and routers, 0 for
	// LIDs of switches.
	Weight func(mad.LID) int
	// Keep are tables whose entries stay where they are still next hops.
	Keep *routes.Routes
	// Prefer, if not nil, reorders the ports of switch s to switch d, and may
	// leave some out. It is called from one goroutine, in order: once for each pair of
	// switches, with LID 0, or with PerLID for each LID on d.
	Prefer func(s, d int, lid mad.LID, ports []uint8) []uint8
	PerLID bool

	// Number is the number of a LID for DModK; nil: Numbering.
	Number func(mad.LID) int
	// Divider is, for DModK, the weight of the digit by which switch s chooses;
	// nil: the weight in a fat tree of levels.
	Divider func(s int) int

	levels  *graph.Levels    // nil: the distances from the CAs
	aligned bool             // the numbers of each leaf begin with the first digit
	next    []graph.NextHops // by switch: of the distances; nil: not found yet
}

// Assign gives each LID, on each switch, one of the next hops that h allows. A LID
// without a next hop is dropped. The paths to the LIDs of one port (LMC) share as little
// as possible, where the options leave the choice to Assign, and of these the ones with
// less load are taken, unless there are weights, or the policy or the scope is another.
//
// Time: O(S*C*log P) for the next hops of switches with P ports, and O(S*L) for the
// choice. With Global scope and a policy by load, in addition O(D*S*S) to go through
// the destinations in the order of their distance.
func Assign(ctx context.Context, r *routes.Routes, h *graph.Hops, o AssignOptions) error {
	r.ForgetOrigin()
	_, err := assign(ctx, r, h, o)
	return err
}

// Policies, by name: how Assign chooses among the next hops of a LID.
const (
	LeastLoaded = "least_loaded" // the port with the fewest LIDs so far
	Scatter     = "scatter"      // a port with the fewest LIDs so far, at random
	RoundRobin  = "round_robin"  // one port after the other
	DModK       = "dmodk"        // by a digit of the destination's number
	Hash        = "hash"         // a hash of seed, switch and LID
	First       = "first"        // the neighbour of the lowest port; its parallel links by LID
)

// PolicyDoc and ScopeDoc are the help of policies and scopes as parameters.
const (
	PolicyDoc = `how to choose among the next hops: "least_loaded", "scatter" (the same, equal ones at random), "round_robin", "dmodk", "hash", "first"`
	ScopeDoc  = `what counts as load: "global", the LIDs of packets that pass through the switch; "switch", all LIDs, as in OpenSM's minhop`
)

// policies are all policies.
func policies() []string { return []string{LeastLoaded, Scatter, RoundRobin, DModK, Hash, First} }

// Scopes: which LIDs count as load of a switch's ports.
const (
	// Global counts a LID if packets for it from some CA or router pass through
	// the switch. So it depends on what the switches farther away have chosen.
	Global = "global"
	// PerSwitch counts all LIDs, as OpenSM's minhop does.
	PerSwitch = "switch"
)

// scopes are all scopes.
func scopes() []string { return []string{Global, PerSwitch} }

// assign is Assign, and returns its state at the end.
func assign(ctx context.Context, r *routes.Routes, h *graph.Hops, o AssignOptions) (*assigner, error) {
	a, err := newAssigner(r, h, o)
	if err != nil {
		return nil, err
	}
	return a, a.run(ctx)
}

// run fills in the tables.
func (a *assigner) run(ctx context.Context) error {
	a.routes.CopyShared()
	g := a.routes.Graph()
	if a.next == nil {
		a.next = make([]graph.NextHops, len(g.Switches()))
		load := func(_, s int) { a.next[s].Load(a.h, s) }
		if err := graph.Each(ctx, g.Workers(), len(g.Switches()), load); err != nil {
			return err
		}
	}
	// Far switches first: what they choose decides which packets pass through the
	// near ones.
	steps := 0
	if a.transit != nil {
		steps = a.h.Max()
	}
	workers := g.Workers()
	if a.Prefer != nil {
		workers = 1
	}
	for step := steps; step >= 0; step-- {
		err := graph.Each(ctx, workers, len(g.Switches()), func(worker, s int) { a.fill(&a.workers[worker], s, step) })
		if err = cmp.Or(err, a.err); err != nil {
			return err
		}
	}
	if a.separates() {
		return a.separate(ctx)
	}
	return nil
}

// assigner is the state of an Assign.
type assigner struct {
	AssignOptions
	routes  *routes.Routes
	h       *graph.Hops
	workers []assignWorker
	err     error // of Prefer
	keep    *routes.Routes
	wanted  []bool  // by index in dests; nil: all
	weight  []int32 // by index in dests
	digits  *Digits // of DModK
	loads   []int32 // by portBase of the switch and port; where rates differ, times costs
	costs   []int32 // of a LID, likewise; nil: 1
	turn    []int   // of RoundRobin, by switch

	endpoints []int64 // ports of CAs and routers, by switch
	// transit has a bit for each switch and index in dests: packets for that LID
	// pass through the switch. Nil: all do.
	transit []uint64
	words   int // of transit, for each switch
}

// assignWorker is the memory of a worker.
type assignWorker struct {
	lists   graph.PortLists
	allowed [256]bool // of Keep, by port: it is a next hop
	last    []uint8   // the ports for which allowed is true
	kept    []bool    // of Keep, by dest of a switch
}

func newAssigner(r *routes.Routes, h *graph.Hops, o AssignOptions) (*assigner, error) {
	g := r.Graph()
	a := &assigner{AssignOptions: o, routes: r, h: h, workers: make([]assignWorker, g.Workers())}
	if a.Policy == "" {
		a.Policy = LeastLoaded
	}
	if a.Scope == "" {
		a.Scope = Global
	}
	if !slices.Contains(policies(), a.Policy) {
		return nil, fmt.Errorf("assign: unknown policy %q; supported: %s", a.Policy, strings.Join(policies(), ", "))
	}
	if !slices.Contains(scopes(), a.Scope) {
		return nil, fmt.Errorf("assign: unknown scope %q; supported: %s", a.Scope, strings.Join(scopes(), ", "))
	}
	if !h.IsOf(g) {
		return nil, fmt.Errorf("assign: the distances are those of another graph")
	}
	if o.LIDs != nil {
		set := make([]bool, int(r.Top())+1)
		for _, lid := range o.LIDs {
			if int(lid) < len(set) {
				set[lid] = true
			}
		}
		a.wanted = make([]bool, len(g.Dests()))
		for i, d := range g.Dests() {
			a.wanted[i] = set[d.LID]
		}
	}
	a.endpoints = g.Endpoints()
	a.weight = make([]int32, len(g.Dests()))
	for i, d := range g.Dests() {
		switch {
		case o.Weight != nil:
			a.weight[i] = int32(max(0, min(o.Weight(d.LID), 1<<20)))
		case d.Out > 0:
			a.weight[i] = 1
		}
	}
	a.loads = make([]int32, g.FirstPort(len(g.Switches())))
	if costs := g.Capacity().Costs(); costs != nil {
		a.costs = make([]int32, len(a.loads))
		for i, c := range g.Channels() {
			a.costs[g.FirstPort(int(c.From))+int32(c.Port)] = int32(costs[i])
		}
	}
	a.turn = make([]int, len(g.Switches()))
	if a.Policy == DModK {
		a.prepareDModK()
	}
	if a.Scope == Global && a.byLoad() {
		a.words = (len(g.Dests()) + 63) / 64
		a.transit = make([]uint64, a.words*len(g.Switches()))
	}
	a.keep = o.Keep.SeenOn(g)
	return a, nil
}

// rowFill is a switch whose entries are being written.
type rowFill struct {
	s     int
	row   routes.Row
	w     *assignWorker
	least leastLoaded // its ports are the next hops that are offered
}

// destRange are dests[from:to], all on one switch.
type destRange struct{ from, to int }

// fill writes the entries of switch s for the destinations at distance step, or,
// where nothing depends on the order, for all.
func (a *assigner) fill(w *assignWorker, s, step int) {
	g := a.routes.Graph()
	f := rowFill{s: s, row: a.routes.Row(s), w: w}
	f.least.loads = a.loads[g.FirstPort(s):g.FirstPort(s+1)]
	if a.costs != nil {
		f.least.costs = a.costs[g.FirstPort(s):g.FirstPort(s+1)]
	}
	a.next[s].Share(&w.lists)
	for d := range g.Switches() {
		from, to := g.FirstDest(d), g.FirstDest(d+1)
		if from == to || a.transit != nil && s != d && a.distantFrom(s, d, step) {
			continue
		}
		dests := destRange{int(from), int(to)}
		if s == d {
			a.fillOwn(&f, dests)
			continue
		}
		ports, same := a.next[s].Ports(d)
		switch {
		case len(ports) == 0:
			a.drop(&f, dests)
		case a.Prefer == nil:
			// Where the next hops are equal the choice goes on where it was, which spreads
			// the LIDs of many switches as if they were on one.
			if !same {
				a.offer(&f, ports)
			}
			a.fillFromOffer(&f, dests)
		case a.PerLID:
			for i := dests.from; i < dests.to; i++ {
				if a.wants(i) {
					a.fillPreferred(&f, d, g.Dests()[i].LID, destRange{i, i + 1}, ports)
				}
			}
		default:
			a.fillPreferred(&f, d, 0, dests, ports)
		}
	}
}

// distantFrom reports whether switch d is at another distance from switch s than step;
// one without a path is at 0.
func (a *assigner) distantFrom(s, d, step int) bool { return max(0, a.h.Distance(s, d)) != step }

// wants reports whether dests[i] is to be assigned.
func (a *assigner) wants(i int) bool { return a.wanted == nil || a.wanted[i] }

// fillOwn writes the entries for the LIDs on the switch itself.
func (a *assigner) fillOwn(f *rowFill, dests destRange) {
	g := a.routes.Graph()
	for i := dests.from; i < dests.to; i++ {
		if a.wants(i) {
			f.row[g.Dests()[i].LID] = g.Dests()[i].Out
		}
	}
}

// drop writes the entries for LIDs that have no next hop.
func (a *assigner) drop(f *rowFill, dests destRange) {
	g := a.routes.Graph()
	for i := dests.from; i < dests.to; i++ {
		if a.wants(i) {
			f.row[g.Dests()[i].LID] = routes.NoPort
		}
	}
}

// fillPreferred writes the entries for dests on switch d by what Prefer makes of ports
// for lid.
func (a *assigner) fillPreferred(f *rowFill, d int, lid mad.LID, dests destRange, ports []uint8) {
	chosen := a.preferred(f.s, d, lid, ports)
	if len(chosen) == 0 {
		a.drop(f, dests)
		return
	}
	a.offer(f, chosen)
	a.fillFromOffer(f, dests)
}

// offer makes ports the next hops to choose from.
func (a *assigner) offer(f *rowFill, ports []uint8) {
	f.least.reset(ports)
	if a.Policy == DModK {
		a.offerDigits(f.s, ports)
	}
	if a.keep != nil {
		f.w.allow(ports)
	}
}

// fillFromOffer writes the entries for dests by the next hops that are offered.
func (a *assigner) fillFromOffer(f *rowFill, dests destRange) {
	switch {
	case a.keep != nil:
		a.keepOrChoose(f, dests)
	case a.Policy == DModK && a.wanted == nil: // a counter is faster than divisions
		a.digits.Write(f.s, dests.from, dests.to, a.next[f.s].List(), f.row)
	default:
		a.choose(f, dests, nil)
	}
}

// preferred calls Prefer, and checks that it returns next hops.
func (a *assigner) preferred(s, d int, lid mad.LID, ports []uint8) []uint8 {
	chosen := a.Prefer(s, d, lid, slices.Clone(ports))
	for _, p := range chosen {
		if !slices.Contains(ports, p) && a.err == nil {
			g := a.routes.Graph()
			a.err = fmt.Errorf("assign: preferred port %d of %s leads no nearer to %s; these do: %v", p, g.Switches()[s].Label(), g.Switches()[d].Label(), ports)
		}
	}
	if a.err != nil {
		return nil
	}
	return chosen
}

// choose writes the entries for dests by the policy, except where kept is true (by place in
// dests; nil: nowhere).
func (a *assigner) choose(f *rowFill, dests destRange, kept []bool) {
	g := a.routes.Graph()
	s, row, least := f.s, f.row, &f.least
	if a.Policy == Scatter {
		least.reset(least.ports)
		least.at = int(mix(a.Seed, uint64(s), uint64(dests.from)) % uint64(len(least.ports)))
	}
	for i := dests.from; i < dests.to; i++ {
		if !a.wants(i) || kept != nil && kept[i-dests.from] {
			continue
		}
		lid := g.Dests()[i].LID
		switch {
		case a.Policy == DModK:
			row[lid] = a.digits.digit(s, i, a.next[s].List())
		case a.Policy == First:
			row[lid] = a.firstOf(s, a.first(s, least.ports), a.weight[i])
		case a.Policy == Hash:
			row[lid] = least.ports[mix(a.Seed, uint64(s), uint64(lid))%uint64(len(least.ports))]
		case a.Policy == RoundRobin:
			row[lid] = least.ports[a.turn[s]%len(least.ports)]
			a.turn[s]++
		case a.weight[i] == 0 || !a.passesThrough(s, i):
			row[lid] = least.ports[int(lid)%len(least.ports)]
		default:
			row[lid] = least.next(a.weight[i])
			a.markTransit(s, i, row[lid])
		}
	}
}

// first are the ports to the neighbour of the lowest port, or of the preferred one
// if there is a PortOrder.
func (a *assigner) first(s int, ports []uint8) []uint8 {
	g := a.routes.Graph()
	groups := a.next[s].List().Groups
	switch {
	case a.Prefer != nil:
		return ports[:1]
	case g.HasPortOrder(s):
		return groups[0].Ports
	}
	best := 0
	for i := range groups {
		if groups[i].Ports[0] < groups[best].Ports[0] {
			best = i
		}
	}
	return groups[best].Ports
}

// firstOf is the parallel port of switch s with the least load so far.
func (a *assigner) firstOf(s int, parallel []uint8, weight int32) uint8 {
	first := a.routes.Graph().FirstPort(s)
	loads := a.loads[first:]
	best := parallel[0]
	for _, p := range parallel {
		if loads[p] < loads[best] {
			best = p
		}
	}
	if a.costs != nil {
		weight *= a.costs[first+int32(best)]
	}
	loads[best] += weight
	return best
}

// mix is a hash of a, b and c: the finalizer of SplitMix64 (Steele, Lea, Flood,
// "Fast splittable pseudorandom number generators", 2014).
func mix(a, b, c uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b*0xbf58476d1ce4e5b9 ^ c*0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// leastLoaded gives LIDs to the ports of a switch: each to a port with the least
// load, in the order of the ports. It looks for the least load again only when no
// port has it, so with equal weights a LID takes O(1) time, amortised.
type leastLoaded struct {
	loads []int32 // by port
	costs []int32 // by port: of a LID; nil: 1
	ports []uint8 // to choose from
	at    int     // the next of them to try
	level int32   // the least load when at was last 0
}

// reset starts again with ports.
func (l *leastLoaded) reset(ports []uint8) {
	l.ports, l.at, l.level = ports, 0, -1
	if len(ports) > 0 {
		l.level = l.lowest()
	}
}

func (l *leastLoaded) lowest() int32 {
	low := l.loads[l.ports[0]]
	for _, p := range l.ports[1:] {
		low = min(low, l.loads[p])
	}
	return low
}

// next is the port for a LID of this weight, which is added to its load.
func (l *leastLoaded) next(weight int32) uint8 {
	for {
		for l.at < len(l.ports) {
			p := l.ports[l.at]
			l.at++
			if l.loads[p] <= l.level {
				l.add(p, weight)
				return p
			}
		}
		l.at, l.level = 0, l.lowest()
	}
}

// add adds a LID of this weight to the load of a port.
func (l *leastLoaded) add(p uint8, weight int32) {
	if l.costs != nil {
		weight *= l.costs[p]
	}
	l.loads[p] += weight
}

// byLoad reports whether the policy depends on loads.
func (a *assigner) byLoad() bool { return a.Policy == LeastLoaded || a.Policy == Scatter }

// passesThrough reports whether packets for dests[i] pass through switch s.
func (a *assigner) passesThrough(s, i int) bool {
	return a.transit == nil || a.endpoints[s] > 0 || atomic.LoadUint64(&a.transit[s*a.words+i/64])>>(i%64)&1 != 0
}

// markTransit notes that packets for dests[i] pass through the switch behind port.
func (a *assigner) markTransit(s, i int, port uint8) {
	if a.transit == nil {
		return
	}
	g := a.routes.Graph()
	to := int(g.Channels()[g.Target(int32(s), port)].To)
	word := &a.transit[to*a.words+i/64]
	if bit := uint64(1) << (i % 64); atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}

// keepOrChoose keeps the entries for dests that are still next hops, and chooses the
// others.
func (a *assigner) keepOrChoose(f *rowFill, dests destRange) {
	g := a.routes.Graph()
	w, row, old := f.w, f.row, a.keep.Row(f.s)
	if a.wanted == nil && !a.byLoad() && w.keepAll(g.Dests()[dests.from:dests.to], old, row) {
		return
	}
	w.kept = w.kept[:0]
	some := false // are not kept
	for i := dests.from; i < dests.to; i++ {
		lid := g.Dests()[i].LID
		port := old.Port(lid)
		stays := w.allowed[port] && a.wants(i)
		w.kept = append(w.kept, stays)
		if !stays {
			some = true
			continue
		}
		row[lid] = port
		if a.byLoad() && a.weight[i] > 0 && a.passesThrough(f.s, i) {
			f.least.add(port, a.weight[i])
			a.markTransit(f.s, i, port)
		}
	}
	if some {
		f.least.reset(f.least.ports)
		a.choose(f, dests, w.kept)
	}
}

// allow makes ports the next hops.
func (w *assignWorker) allow(ports []uint8) {
	for _, p := range w.last {
		w.allowed[p] = false
	}
	w.last = append(w.last[:0], ports...)
	for _, p := range w.last {
		w.allowed[p] = true
	}
}

// keepAll keeps entries until it meets one whose port no longer is a next hop. In most cases
// there is no such entry, and it has kept all.
func (w *assignWorker) keepAll(dests []graph.Dest, old, row routes.Row) bool {
	for _, d := range dests {
		port := old.Port(d.LID)
		if !w.allowed[port] {
			return false
		}
		row[d.LID] = port
	}
	return true
}

// assignedTables makes tables of the next hops that h allows: by the policy of o, or else by
// DModK if l, the levels of g, are a fat tree that it suits. Repair can begin with them. h obeys
// ranks; nil: h has no ranks.
func assignedTables(ctx context.Context, g *graph.Graph, h *graph.Hops, l *graph.Levels, ranks *graph.Ranks, o *Options) (*routes.Routes, error) {
	h.Place = l.Places()
	choice := AssignOptions{Policy: o.Policy, Scope: o.Scope, Seed: o.Seed, Keep: o.Keep, levels: l}
	free := choice.Policy == "" && choice.Scope != PerSwitch && choice.Keep == nil
	if choice.Policy == "" && l.Check() == nil {
		choice.Policy = DModK
	}
	r, a, err := assignFirst(ctx, g, h, choice)
	if err != nil {
		return nil, err
	}
	r.SetOrigin(a.basis(ranks))
	if !free || search.IsLarge(g) {
		return r, nil
	}
	digits := choice.Policy == DModK
	load, skew := int64(0), 0.0
	if digits {
		if load, skew, err = skewOf(ctx, r); err != nil || skew <= slightSkew {
			return r, err
		}
		if ranks != nil {
			connected, err := graph.AllHops(ctx, g)
			if err != nil {
				return nil, err
			}
			if lack, _ := search.CountPairs(g, h, connected); lack > 0 {
				return r, nil // the paths that are added to it matter more
			}
		}
		choice.Policy = ""
	}
	choice.next = a.next
	even := routes.New(g, 0)
	if a, err = assign(ctx, even, h, choice); err != nil {
		return nil, err
	}
	if err := newBalancer(even, h).evenOut(ctx); err != nil {
		return nil, err
	}
	if err := a.separate(ctx); err != nil {
		return nil, err
	}
	if digits {
		if better, err := isMoreEven(ctx, even, r, load, skew); err != nil || !better {
			return r, err
		}
	}
	even.SetOrigin(a.basis(ranks))
	return even, nil
}

// assignFirst is assign to new tables of g.
func assignFirst(ctx context.Context, g *graph.Graph, h *graph.Hops, choice AssignOptions) (*routes.Routes, *assigner, error) {
	if choice.Policy == DModK {
		return assignDigits(ctx, g, h, choice)
	}
	r := routes.New(g, 0)
	a, err := assign(ctx, r, h, choice)
	return r, a, err
}

// DModK may give a link slightSkew times the mean load. If it has more, others are used whose largest load is
// less, if they keep evenShift of its bandwidth of shifts. In trees that are not as regular as it expects, it can
// be more than highSkew times the mean: there the largest load of others, divided by their bandwidth of shifts,
// is to be evenGain times less; where rates of links differ, its order is worth little more than it shows.
const (
	slightSkew = 1.1
	highSkew   = 1.4
	evenShift  = 0.97
	evenGain   = 1.4
)

// isMoreEven reports whether even are better than r, tables of DModK with that largest load and skew.
func isMoreEven(ctx context.Context, even, r *routes.Routes, load int64, skew float64) (bool, error) {
	least, err := largestLoad(ctx, even)
	if err != nil {
		return false, err
	}
	before, err := shiftBandwidth(ctx, r)
	if err != nil {
		return false, err
	}
	after, err := shiftBandwidth(ctx, even)
	gain := evenGain
	if r.Graph().Capacity().Costs() != nil {
		gain = 1.02
	}
	return least < load && after >= evenShift*before || skew > highSkew && float64(load)*after >= gain*float64(least)*before, err
}

// skewOf is the largest load, and how many times the mean it is.
func skewOf(ctx context.Context, r *routes.Routes) (most int64, skew float64, err error) {
	load, err := verify.CountAllRoutes(ctx, r)
	if err != nil || len(load) == 0 {
		return 0, 0, err
	}
	load = r.Graph().Capacity().Weigh(load)
	sum := int64(0)
	for _, x := range load {
		sum += x
		most = max(most, x)
	}
	return most, float64(most) * float64(len(load)) / float64(max(1, sum)), nil
}
