package routing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/mad"
)

// Policies, by name: how Assign chooses among the next hops of a LID.
const (
	LeastLoaded = "least_loaded" // the port with the fewest LIDs so far
	Scatter     = "scatter"      // the same, equal ones by chance
	RoundRobin  = "round_robin"  // each port in its turn
	DModK       = "dmodk"        // by a digit of the destination's number
	Hash        = "hash"         // by chance
	First       = "first"        // the first neighbour by port, and its ports in their turn
)

// Policies are all of them.
func Policies() []string { return []string{LeastLoaded, Scatter, RoundRobin, DModK, Hash, First} }

// Scopes: which LIDs count as load of a switch's ports.
const (
	// Global counts those that packets from some CA or router come through
	// the switch for. So it sees what the switches farther away chose.
	Global = "global"
	// PerSwitch counts all, as OpenSM's minhop does.
	PerSwitch = "switch"
)

// Scopes are both of them.
func Scopes() []string { return []string{Global, PerSwitch} }

// AssignOptions say how Assign chooses.
type AssignOptions struct {
	Policy string // "": LeastLoaded
	Scope  string // "": Global
	Seed   uint64 // of what goes by chance

	// LIDs are to be assigned; nil: all. The entries of others stay.
	LIDs []mad.LID
	// Weight is how much a LID counts; nil: those of CAs and routers 1,
	// those of switches 0.
	Weight func(mad.LID) int
	// Keep are tables whose entries stay where they are next hops still.
	Keep *Routes
	// Prefer, if not nil, reorders the ports of switch s to switch d, and may
	// leave some out. It is called from one goroutine, in order.
	Prefer func(s, d int, ports []uint8) []uint8

	// Number is what DModK takes for the number of a LID; nil: Numbering.
	Number func(mad.LID) int
	// Divider is the weight of the digit that switch s goes by; nil: as for
	// a fat tree whose levels are the distances from the CAs.
	Divider func(s int) int

	levels *levels // of that tree, if they are others
}

// Assign fills in the next hops to all LIDs: one of those that h allows. A LID
// without one is dropped.
func (r *Routes) Assign(ctx context.Context, h *Hops, o AssignOptions) error {
	a, err := r.newAssigner(h, o)
	if err != nil {
		return err
	}
	g := r.graph
	a.hops = make([]nextHops, len(g.switches))
	load := func(_, s int) { a.hops[s].load(a.h, s) }
	if err := g.each(ctx, len(g.switches), load); err != nil {
		return err
	}
	// Far ones first: what they choose decides what comes through the near.
	steps := 0
	if a.passes != nil {
		steps = h.Max()
	}
	each := g.each
	if o.Prefer != nil {
		each = func(ctx context.Context, n int, do func(worker, i int)) error { return inOrder(ctx, n, do) }
	}
	for step := steps; step >= 0; step-- {
		err := each(ctx, len(g.switches), func(worker, s int) { a.fill(&a.workers[worker], s, step) })
		if err = cmp.Or(err, a.err); err != nil {
			return err
		}
	}
	return nil
}

func inOrder(ctx context.Context, n int, do func(worker, i int)) error {
	for i := 0; i < n && ctx.Err() == nil; i++ {
		do(0, i)
	}
	return context.Cause(ctx)
}

// assigner is an assignment under way.
type assigner struct {
	AssignOptions
	routes  *Routes
	h       *Hops
	hops    []nextHops
	workers []assignWorker
	err     error // of Prefer
	keep    *Routes
	wanted  []bool    // by index in dests; nil: all
	weight  []int32   // by index in dests
	number  []int     // of DModK, by index in dests
	divider []int     // of DModK, by switch
	parents [][]int32 // of DModK, by switch: those of a whole tree
	loads   []int32   // by portBase of the switch and port
	turn    []int     // of RoundRobin, by switch
	sources []bool    // switches with CAs or routers
	// passes has a bit for each switch and index in dests: packets for it come
	// through. Nil: all do.
	passes []uint64
	words  int // of passes a switch
}

type assignWorker struct {
	allowed [256]bool // the ports at hand
	last    []uint8   // the same
	kept    []bool
}

