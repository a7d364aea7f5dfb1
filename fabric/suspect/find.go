package suspect

import (
	"cmp"
	"context"
	"math"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// factors are the rates of a slow part that are weighed, relative to the normal one.
var factors = [...]float64{0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05}

// factorRange is the range of the logarithms of factors.
const factorRange = 3

// levels are the quantiles of a class that its normal rate is tried at: the median; and more
// where many measurements are far above it, as when a fault slows down most of them.
var levels = []float64{0.5, 0.75, 0.9}

// hopeless is how far the evidence for a factor may be below that for a larger one before
// smaller factors, which deviate even more, are not tried.
const hopeless = 25

const (
	freedom  = 4    // degrees of the distribution of deviations
	wild     = -5   // logarithm of how rare measurements are that went wrong: they may have any rate
	leastDev = 0.01 // relative: rates are not more exact
	priorDev = 0.05 // expected deviation, as by priorRuns measurements
	priorRun = 4
	odds     = 1   // of a fault, before any measurement
	moreOdds = 0.5 // of one more
)

// Find judges what the measurements of list show about the network of r.
//
// Time: O(M*P*F*log M) for M measurements with paths of P parts, and F faults.
func Find(ctx context.Context, r *routes.Routes, list []Measurement) (*Result, error) {
	m, res, err := newModel(ctx, r, list)
	if err != nil || res.Used == 0 {
		return res, err
	}
	best, err := m.find()
	if err != nil {
		return nil, err
	}
	best.report(res)
	return res, nil
}

// find returns the most probable state.
func (m *model) find() (best *state, err error) {
	for _, level := range levels {
		s := m.start(level)
		if level > levels[0] && best != nil && !best.wide {
			break
		}
		if err := s.search(); err != nil {
			return nil, err
		}
		if best == nil || s.total() > best.total()+1e-9 {
			best = s
		}
	}
	return best, nil
}

// accepted is a hypothesis that holds, and its factor.
type accepted struct {
	h      int
	factor float64
	posterior
}

// posterior is the probability of each hypothesis, and of one being true.
type posterior struct {
	weight []float64 // by hypothesis; the sum of all is 1
	factor []float64 // the most likely
	fault  float64   // the probability of a fault
	log    float64   // logarithm of its odds
}

// state is a set of faults.
type state struct {
	*model
	base   []float64 // by class
	faults []accepted
	pred   []float64 // by measurement: what the faults explain, at most 0
	sigma  float64
	wide   bool // without faults, many measurements are far above the normal rate
	more   posterior
}

// start returns the state without a fault.
func (m *model) start(level float64) *state {
	s := &state{model: m, pred: make([]float64, len(m.value)), base: make([]float64, len(m.each))}
	s.rebase(level)
	x := s.memory[:0]
	for _, no := range s.judged {
		x = append(x, s.deviation(int(no), 0))
	}
	s.wide = quantile(x, 0.9) > 2*s.sigma
	return s
}

// rebase estimates the normal rate of each class, and the scale of deviations.
func (s *state) rebase(level float64) {
	for c, list := range s.each {
		x := s.memory[:0]
		for _, no := range list {
			x = append(x, s.value[no]-s.pred[no])
		}
		s.base[c] = quantile(x, level)
	}
	x := s.memory[:0]
	for _, no := range s.judged {
		x = append(x, s.deviation(int(no), s.pred[no]))
	}
	middle := quantile(x, 0.5)
	for i := range x {
		x[i] = math.Abs(x[i] - middle)
	}
	n := float64(len(x))
	dev := 1.4826 * quantile(x, 0.5) // of a normal distribution
	s.sigma = max(math.Sqrt((n*dev*dev+priorRun*priorDev*priorDev)/(n+priorRun)), leastDev)
}

// deviation returns how far a measurement is from what pred explains.
func (s *state) deviation(no int, pred float64) float64 {
	return s.value[no] - s.base[s.class[no]] - pred
}

// likelihood returns the logarithm of that of a deviation, but for a constant. It has a lower
// bound, so that one measurement alone is no proof.
func (s *state) likelihood(deviation float64) float64 {
	x := deviation / s.sigma
	return max(-(freedom+1)/2.*math.Log1p(x*x/freedom), wild)
}

// total returns the logarithm of the probability of the state.
func (s *state) total() float64 {
	sum := -float64(len(s.judged)) * math.Log(s.sigma)
	for _, no := range s.judged {
		sum += s.likelihood(s.deviation(int(no), s.pred[no]))
	}
	for _, f := range s.faults {
		sum += math.Log(s.hyps[f.h].prior * moreOdds / float64(len(factors)))
	}
	return sum
}

// predict sets pred to what all faults but one explain: the slowest part decides.
func (s *state) predict(without int) {
	clear(s.pred)
	for i, f := range s.faults {
		if i == without {
			continue
		}
		for _, e := range s.hyps[f.h].entries {
			s.pred[e.m] = min(s.pred[e.m], e.slowdown(f.factor))
		}
	}
}

// search adds faults while they are certain.
func (s *state) search() error {
	for {
		p, err := s.judge(len(s.faults))
		if err != nil {
			return err
		}
		if s.more = p; p.fault < certain || len(s.faults) == maxFaults {
			break
		}
		h := largest(p.weight)
		s.faults = append(s.faults, accepted{h, s.refine(h, p.factor[h]), p})
		s.predict(-1)
		s.rebase(0.5)
	}
	// Each fault again, beside the others.
	for range 2 {
		if len(s.faults) == 0 {
			break
		}
		for i := range s.faults {
			s.predict(i)
			p, err := s.judge(i)
			if err != nil {
				return err
			}
			h := largest(p.weight)
			s.faults[i] = accepted{h, s.refine(h, p.factor[h]), p}
		}
		s.predict(-1)
		s.rebase(0.5)
		p, err := s.judge(len(s.faults))
		if err != nil {
			return err
		}
		s.more = p
	}
	return nil
}

// judge returns the probabilities of all hypotheses beside the faults in force, of which
// fault i is not one.
func (s *state) judge(i int) (posterior, error) {
	p := posterior{weight: make([]float64, len(s.hyps)), factor: make([]float64, len(s.hyps))}
	now := make([]float64, len(s.value))
	for no := range now {
		now[no] = s.likelihood(s.deviation(no, s.pred[no]))
	}
	taken := map[int32]bool{}
	for k, f := range s.faults {
		if k != i {
			for _, id := range s.hyps[f.h].ids {
				taken[id] = true
			}
		}
	}
	evidence, factor := make([]float64, len(s.groups)), make([]float64, len(s.groups))
	if err := graph.Each(s.ctx, s.r.Graph().Workers(), len(s.groups), func(_, k int) {
		evidence[k], factor[k] = s.evidence(s.groups[k], now)
	}); err != nil {
		return p, err
	}
	most := math.Inf(-1)
	for h := range s.hyps {
		x := &s.hyps[h]
		p.weight[h] = math.Inf(-1)
		if slices.ContainsFunc(x.ids, func(id int32) bool { return taken[id] }) {
			continue
		}
		p.weight[h], p.factor[h] = evidence[x.group]+math.Log(x.prior), factor[x.group]
		most = max(most, p.weight[h])
	}
	if math.IsInf(most, -1) {
		return p, nil
	}
	sum := 0.0
	for h, w := range p.weight {
		p.weight[h] = math.Exp(w - most)
		sum += p.weight[h]
	}
	for h := range p.weight {
		p.weight[h] /= sum
	}
	p.log = most + math.Log(sum) + math.Log(odds)
	if i > 0 {
		p.log += math.Log(moreOdds)
	}
	p.fault = 1 / (1 + math.Exp(-p.log))
	return p, nil
}

// evidence returns the logarithm of the Bayes factor of a hypothesis with these entries, over
// all factors, and the most likely factor. The average over factors is that over a grid or,
// where the peak lies between its points, the peak by its width (Laplace's method).
func (s *state) evidence(list []entry, now []float64) (log, factor float64) {
	var gains [len(factors)]float64
	best, tried := 0, 0
	for i, f := range factors {
		tried++
		gains[i] = s.gain(list, now, f)
		if gains[i] > gains[best] {
			best = i
		} else if gains[i] < gains[best]-hopeless {
			break
		}
	}
	sum := 0.0
	for i := range tried {
		sum += math.Exp(gains[i] - gains[best])
	}
	log, factor = gains[best]+math.Log(sum/float64(len(factors))), factors[best]
	implied := s.implied(list)
	if len(implied) == 0 {
		return log, factor
	}
	width := 2.5 * s.sigma / math.Sqrt(float64(len(implied))) // sqrt(2*pi) deviations of the mean
	for _, q := range []float64{0.25, 0.5, 0.75} {
		f := quantile(implied, q)
		if peak := s.gain(list, now, f) + math.Log(min(width/factorRange, 1)); peak > log {
			log, factor = peak, f
		}
	}
	return log, factor
}

// gain returns how much more likely the entries are if the part is slow by a factor.
func (s *state) gain(list []entry, now []float64, f float64) (sum float64) {
	whole := math.Log(f)
	for k := range list {
		e := &list[k]
		slow := whole
		if e.weight < 1 || e.part < 1 {
			slow = e.slowdown(f)
		}
		if slow < s.pred[e.m] {
			sum += s.likelihood(s.deviation(int(e.m), slow)) - now[e.m]
		}
	}
	return sum
}

// implied returns the factors that explain each slow measurement exactly.
func (s *state) implied(list []entry) (found []float64) {
	for k := range list {
		e := &list[k]
		d := s.deviation(int(e.m), 0)
		if d > s.pred[e.m]-2*s.sigma {
			continue
		}
		f := 0.0
		if rate := 1 - (1-math.Exp(d))/float64(e.part); rate > 0 {
			f = float64(e.weight) / (1/rate - 1 + float64(e.weight))
		}
		found = append(found, min(max(f, factors[len(factors)-1]), factors[0]))
	}
	return found
}

// refine returns the most likely factor near one of factors.
func (s *state) refine(h int, factor float64) float64 {
	low, high := max(0.8*factor, 0.02), min(1.25*factor, 0.99)
	gain := func(f float64) (sum float64) {
		for _, e := range s.hyps[h].entries {
			sum += s.likelihood(s.deviation(int(e.m), min(e.slowdown(f), s.pred[e.m])))
		}
		return sum
	}
	for range 12 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if gain(a) < gain(b) {
			low = a
		} else {
			high = b
		}
	}
	return (low + high) / 2
}

