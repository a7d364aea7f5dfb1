package traffic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// Patterns of traffic, by name.
const (
	Shift       = "shift"       // each endpoint sends to the endpoint k places after it, for all k
	Permutation = "permutation" // random permutations
	Bisection   = "bisection"   // random halves that exchange in pairs
	Ring        = "ring"        // each endpoint sends to the next one
	AllToAll    = "all-to-all"  // each sends to all others at once
	Matrix      = "matrix"      // given flows: MeasureFlows
)

// Patterns are all patterns.
func Patterns() []string { return []string{Shift, Permutation, Bisection, Ring, AllToAll} }

// CongestionOptions describe the traffic.
type CongestionOptions struct {
	Pattern string
	// Order are LIDs of the endpoints, in their order; nil: graph.Order or, where there
	// are no compute nodes, all LIDs of CAs and routers.
	Order []mad.LID
	// Samples is the number of shifts or permutations; 0: 1,000, or all shifts if
	// there are fewer. Where not all shifts are taken, they are evenly spread.
	Samples int
	Seed    uint64 // of the random patterns
	// Each, if not nil, is called for each sample, in order: the shift, else its number, and the
	// largest load of a channel.
	Each func(sample int, most float64)
}

// Congestion is the load of channels under a pattern, if all endpoints send at once. A flow is a
// load of 1; where rates differ (graph.Capacity), a flow on a link of half the rate that most endpoints have
// is a load of 2.
type Congestion struct {
	Pattern   string
	Endpoints int
	Samples   int
	Seed      uint64
	// Max is the largest load of any channel in any sample. Shifts with at most 1 are free of
	// contention.
	Max   float64
	Worst int // the first sample with it: k of a shift, else the number of the sample
	At    int // a channel with it, or -1
	// Mean is the mean of the samples' largest loads.
	Mean float64
	// Bandwidth is the effective bandwidth: the mean, over all flows, of 1
	// over the largest load of a channel of the path, which is at least 1 (Hoefler,
	// Schneider, Lumsdaine, "Multistage switches are not crossbars: effects of
	// static routing in high-performance networks", 2008).
	// Flows that do not arrive count 0. Not for all-to-all.
	Bandwidth float64
	Lost      int64 // flows that do not arrive
	// Reference is the rate in Gb/s of a link on which a flow is a load of 1; 0: rates do not differ.
	Reference float64
}

// MatrixCongestion is the congestion of a traffic matrix. Its Max is unknown.
type MatrixCongestion struct {
	Congestion
	MaxLoad float64   // the largest load of a channel: its traffic, per capacity where rates differ
	Traffic []float64 // by channel
}

// Flow is what the port of a LID sends to another LID, in any unit.
type Flow struct {
	From, To mad.LID
	Traffic  float64
}

// maxTraffic is the most traffic of a flow: sums of as many as there can be are exact
// to a few digits still, and never infinite.
const maxTraffic = 1e18

// MeasureFlows counts what flows put on the channels, all at once. The bandwidth of a flow is
// its share of the channel of its path that has the most traffic; flows without traffic,
// and from a port to itself, do not count.
//
// Time: O(P) for each flow, P links a path.
func MeasureFlows(ctx context.Context, r *routes.Routes, flows []Flow) (*MatrixCongestion, error) {
	g := r.Graph()
	c := &MatrixCongestion{Congestion: Congestion{Pattern: Matrix, Samples: 1, Worst: -1, At: -1}, Traffic: make([]float64, len(g.Channels()))}
	capacity := g.Capacity()
	ends := make([]bool, len(g.Terminals()))
	x := sampler{load: make([]int32, len(g.Channels()))}
	var sent, own []float64
	for i, f := range flows {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !(f.Traffic >= 0 && f.Traffic <= maxTraffic) { // NaN too
			return nil, fmt.Errorf("congestion: traffic %v from LID %d to LID %d: want from 0 to %g", f.Traffic, f.From, f.To, float64(maxTraffic))
		}
		var at [2]int
		for k, lid := range [2]mad.LID{f.From, f.To} {
			if at[k] = g.TerminalByLID(lid); at[k] < 0 || g.Terminals()[at[k]].Switch < 0 {
				return nil, fmt.Errorf("congestion: no port on a switch has LID %d", lid)
			}
			ends[at[k]] = true
		}
		if f.Traffic == 0 || at[0] == at[1] {
			continue
		}
		begin := len(x.paths)
		x.ends = append(x.ends, x.follow(r, int32(at[0]), int32(at[1]), f.To))
		sent = append(sent, f.Traffic)
		own = append(own, f.Traffic*max(capacity.End(int32(at[0])), capacity.End(int32(at[1]))))
		for _, ch := range x.paths[begin:] {
			c.Traffic[ch] += f.Traffic
			if load := capacity.Load(ch, c.Traffic[ch]); load > c.MaxLoad {
				c.MaxLoad, c.At = load, int(ch)
			}
		}
	}
	begin, share := int32(0), 0.0
	for i, end := range x.ends {
		if end < 0 {
			c.Lost++
			continue
		}
		most := own[i] // on the hosts' own links
		for _, ch := range x.paths[begin:end] {
			most = max(most, capacity.Load(ch, c.Traffic[ch]))
		}
		share += own[i] / most
		begin = end
	}
	if len(sent) > 0 {
		c.Bandwidth = share / float64(len(sent))
	}
	for _, is := range ends {
		if is {
			c.Endpoints++
		}
	}
	c.Mean = c.MaxLoad
	return c, nil
}