func (r *Routes) newAssigner(h *Hops, o AssignOptions) (*assigner, error) {
	g := r.graph
	a := &assigner{AssignOptions: o, routes: r, h: h, workers: make([]assignWorker, g.workers)}
	if a.Policy == "" {
		a.Policy = LeastLoaded
	}
	if a.Scope == "" {
		a.Scope = Global
	}
	if !slices.Contains(Policies(), a.Policy) {
		return nil, fmt.Errorf("assign: no policy %q; there are %s", a.Policy, strings.Join(Policies(), ", "))
	}
	if !slices.Contains(Scopes(), a.Scope) {
		return nil, fmt.Errorf("assign: no scope %q; there are %s", a.Scope, strings.Join(Scopes(), ", "))
	}
	if h.graph != g {
		return nil, fmt.Errorf("assign: the distances are those of another graph")
	}
	if o.LIDs != nil {
		set := make([]bool, int(r.top)+1)
		for _, lid := range o.LIDs {
			if int(lid) < len(set) {
				set[lid] = true
			}
		}
		a.wanted = make([]bool, len(g.dests))
		for i, d := range g.dests {
			a.wanted[i] = set[d.lid]
		}
	}
	a.sources = g.sources()
	a.weight = make([]int32, len(g.dests))
	for i, d := range g.dests {
		switch {
		case o.Weight != nil:
			a.weight[i] = int32(max(0, min(o.Weight(d.lid), 1<<20)))
		case d.out > 0:
			a.weight[i] = 1
		}
	}
	a.loads = make([]int32, len(g.targets))
	a.turn = make([]int, len(g.switches))
	if a.Policy == DModK {
		a.numbers()
	}
	if a.Scope == Global && a.counts() {
		a.words = (len(g.dests) + 63) / 64
		a.passes = make([]uint64, a.words*len(g.switches))
	}
	a.keep = o.Keep.seenOn(g)
	return a, nil
}

// fill writes the entries of switch s for the destinations that are step away,
// or, where nothing depends on the order, for all.
func (a *assigner) fill(w *assignWorker, s, step int) {
	g := a.routes.graph
	row := a.routes.Row(s)
	distances := a.h.row(s)
	a.hops[s].list.forget()
	f := filler{loads: a.loads[g.portBase[s]:g.portBase[s+1]]}
	for d := range g.switches {
		from, to := g.destBase[d], g.destBase[d+1]
		if from == to || a.passes != nil && s != d && int(distances[d]&^viaUp) != step && (distances[d] != farAway || step > 0) {
			continue
		}
		if s == d {
			for i := from; i < to; i++ {
				if a.wanted == nil || a.wanted[i] {
					row[g.dests[i].lid] = g.dests[i].out
				}
			}
			continue
		}
		ports, same := a.hops[s].ports(d)
		if a.Prefer != nil && len(ports) > 0 {
			ports, same = a.preferred(s, d, ports), false
		}
		if len(ports) == 0 {
			for i := from; i < to; i++ {
				if a.wanted == nil || a.wanted[i] {
					row[g.dests[i].lid] = NoPort
				}
			}
			continue
		}
		if !same {
			f.start(ports)
			a.prepare(w, s, ports)
		}
		switch {
		case a.keep != nil:
			a.chooseAnew(w, s, int(from), int(to), row, &f)
		case a.Policy == DModK && a.wanted == nil:
			a.digits(s, int(from), int(to), row)
		default:
			a.choose(s, int(from), int(to), nil, row, &f)
		}
	}
}

// preferred asks Prefer, which must not invent next hops.
func (a *assigner) preferred(s, d int, ports []uint8) []uint8 {
	chosen := a.Prefer(s, d, slices.Clone(ports))
	for _, p := range chosen {
		if !slices.Contains(ports, p) && a.err == nil {
			g := a.routes.graph
			a.err = fmt.Errorf("assign: port %d of %s was preferred, but leads no nearer to %s; these do: %v", p, g.switches[s].Label(), g.switches[d].Label(), ports)
		}
	}
	if a.err != nil {
		return nil
	}
	return chosen
}

// choose writes the entries for dests[from:to], of one switch, but for those
// that are kept.
func (a *assigner) choose(s, from, to int, kept []bool, row Row, f *filler) {
	g := a.routes.graph
	if a.Policy == Scatter {
		f.start(f.ports)
		f.at = int(mix(a.Seed, uint64(s), uint64(from)) % uint64(len(f.ports)))
	}
	for i := from; i < to; i++ {
		if a.wanted != nil && !a.wanted[i] || kept != nil && kept[i-from] {
			continue
		}
		lid := g.dests[i].lid
		switch {
		case a.Policy == DModK:
			row[lid] = a.digit(s, a.number[i]/a.divider[s])
		case a.Policy == First:
			n := a.first(s, f.ports)
			row[lid] = n[int(lid)%len(n)]
		case a.Policy == Hash:
			row[lid] = f.ports[mix(a.Seed, uint64(s), uint64(lid))%uint64(len(f.ports))]
		case a.Policy == RoundRobin:
			row[lid] = f.ports[a.turn[s]%len(f.ports)]
			a.turn[s]++
		case a.weight[i] == 0 || !a.comesThrough(s, i):
			row[lid] = f.ports[int(lid)%len(f.ports)]
		default:
			row[lid] = f.next(a.weight[i])
			a.mark(s, i, row[lid])
		}
	}
}

// first are the ports to the neighbour of the lowest port, or the best one
// where there is a PortOrder.
func (a *assigner) first(s int, ports []uint8) []uint8 {
	g := a.routes.graph
	groups := a.hops[s].list.groups
	switch {
	case a.Prefer != nil:
		return ports[:1]
	case g.order != nil && g.order[s] != nil:
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

// mix is a random number that a, b and c determine (SplitMix64's finish).
func mix(a, b, c uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b*0xbf58476d1ce4e5b9 ^ c*0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
