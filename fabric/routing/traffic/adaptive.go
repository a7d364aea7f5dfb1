package traffic

import (
	"context"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// AdaptiveLoad is the load of links, as Congestion has it, where switches route adaptively: with the static ports of
// their tables, and with the best and the worst choices among the ports that they may choose.
// Flows are of reliable connections (RC), with the service level of their path.
type AdaptiveLoad struct {
	Samples int
	// Static are the largest loads by static ports, which packets that are not routed
	// adaptively take.
	Static Extremes
	// Ideal are the largest loads of splits that make the largest load as small as possible.
	// Flows may be divided at each switch. Bound are lower bounds on the largest load: no split
	// is below. Ideal is within 1 % of Bound, or as near as a limited number of steps comes.
	Ideal, Bound Extremes
	// Worst are the largest loads if all flows that may take a link do, computed for each link
	// by itself.
	Worst Extremes
	// Lost are flows that some choice loses, or may send in a circle. They are in none of
	// Ideal, Bound and Worst.
	Lost int64

	IdealLoads, WorstLoads []float64 // by channel; nil: there are several samples
}

// Extremes describe the largest loads of samples.
type Extremes struct {
	Max, Mean float64
	At        int // a channel with Max, or -1
}

// adaptiveSamples are the most samples of a pattern that are split; of more, evenly spread ones
// are taken.
const adaptiveSamples = 5

// MeasureAdaptive measures the loads under a pattern; nil: no switch chooses. sl is the service
// level of all paths where r has none.
//
// Time: O(C) for each class of LIDs to which all switches have equal choices, each sample and
// each of up to 400 steps, which are fewer in large networks.
func MeasureAdaptive(ctx context.Context, r *routes.Routes, o CongestionOptions, sl uint8) (*AdaptiveLoad, error) {
	if !r.HasChoices() {
		return nil, nil
	}
	c, ends, err := o.prepare(r.Graph())
	if err != nil || len(ends) < 2 {
		return nil, err
	}
	if o.Pattern == AllToAll {
		flows := make([]int64, len(r.Graph().Terminals()))
		for _, t := range ends {
			flows[t]++
		}
		return measureAll(ctx, r, endpointsOf(r.Graph(), c.order), flows, sl, r.Graph().Capacity())
	}
	m, err := newMeasurement(ctx, r, ends, c.order, sl)
	if err != nil {
		return nil, err
	}
	samples := min(c.Samples, adaptiveSamples)
	x := sampler{load: make([]int32, len(r.Graph().Channels())), to: make([]int32, len(ends))}
	for i := range samples {
		x.draw(&c.Congestion, i*c.Samples/samples)
		x.paths = x.paths[:0]
		clear(x.load)
		d := newDemands(m.x)
		for from, to := range x.to {
			if to >= 0 && int(to) != from {
				x.follow(r, ends[from], ends[to], c.order[to])
				d.add(ends[from], c.order[to], 1, 1)
			}
		}
		static := make([]float64, len(x.load))
		for ch, n := range x.load {
			static[ch] = m.x.capacity.Load(int32(ch), float64(n))
		}
		if err := m.sample(ctx, d, static); err != nil {
			return nil, err
		}
	}
	return m.result(), nil
}

// MeasureAdaptiveFlows is MeasureAdaptive of a traffic matrix.
func MeasureAdaptiveFlows(ctx context.Context, r *routes.Routes, flows []Flow, sl uint8) (*AdaptiveLoad, error) {
	if !r.HasChoices() {
		return nil, nil
	}
	static, err := MeasureFlows(ctx, r, flows)
	if err != nil {
		return nil, err
	}
	g := r.Graph()
	var ends []int32
	var lids []mad.LID
	for _, f := range flows {
		ends = append(ends, int32(g.TerminalByLID(f.From)))
		lids = append(lids, f.To)
	}
	m, err := newMeasurement(ctx, r, ends, lids, sl)
	if err != nil {
		return nil, err
	}
	d := newDemands(m.x)
	for i, f := range flows {
		if f.Traffic > 0 && g.TerminalByLID(f.To) != int(ends[i]) {
			d.add(ends[i], f.To, 1, f.Traffic)
		}
	}
	loads := make([]float64, len(static.Traffic))
	for c, x := range static.Traffic {
		loads[c] = g.Capacity().Load(int32(c), x)
	}
	if err := m.sample(ctx, d, loads); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// MeasureAdaptiveBalance is MeasureAdaptive of the routes that MeasureBalance counts.
func MeasureAdaptiveBalance(ctx context.Context, r *routes.Routes, class graph.Class, lids []mad.LID, sl uint8) (*AdaptiveLoad, error) {
	if !r.HasChoices() {
		return nil, nil
	}
	e, err := balanceEndpoints(r.Graph(), class, lids)
	if err != nil {
		return nil, err
	}
	flows := make([]int64, len(e.Is))
	for t, is := range e.Is {
		if is {
			flows[t] = 1
		}
	}
	return measureAll(ctx, r, e, flows, sl, r.Graph().Capacity().ByFastest())
}

// measureAll measures so many flows of each terminal to each LID that is wanted of another, as loads of
// capacity.
func measureAll(ctx context.Context, r *routes.Routes, e *verify.Endpoints, flows []int64, sl uint8, capacity *graph.Capacity) (*AdaptiveLoad, error) {
	g := r.Graph()
	counts, err := verify.CountRoutes(ctx, r, e, nil)
	if err != nil {
		return nil, err
	}
	var ends []int32
	for t, n := range flows {
		if n > 0 && g.Terminals()[t].Switch >= 0 {
			ends = append(ends, int32(t))
		}
	}
	var lids []mad.LID
	for lid, is := range e.Wanted {
		if t := g.TerminalByLID(mad.LID(lid)); is && t >= 0 && g.Terminals()[t].Switch >= 0 {
			lids = append(lids, mad.LID(lid))
		}
	}
	m, err := newMeasurement(ctx, r, ends, lids, sl)
	if err != nil {
		return nil, err
	}
	m.x.capacity = capacity
	groups, of := m.x.groups(ends, flows)
	d := newDemands(m.x)
	for i, lid := range lids {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		to := g.TerminalByLID(lid)
		for k, from := range groups {
			if k == of[to] {
				from.flows -= flows[to] // not to itself
			}
			if from.flows > 0 {
				d.add(from.first, lid, from.flows, 1)
			}
		}
	}
	static := make([]float64, len(counts))
	for c, n := range counts {
		static[c] = m.x.capacity.Load(int32(c), float64(n))
	}
	if err := m.sample(ctx, d, static); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// measurement collects the loads of samples.
type measurement struct {
	x    *choiceNet
	load AdaptiveLoad
}

func newMeasurement(ctx context.Context, r *routes.Routes, sources []int32, lids []mad.LID, sl uint8) (*measurement, error) {
	wanted := make([]bool, int(r.Graph().Top())+1)
	for _, lid := range lids {
		wanted[lid] = true
	}
	x, err := newChoiceNet(ctx, r, sources, wanted, sl)
	return &measurement{x: x, load: AdaptiveLoad{Static: Extremes{At: -1}, Ideal: Extremes{At: -1}, Bound: Extremes{At: -1}, Worst: Extremes{At: -1}}}, err
}

// sample adds a sample, whose static ports have loads static.
func (m *measurement) sample(ctx context.Context, d *demands, static []float64) error {
	list, err := d.list(ctx)
	if err != nil {
		return err
	}
	ideal, bound, err := m.x.ideal(ctx, list)
	if err != nil {
		return err
	}
	worst, err := m.x.worst(ctx, list)
	if err != nil {
		return err
	}
	l := &m.load
	l.Samples++
	l.Lost += d.lost
	l.Static.add(largest(static))
	l.Ideal.add(largest(ideal))
	l.Bound.add(bound, -1)
	l.Worst.add(largest(worst))
	l.IdealLoads, l.WorstLoads = ideal, worst
	return nil
}

// result is what was collected.
func (m *measurement) result() *AdaptiveLoad {
	l := &m.load
	for _, e := range []*Extremes{&l.Static, &l.Ideal, &l.Bound, &l.Worst} {
		e.Mean /= float64(l.Samples)
	}
	if l.Samples > 1 {
		l.IdealLoads, l.WorstLoads = nil, nil
	}
	return l
}

// add adds the largest load of a sample, and the channel with it; Mean is the sum so far.
func (e *Extremes) add(most float64, at int) {
	e.Mean += most
	if most > e.Max {
		e.Max, e.At = most, at
	}
}