// MeasureCongestion counts the flows on the channels.
//
// Time: O(P) for each flow of each sample, P links a path; all-to-all: O(L*S).
func MeasureCongestion(ctx context.Context, r *routes.Routes, o CongestionOptions) (*Congestion, error) {
	p, ends, err := o.prepare(r.Graph())
	if err != nil {
		return nil, err
	}
	c := &p.Congestion
	if len(ends) < 2 {
		return c, nil
	}
	o.Order = p.order
	if o.Pattern == AllToAll {
		return c, allToAll(ctx, r, c, o.Order)
	}
	return c, sample(ctx, r, c, o, ends)
}

// prepared is a pattern between endpoints.
type prepared struct {
	Congestion
	order []mad.LID
}

// prepare checks o, and finds the terminals of the endpoints, in their order.
func (o *CongestionOptions) prepare(g *graph.Graph) (*prepared, []int32, error) {
	if !slices.Contains(Patterns(), o.Pattern) {
		return nil, nil, fmt.Errorf("congestion: unknown pattern %q; supported: %s", o.Pattern, strings.Join(Patterns(), ", "))
	}
	p := &prepared{order: o.Order}
	if p.order == nil {
		if p.order = graph.Order(g); len(p.order) == 0 {
			p.order = g.LIDs(^(graph.ClassSwitch | graph.ClassAN))
		}
	}
	ends := make([]int32, len(p.order))
	for i, lid := range p.order {
		t := g.TerminalByLID(lid)
		if t < 0 || g.Terminals()[t].Switch < 0 {
			return nil, nil, fmt.Errorf("congestion: no port on a switch has LID %d", lid)
		}
		ends[i] = int32(t)
	}
	p.Congestion = Congestion{Pattern: o.Pattern, Endpoints: len(ends), Seed: o.Seed, Worst: -1, At: -1}
	if c := g.Capacity(); c.Differs() {
		p.Reference = c.Reference
	}
	if len(ends) < 2 {
		return p, ends, nil
	}
	switch p.Samples = o.Samples; {
	case o.Pattern == Ring || o.Pattern == AllToAll:
		p.Samples = 1
	case p.Samples <= 0:
		p.Samples = 1000
	}
	if o.Pattern == Shift {
		p.Samples = min(p.Samples, len(ends)-1)
	}
	return p, ends, nil
}

// allToAll counts all flows at once: they are the routes between the endpoints.
func allToAll(ctx context.Context, r *routes.Routes, c *Congestion, lids []mad.LID) error {
	g := r.Graph()
	e := endpointsOf(g, lids)
	lost := make([]int64, g.Workers())
	loads, err := verify.CountRoutes(ctx, r, e, func(worker int, w *verify.Walk, lid mad.LID) {
		lost[worker] += e.Lost(w, lid)
	})
	if err != nil {
		return err
	}
	for _, n := range lost {
		c.Lost += n
	}
	for ch, n := range loads {
		if load := g.Capacity().Load(int32(ch), float64(n)); ch == 0 || load > c.Max {
			c.Max, c.At = load, ch
		}
	}
	c.Mean, c.Worst = c.Max, 0
	return nil
}

// endpointsOf are the endpoints that have lids.
func endpointsOf(g *graph.Graph, lids []mad.LID) *verify.Endpoints {
	e := &verify.Endpoints{Is: make([]bool, len(g.Terminals())), On: make([]uint32, len(g.Switches())), Wanted: make([]bool, int(g.Top())+1)}
	for _, lid := range lids {
		t := g.TerminalByLID(lid)
		s := g.Terminals()[t].Switch
		e.Is[t], e.Wanted[lid] = true, true
		if e.On[s]++; e.On[s] == 1 {
			e.Sources = append(e.Sources, int32(s))
		}
	}
	slices.Sort(e.Sources)
	return e
}

// sampler is the memory of a worker.
type sampler struct {
	load  []int32   // by channel
	paths []int32   // channels of all paths, one path after the other
	ends  []int32   // where each ends in paths; -1: it does not arrive
	own   []float64 // the load of the ports of its ends
	to    []int32   // by index of the source in the order: index of the destination, or -1
}

