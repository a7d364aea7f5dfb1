package route

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

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
	load := func(_, s int) { a.hops[s].load(h, s) }
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
		if err != nil {
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
	keep    *Routes
	wanted  []bool    // by index in dests; nil: all
	weight  []int32   // by index in dests
	number  []int     // of DModK, by index in dests
	divider []int     // of DModK, by switch
	parents [][]int32 // of DModK, by switch: those of a whole tree
	place   []int32   // that they are in the order of
	loads   []int32   // by portBase of the switch and port
	turn    []int     // of RoundRobin, by switch
	sources []bool    // switches with CAs or routers
	// passes has a bit for each switch and index in dests: packets for it come
	// through. Nil: all do.
	passes []uint64
	words  int // of passes a switch
}

type assignWorker struct {
	kept []bool
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
	if a.Scope == Global && (a.Policy == LeastLoaded || a.Policy == Scatter) {
		a.words = (len(g.dests) + 63) / 64
		a.passes = make([]uint64, a.words*len(g.switches))
	}
	if o.Keep != nil {
		a.keep = o.Keep
		if a.keep.graph != g {
			a.keep = a.keep.On(g)
		}
	}
	return a, nil
}

func (a *assigner) numbers() {
	g := a.routes.graph
	l := a.levels
	if l == nil {
		l = g.levels()
	}
	if a.place = a.h.place; a.place == nil {
		a.place = l.places()
	}
	a.parents = l.parents(a.place)
	number, divider := a.Number, a.Divider
	if number == nil {
		numbers := g.Numbering(l.leafOrder())
		number = func(lid mad.LID) int { return numbers[lid] }
	}
	if divider == nil {
		dividers := l.dividers(a.parents)
		divider = func(s int) int { return dividers[s] }
	}
	a.number, a.divider = make([]int, len(g.dests)), make([]int, len(g.switches))
	for i, d := range g.dests {
		a.number[i] = max(0, number(d.lid))
	}
	for s := range a.divider {
		a.divider[s] = max(1, divider(s))
	}
}

// sources tells which switches have terminals but themselves.
func (g *Graph) sources() []bool {
	on := make([]bool, len(g.switches))
	for _, t := range g.terminals {
		if t.Switch >= 0 && t.Out > 0 {
			on[t.Switch] = true
		}
	}
	return on
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
			ports, same = a.Prefer(s, d, slices.Clone(ports)), false
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
			if a.Policy == DModK {
				a.findParents(s)
			}
		}
		a.choose(w, s, int(from), int(to), row, &f)
	}
}

// choose writes the entries for dests[from:to], of one switch.
func (a *assigner) choose(w *assignWorker, s, from, to int, row Row, f *filler) {
	g := a.routes.graph
	if a.Policy == Scatter {
		f.start(f.ports)
		f.at = int(mix(a.Seed, uint64(s), uint64(from)) % uint64(len(f.ports)))
	}
	kept := w.kept[:0]
	if a.keep != nil {
		old := a.keep.Row(s)
		for i := from; i < to; i++ {
			d := g.dests[i]
			stays := slices.Contains(f.ports, old.Port(d.lid)) && (a.wanted == nil || a.wanted[i])
			kept = append(kept, stays)
			if stays {
				port := old[d.lid]
				row[d.lid] = port
				a.count(s, i, port, f)
			}
		}
		w.kept = kept
		f.start(f.ports)
	}
	for i := from; i < to; i++ {
		if a.wanted != nil && !a.wanted[i] || a.keep != nil && kept[i-from] {
			continue
		}
		lid := g.dests[i].lid
		var port uint8
		switch a.Policy {
		case DModK:
			port = a.digit(s, f.ports, a.number[i]/a.divider[s])
		case First:
			n := a.first(s, f.ports)
			port = n[int(lid)%len(n)]
		case Hash:
			port = f.ports[mix(a.Seed, uint64(s), uint64(lid))%uint64(len(f.ports))]
		case RoundRobin:
			port = f.ports[a.turn[s]%len(f.ports)]
			a.turn[s]++
		default:
			if a.weight[i] == 0 || !a.comesThrough(s, i) {
				row[lid] = f.ports[int(lid)%len(f.ports)]
				continue
			}
			port = f.next(a.weight[i])
			a.mark(s, i, port)
		}
		row[lid] = port
	}
}

