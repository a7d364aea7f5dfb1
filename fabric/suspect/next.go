package suspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Pair is a pair to measure: packets go from From to To.
type Pair struct {
	From, To *fabric.Port
	// Crosses are the candidates that make it slow.
	Crosses []Part
}

// Name returns a name by which Find finds a port: that of its node if this has no other port
// with a LID, else with the number of the port, or a GUID.
func Name(g *graph.Graph, p *fabric.Port) string {
	n := p.Node()
	if len(g.Fabric().NodeByName(n.Name())) != 1 || n.Name() == "" {
		return p.GUID().String()
	}
	linked := 0
	for q := range n.Ports() {
		if q.Peer() != nil {
			linked++
		}
	}
	if linked > 1 {
		return fmt.Sprintf("%s/%d", n.Name(), p.Num())
	}
	return n.Name()
}

// PlanOptions limit the pairs of Next.
type PlanOptions struct {
	// Busy are hosts that cannot run measurements.
	Busy []string
}

const (
	maxAlternatives = 24
	poolRandom      = 3000 // random pairs
	poolEnds        = 12   // ends of each kind for a candidate
	poolSeed        = 1
	solved          = 0.01 // bound on the probability of a wrong decision
)

// alternative is one of the explanations that measurements are to separate.
type alternative struct {
	parts  []Part
	ids    []int32 // none: no fault
	factor float64
	weight float64
}

// choice is a pair, and the logarithm of its rate by each alternative.
type choice struct {
	from, to int // terminals
	rate     []float64
	fresh    int // crossings that no measurement has
}

// Next chooses up to n pairs whose measurements separate the most probable candidates best:
// greedily, by the Bhattacharyya bound on the probability of deciding for the wrong one
// (Kailath, "The divergence and Bhattacharyya distance measures in signal selection", 1967).
// Where nothing is left to separate, the pairs cross what no measurement has crossed yet.
// The result is that of Find.
func Next(ctx context.Context, r *routes.Routes, list []Measurement, n int, o PlanOptions) ([]Pair, *Result, error) {
	m, res, err := newModel(ctx, r, list)
	if err != nil {
		return nil, nil, err
	}
	sigma, alts := priorDev, []alternative(nil)
	if res.Used > 0 {
		s, err := m.find()
		if err != nil {
			return nil, nil, err
		}
		s.report(res)
		sigma, alts = s.sigma, s.alternatives()
	}
	p := &planner{model: m, alts: alts, sigma: sigma, random: rand.New(rand.NewPCG(poolSeed, 0)), seen: map[[2]int]bool{}}
	p.addHosts(o.Busy)
	if err := p.fill(); err != nil {
		return nil, nil, err
	}
	return p.choose(n), res, nil
}

// alternatives returns those of the least certain fault, or those for one more fault and none.
func (s *state) alternatives() (list []alternative) {
	least, of := 1.0, -1
	for i, f := range s.faults {
		if c := s.distinct(&f.posterior); len(c) > 1 && c[0].weight < min(least, certain) {
			least, of = c[0].weight, i
		}
	}
	switch {
	case of >= 0:
		list = s.distinct(&s.faults[of].posterior)
	case s.more.fault > 1-certain:
		list = s.distinct(&s.more)
		for i := range list {
			list[i].weight *= s.more.fault
		}
		list = append(list, alternative{factor: 1, weight: 1 - s.more.fault})
	}
	return list
}

// distinct returns the most probable alternatives that some measurement could separate: those
// of other crossings.
func (s *state) distinct(p *posterior) (list []alternative) {
	if p.weight == nil {
		return nil
	}
	at := map[string]int{}
	for h, w := range p.weight {
		if !(w > 0.001) {
			continue
		}
		x := &s.hyps[h]
		ids := slices.Clone(x.ids)
		slices.Sort(ids)
		key := fmt.Sprint(ids)
		if i, ok := at[key]; ok {
			list[i].weight += w
			list[i].parts = append(list[i].parts, x.Part)
			continue
		}
		at[key] = len(list)
		list = append(list, alternative{[]Part{x.Part}, ids, p.factor[h], w})
	}
	slices.SortStableFunc(list, func(a, b alternative) int { return cmp.Compare(b.weight, a.weight) })
	return list[:min(len(list), maxAlternatives)]
}