// sample counts the flows of each sample on its own.
func sample(ctx context.Context, r *routes.Routes, c *Congestion, o CongestionOptions, terminals []int32) error {
	type result struct {
		max       float64
		at        int
		bandwidth float64
		flows     int
		lost      int64
	}
	g, lids := r.Graph(), o.Order
	capacity := g.Capacity()
	results := make([]result, c.Samples)
	workers := make([]sampler, g.Workers())
	err := graph.Each(ctx, g.Workers(), c.Samples, func(worker, i int) {
		x := &workers[worker]
		if x.load == nil {
			x.load, x.to = make([]int32, len(g.Channels())), make([]int32, len(lids))
		}
		x.draw(c, i)
		x.paths, x.ends, x.own = x.paths[:0], x.ends[:0], x.own[:0]
		res := &results[i]
		res.at = -1
		for from, to := range x.to {
			if to >= 0 && int(to) != from {
				x.ends = append(x.ends, x.follow(r, terminals[from], terminals[to], lids[to]))
				x.own = append(x.own, max(capacity.End(terminals[from]), capacity.End(terminals[to])))
			}
		}
		begin := int32(0)
		for i, end := range x.ends {
			res.flows++
			if end < 0 {
				res.lost++
				continue
			}
			most := x.own[i] // the hosts' own links
			for _, ch := range x.paths[begin:end] {
				load := capacity.Load(ch, float64(x.load[ch]))
				most = max(most, load)
				if load > res.max {
					res.max, res.at = load, int(ch)
				}
			}
			res.bandwidth += x.own[i] / most
			begin = end
		}
		for _, ch := range x.paths {
			x.load[ch] = 0
		}
	})
	if err != nil {
		return err
	}
	flows, bandwidth, sum := 0, 0.0, 0.0
	for i, res := range results {
		sample := i
		if c.Pattern == Shift {
			sample = c.shift(i)
		}
		if o.Each != nil {
			o.Each(sample, res.max)
		}
		if res.max > c.Max {
			c.Max, c.At, c.Worst = res.max, res.at, sample
		}
		flows, bandwidth, sum, c.Lost = flows+res.flows, bandwidth+res.bandwidth, sum+res.max, c.Lost+res.lost
	}
	c.Mean = sum / float64(c.Samples)
	if flows > 0 {
		c.Bandwidth = bandwidth / float64(flows)
	}
	return nil
}

// shift is the distance of the i-th shift.
func (c *Congestion) shift(i int) int {
	if c.Pattern == Ring {
		return 1
	}
	return 1 + i*(c.Endpoints-1)/c.Samples
}

// draw chooses the destinations of sample i.
func (x *sampler) draw(c *Congestion, i int) {
	n := len(x.to)
	switch c.Pattern {
	case Shift, Ring:
		k := c.shift(i)
		for from := range x.to {
			x.to[from] = int32((from + k) % n)
		}
		return
	}
	random := rand.New(rand.NewPCG(c.Seed, uint64(i)))
	for from := range x.to {
		x.to[from] = int32(from)
	}
	random.Shuffle(n, func(a, b int) { x.to[a], x.to[b] = x.to[b], x.to[a] })
	if c.Pattern == Bisection {
		order := slices.Clone(x.to)
		for j := range x.to {
			x.to[j] = -1
		}
		for j := 0; j+1 < n; j += 2 {
			x.to[order[j]], x.to[order[j+1]] = order[j+1], order[j]
		}
	}
}

// follow adds a flow to the loads, and its channels to paths; it returns where they
// end there. For a flow that does not arrive it adds nothing, and returns -1.
func (x *sampler) follow(r *routes.Routes, from, to int32, lid mad.LID) int32 {
	begin := len(x.paths)
	if !x.walk(r, from, to, lid) {
		return -1
	}
	for _, ch := range x.paths[begin:] {
		x.load[ch]++
	}
	return int32(len(x.paths))
}

// walk adds the channels of a flow to paths, and reports whether it arrives: else it adds none.
func (x *sampler) walk(r *routes.Routes, from, to int32, lid mad.LID) bool {
	g := r.Graph()
	begin := len(x.paths)
	at := int32(g.Terminals()[from].Switch)
	for range len(g.Switches()) {
		target := g.Target(at, r.Entry(at, lid))
		if c := target.Channel(); c >= 0 {
			x.paths = append(x.paths, c)
			at = g.ChannelTo(c)
			continue
		}
		if target == graph.ToTerminal(to) {
			return true
		}
		break
	}
	x.paths = x.paths[:begin]
	return false
}

// Channels appends the channels of the path of a flow to list, if it arrives.
func Channels(r *routes.Routes, f Flow, list []int32) (path []int32, arrives bool) {
	g := r.Graph()
	from, to := g.TerminalByLID(f.From), g.TerminalByLID(f.To)
	if from < 0 || to < 0 || g.Terminals()[from].Switch < 0 {
		return list, false
	}
	if from == to {
		return list, true
	}
	x := sampler{paths: list}
	arrives = x.walk(r, int32(from), int32(to), f.To)
	return x.paths, arrives
}