// largest returns the place of the largest number, the first of equal ones.
func largest(list []float64) (at int) {
	for i, x := range list {
		if x > list[at] {
			at = i
		}
	}
	return at
}

// report fills in a result.
func (s *state) report(res *Result) {
	res.Noise = s.sigma
	limit := s.slowLimit()
	for _, no := range s.judged {
		if s.deviation(int(no), 0) < limit {
			res.Slow++
			if s.deviation(int(no), s.pred[no]) < limit {
				res.Unexplained++
			}
		}
	}
	for i := range s.faults {
		f := &s.faults[i]
		s.predict(i)
		res.Faults = append(res.Faults, Fault{f.fault, s.candidates(&f.posterior, f.factor)})
	}
	s.predict(-1)
	res.Best, res.Probability = s.candidates(&s.more, 0), s.more.fault
	slices.SortStableFunc(res.Faults, func(a, b Fault) int {
		return cmp.Compare(b.Candidates[0].Slow, a.Candidates[0].Slow)
	})
}

// slowLimit returns the deviation of a measurement that is slow.
func (s *state) slowLimit() float64 { return -max(3*s.sigma, 0.1) }

// candidates returns the most probable parts. Variants of a part count together, and so do
// parts with equal entries.
func (s *state) candidates(p *posterior, first float64) (list []Candidate) {
	if p.weight == nil {
		return nil
	}
	order := make([]int, len(p.weight))
	for h := range order {
		order[h] = h
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.weight[b], p.weight[a]) })
	rows, keys := map[any]int{}, map[int]int{}
	for _, h := range order {
		x := &s.hyps[h]
		w := p.weight[h]
		if w < 1e-6 {
			break
		}
		row, ok := rows[x.id()]
		if !ok {
			row, ok = keys[x.group]
			if ok { // another part that nothing separates from this one
				list[row].Probability += w
				list[row].Same = append(list[row].Same, x.Part)
				rows[x.id()] = row
				continue
			}
			c := Candidate{Part: x.Part, Probability: w, Factor: p.factor[h], Crossed: len(x.entries)}
			if len(list) == 0 && first > 0 {
				c.Factor = first
			}
			for _, e := range x.entries {
				if s.deviation(int(e.m), s.pred[e.m]) < min(e.slowdown(c.Factor)-s.pred[e.m], 0)/2 {
					c.Slow++
				}
			}
			rows[x.id()], keys[x.group] = len(list), len(list)
			list = append(list, c)
			continue
		}
		list[row].Probability += w
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(b.Probability, a.Probability) })
	list = slices.DeleteFunc(list, func(c Candidate) bool { return c.Probability < 0.001 })
	return list[:min(len(list), maxCandidates)]
}

// id identifies a part, whatever its direction.
func (p *Part) id() any {
	switch p.Kind {
	case Link:
		q := p.Port.Peer()
		return [2]int{min(p.Port.ID(), q.ID()), -1}
	case Host:
		return p.Host
	}
	return [2]int{p.Node.ID(), int(p.Kind)}
}