// planner chooses pairs.
type planner struct {
	*model
	alts   []alternative
	sigma  float64
	random *rand.Rand
	hosts  []int // terminals that can measure
	free   map[int]bool
	seen   map[[2]int]bool
	pool   []choice
}

// addHosts finds the terminals that can measure.
func (p *planner) addHosts(busy []string) {
	not := map[int]bool{}
	for _, name := range busy {
		for _, e := range p.ends.find(name) {
			not[e.terminal] = true
		}
	}
	p.free = map[int]bool{}
	for i := range p.r.Graph().Terminals() {
		t := &p.r.Graph().Terminals()[i]
		if t.IsEndpoint(0) && t.Class&graph.ClassAN == 0 && t.Port.Node().Type() == mad.NodeTypeCA && t.Switch >= 0 && !not[i] {
			p.hosts = append(p.hosts, i)
			p.free[i] = true
		}
	}
}

// add adds a pair to the pool.
func (p *planner) add(from, to int) {
	if from == to || p.seen[[2]int{from, to}] || !p.free[from] || !p.free[to] || p.sameHost(from, to) {
		return
	}
	p.seen[[2]int{from, to}] = true
	list, broken := p.tracer.trace(flow{end{terminal: from}, end{terminal: to}}, nil)
	if broken != "" {
		return
	}
	weight := make(map[int32]float32, len(list))
	c := choice{from: from, to: to, rate: make([]float64, len(p.alts))}
	for _, x := range list {
		weight[x.id] = x.weight
		if p.cross[x.id] == nil {
			c.fresh++
		}
	}
	differs := false
	for i, a := range p.alts {
		e := entry{part: 1}
		for _, id := range a.ids {
			e.weight = max(e.weight, weight[id])
		}
		if e.weight > 0 {
			c.rate[i] = e.slowdown(a.factor)
		}
		differs = differs || c.rate[i] != c.rate[0]
	}
	if differs || len(p.alts) == 0 && c.fresh > 0 {
		p.pool = append(p.pool, c)
	}
}

// sameHost reports whether two terminals are ports of one host.
func (p *planner) sameHost(a, b int) bool {
	x, y := p.r.Graph().Terminals()[a].Port.Node(), p.r.Graph().Terminals()[b].Port.Node()
	h, ok := fabric.HostName(x.Name())
	g, also := fabric.HostName(y.Name())
	return x == y || ok && also && h == g
}

// fill fills the pool: pairs across each candidate, combinations of the ends that crossed it, and
// random pairs.
func (p *planner) fill() error {
	if len(p.hosts) < 2 {
		return nil
	}
	ports := p.r.Graph().Fabric().Ports()
	for _, a := range p.alts {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		var from, to []int
		for _, id := range a.ids[:min(len(a.ids), 2*poolEnds)] {
			for _, e := range spread(p.cross[id], poolEnds) {
				for _, f := range p.flows[e.m] {
					from, to = append(from, f.from.terminal), append(to, f.to.terminal)
				}
			}
			if int(id) < p.tracer.ports {
				f, t := p.across(&ports[id])
				from, to = append(from, f...), append(to, t...)
			}
		}
		for _, x := range spread(unique(from), 3*poolEnds) {
			for _, y := range spread(unique(to), 3*poolEnds) {
				p.add(x, y)
			}
			p.add(x, p.any())
			p.add(p.any(), x)
		}
		for _, y := range spread(unique(to), 3*poolEnds) {
			p.add(p.any(), y)
			p.add(y, p.any())
		}
	}
	for range poolRandom {
		p.add(p.any(), p.any())
	}
	return nil
}