// findParents finds which of the parents of a whole tree the next hops at hand
// are: slots has their places among them.
func (a *assigner) findParents(s int) {
	list := &a.hops[s].list
	list.slots = list.slots[:0]
	i, found := 0, false
	for _, p := range a.parents[s] {
		for i < len(list.groups) && a.place[list.groups[i].To] < a.place[p] {
			i++
		}
		if i < len(list.groups) && list.groups[i].To == p {
			list.slots = append(list.slots, int16(i))
			found = true
		} else {
			list.slots = append(list.slots, -1)
		}
	}
	if !found {
		list.slots = list.slots[:0]
	}
}

// digit chooses a next hop by the lowest digit of number, and one of its ports
// by what is left. Up a tree the digit is that of a whole one: destinations
// whose parent is missing are shared out among the others, in the same way by
// all switches, and all others stay where they are. (Counting the parents that
// are left, as Dmodc does (Gliksberg et al., "High-quality fault resiliency in
// fat trees", 2019), moves nearly all of them, apart from each other.)
func (a *assigner) digit(s int, ports []uint8, number int) uint8 {
	list := &a.hops[s].list
	n := len(list.slots)
	switch {
	case a.Prefer != nil:
		return ports[number%len(ports)]
	case n == 0:
		return pickPort(&list.groups[number%len(list.groups)], number/len(list.groups))
	}
	digit, rest := number%n, number/n
	slot := list.slots[digit]
	for k := 0; slot < 0; k++ {
		slot = list.slots[(digit+1+(rest+k)%(n-1))%n]
	}
	return pickPort(&list.groups[slot], rest)
}

func pickPort(n *Neighbour, number int) uint8 {
	if len(n.Ports) == 1 {
		return n.Ports[0]
	}
	return n.Ports[number%len(n.Ports)]
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

// comesThrough: packets for dests[i] come through s.
func (a *assigner) comesThrough(s, i int) bool {
	return a.passes == nil || a.sources[s] || atomic.LoadUint64(&a.passes[s*a.words+i/64])>>(i%64)&1 != 0
}

// mark says to the switch behind port that packets for dests[i] come.
func (a *assigner) mark(s, i int, port uint8) {
	if a.passes == nil {
		return
	}
	g := a.routes.graph
	to := int(g.channels[g.target(int32(s), port)].To)
	word := &a.passes[to*a.words+i/64]
	if bit := uint64(1) << (i % 64); atomic.LoadUint64(word)&bit == 0 {
		atomic.OrUint64(word, bit)
	}
}

// count counts an entry that is kept.
func (a *assigner) count(s, i int, port uint8, f *filler) {
	if (a.Policy == LeastLoaded || a.Policy == Scatter) && a.weight[i] > 0 && a.comesThrough(s, i) {
		f.loads[port] += a.weight[i]
		a.mark(s, i, port)
	}
}

// filler deals LIDs to the ports of a switch, to one with the least load each,
// and to those in their order. It looks for the least load only when all have
// more than it was.
type filler struct {
	loads []int32
	ports []uint8
	at    int
	level int32
}

func (f *filler) start(ports []uint8) {
	f.ports, f.at, f.level = ports, 0, -1
	if len(ports) > 0 {
		f.level = f.lowest()
	}
}

func (f *filler) lowest() int32 {
	low := f.loads[f.ports[0]]
	for _, p := range f.ports[1:] {
		low = min(low, f.loads[p])
	}
	return low
}

func (f *filler) next(weight int32) uint8 {
	for {
		for f.at < len(f.ports) {
			p := f.ports[f.at]
			f.at++
			if f.loads[p] <= f.level {
				f.loads[p] += weight
				return p
			}
		}
		f.at, f.level = 0, f.lowest()
	}
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