func (p *planner) any() int { return p.hosts[p.random.IntN(len(p.hosts))] }

// across returns terminals whose packets may leave by a port, and the terminals that these go
// to.
func (p *planner) across(out *fabric.Port) (from, to []int) {
	g := p.r.Graph()
	if !out.Node().IsSwitch() {
		if t := g.TerminalOf(out); t >= 0 {
			from = append(from, t)
		}
		return from, nil
	}
	s := g.SwitchOf(out.Node())
	for _, t := range p.hosts {
		term := &g.Terminals()[t]
		if term.Switch == s {
			from = append(from, t)
		}
		if a := p.tracer.switches[s]; a != nil {
			if a.Choose(adaptive.Packet{LID: term.LID, Transport: adaptive.RC}, routes.Down(g, s)).Ports.Has(uint8(out.Num())) {
				to = append(to, t)
			}
		} else if int(p.r.Entry(int32(s), term.LID)) == out.Num() {
			to = append(to, t)
		}
	}
	if from == nil { // a switch without hosts: any host may be behind it
		from = spread(p.hosts, 3*poolEnds)
	}
	return spread(from, poolEnds), spread(to, poolEnds)
}

// choose chooses pairs from the pool.
func (p *planner) choose(n int) (list []Pair) {
	if len(p.alts) == 0 {
		return p.cover(n)
	}
	k := len(p.alts)
	apart := make([]float64, k*k) // the distance that the chosen pairs make
	bound := func(c *choice) (sum float64) {
		for a := range k {
			for b := range a {
				d := apart[a*k+b]
				if c != nil {
					x := (c.rate[a] - c.rate[b]) / p.sigma
					d += x * x / 8
				}
				sum += math.Sqrt(p.alts[a].weight*p.alts[b].weight) * math.Exp(-d)
			}
		}
		return sum
	}
	taken := make([]bool, len(p.pool))
	for now := bound(nil); len(list) < n && now > solved; {
		best, at := now, -1
		for i := range p.pool {
			if taken[i] {
				continue
			}
			if b := bound(&p.pool[i]); b < best-1e-12 {
				best, at = b, i
			}
		}
		if at < 0 {
			break
		}
		c := &p.pool[at]
		for a := range k {
			for b := range a {
				x := (c.rate[a] - c.rate[b]) / p.sigma
				apart[a*k+b] += x * x / 8
			}
		}
		taken[at], now = true, best
		pair := p.pair(c)
		for i, a := range p.alts {
			if c.rate[i] < 0 {
				pair.Crosses = append(pair.Crosses, a.parts[0])
			}
		}
		list = append(list, pair)
	}
	return list
}

// cover chooses the pairs that cross the most that nothing has crossed.
func (p *planner) cover(n int) (list []Pair) {
	for len(list) < n {
		best, at := 0, -1
		for i := range p.pool {
			if p.pool[i].fresh > best {
				best, at = p.pool[i].fresh, i
			}
		}
		if at < 0 {
			break
		}
		c := &p.pool[at]
		list = append(list, p.pair(c))
		crossed, _ := p.tracer.trace(flow{end{terminal: c.from}, end{terminal: c.to}}, nil)
		for _, x := range crossed {
			p.cross[x.id] = []entry{{}}
		}
		for i := range p.pool {
			if p.pool[i].fresh < best/2 {
				continue // it stays an upper bound
			}
			p.pool[i].fresh = 0
			path, _ := p.tracer.trace(flow{end{terminal: p.pool[i].from}, end{terminal: p.pool[i].to}}, nil)
			for _, x := range path {
				if p.cross[x.id] == nil {
					p.pool[i].fresh++
				}
			}
		}
	}
	return list
}

func (p *planner) pair(c *choice) Pair {
	t := p.r.Graph().Terminals()
	return Pair{From: t[c.from].Port, To: t[c.to].Port}
}

// spread returns up to n elements of list, at even distances.
func spread[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}

// unique returns the numbers of list, each once, in order.
func unique(list []int) []int {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
