package suspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/routes"
)

// maxFlows is how many flows all measurements may have: groups in which each member sends to
// each other one have many.
const maxFlows = 1 << 22

// leastWeight is the least part of the packets of a measurement that counts. A part of the
// network that fewer packets cross, even at half speed, changes the measurement by less than
// measurements differ.
const leastWeight = 0.02

// entry is that a measurement crosses something: by part of its flows, the packets of which
// cross it with a weight. Of flows that end together, the slowest decides: part is 1.
type entry struct {
	m            int32
	weight, part float32
}

// slowdown returns the logarithm of the rate of a measurement whose packets cross a part that
// is slow by a factor.
func (e *entry) slowdown(factor float64) float64 {
	return math.Log(1 - float64(e.part)*(1-1/(1+float64(e.weight)*(1/factor-1))))
}

// hypothesis is a part that may be slow.
type hypothesis struct {
	Part
	ids     []int32 // ports that send, or a switch: numbers of crossings
	prior   float64
	entries []entry
	group   int // of hypotheses with equal entries
}

// model has the measurements that can be judged, and all hypotheses on them.
type model struct {
	ctx    context.Context
	r      *routes.Routes
	ends   *ends
	tracer *tracer
	flows  [][]flow  // by measurement
	value  []float64 // logarithms of rates, without the load that a round itself makes
	class  []int32
	judged []int32   // the measurements with enough others in their class
	each   [][]int32 // measurements by class
	cross  [][]entry // by number of crossing
	hyps   []hypothesis
	groups [][]entry // the entries of hypotheses with a group
	memory []float64 // of medians
}

// newModel finds the paths of measurements.
func newModel(ctx context.Context, r *routes.Routes, list []Measurement) (*model, *Result, error) {
	m := &model{ctx: ctx, r: r, ends: newEnds(r.Graph()), tracer: newTracer(r)}
	m.cross = make([][]entry, len(m.tracer.weight))
	res := &Result{Read: len(list)}
	unknown := map[string]bool{}
	classes := map[string]int32{}
	rounds := newRounds(m)
	largest := make([]entry, len(m.cross)) // scratch, by number of crossing
	var ids []int32
	var crossings []crossing
	flows := 0
	for i := range list {
		x := &list[i]
		if i&1023 == 0 && ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		switch x.State {
		case Empty:
			res.Empty++
			continue
		case Failed:
			res.Failed++
			continue
		}
		if !(x.Value > 0) || math.IsInf(x.Value, 0) {
			return nil, nil, fmt.Errorf("measurement %d: value %g; want a number above 0", i+1, x.Value)
		}
		if n := len(x.Group); x.Group != nil && n < 2 {
			return nil, nil, fmt.Errorf("measurement %d: a group of %d; want at least two members", i+1, n)
		}
		fl, missing, reason := m.ends.flows(x)
		for _, name := range missing {
			if !unknown[name] {
				unknown[name] = true
				res.Unknown = append(res.Unknown, name)
			}
		}
		if missing != nil {
			continue
		}
		if flows += len(fl); flows > maxFlows {
			return nil, nil, fmt.Errorf("the measurements have more than %d flows", maxFlows)
		}
		no := int32(len(m.value))
		ids = ids[:0]
		var paths [][]crossing // of a round
		for _, f := range fl {
			var broken string
			if crossings, broken = m.tracer.trace(f, crossings[:0]); broken != "" {
				reason = broken
				break
			}
			if x.Round != "" {
				paths = append(paths, slices.Clone(crossings))
			}
			for _, c := range crossings {
				e := &largest[c.id]
				if e.part == 0 {
					ids = append(ids, c.id)
				}
				e.part++
				if x.Both {
					e.weight += c.weight
				} else {
					e.weight = max(e.weight, c.weight)
				}
			}
		}
		if reason == "" {
			for _, id := range ids {
				if largest[id].weight < leastWeight {
					continue
				}
				e := entry{no, largest[id].weight, 1}
				if x.Both { // the value is a sum
					e.weight, e.part = e.weight/largest[id].part, largest[id].part/float32(len(fl))
				}
				m.cross[id] = append(m.cross[id], e)
			}
		}
		for _, id := range ids {
			largest[id] = entry{}
		}
		if reason != "" {
			res.NotRouted = append(res.NotRouted, x.name()+": "+reason)
			continue
		}
		value := math.Log(x.Value)
		class := x.Class
		if x.Time {
			value = -value
			class += fmt.Sprintf("\x00time, %d crossings", len(ids)) // a time depends on the length of the path
		}
		class += fmt.Sprintf("\x00%v %.4g", x.Both, m.nominal(fl))
		if x.Group != nil {
			class += fmt.Sprintf("\x00%d", len(fl))
		}
		c, ok := classes[class]
		if !ok {
			c = int32(len(m.each))
			classes[class] = c
			m.each = append(m.each, nil)
		}
		m.each[c] = append(m.each[c], no)
		m.value, m.class, m.flows = append(m.value, value), append(m.class, c), append(m.flows, fl)
		if x.Round != "" {
			rounds.add(x.Class+"\x00"+x.Round, no, paths)
		}
	}
	rounds.settle()
	m.leaveOutAlone(res)
	res.Used, res.Adaptive = len(m.judged), m.tracer.choices
	m.memory = make([]float64, len(m.value))
	m.addHypotheses()
	return m, res, nil
}

// leastClass is the number of measurements that a class needs: of fewer, the normal rate is
// unknown.
const leastClass = 3

// leaveOutAlone leaves out the measurements of small classes.
func (m *model) leaveOutAlone(res *Result) {
	for c, list := range m.each {
		if len(list) < leastClass {
			res.Alone += len(list)
			m.each[c] = nil
		}
	}
	for no := range m.value {
		if m.each[m.class[no]] != nil {
			m.judged = append(m.judged, int32(no))
		}
	}
	if res.Alone == 0 {
		return
	}
	for id, list := range m.cross {
		list = slices.DeleteFunc(list, func(e entry) bool { return m.each[m.class[e.m]] == nil })
		if m.cross[id] = list; len(list) == 0 {
			m.cross[id] = nil
		}
	}
}

// name returns what a measurement is called in notes.
func (x *Measurement) name() string {
	if x.Group == nil {
		return x.From + " to " + x.To
	}
	return "group " + strings.Join(x.Group[:min(len(x.Group), 3)], ", ")
}

// nominal returns the slowest nominal rate of the ports at the ends of flows; 0: unknown.
func (m *model) nominal(list []flow) float64 {
	least := math.Inf(1)
	for _, f := range list {
		for _, e := range []end{f.from, f.to} {
			least = min(least, capacity(m.r.Graph().Terminals()[e.terminal].Port))
		}
	}
	return least
}

// rounds has the load that measurements at the same time make.
type rounds struct {
	m    *model
	list map[string]*round
	keys []string
}

type round struct {
	load  map[int32]float64 // by port that sends
	of    []int32
	paths [][][]crossing
}

func newRounds(m *model) *rounds { return &rounds{m, map[string]*round{}, nil} }

func (r *rounds) add(key string, no int32, paths [][]crossing) {
	x := r.list[key]
	if x == nil {
		x = &round{load: map[int32]float64{}}
		r.list[key] = x
		r.keys = append(r.keys, key)
	}
	for _, path := range paths {
		for _, c := range path {
			if int(c.id) < r.m.tracer.ports {
				x.load[c.id] += float64(c.weight)
			}
		}
	}
	x.of, x.paths = append(x.of, no), append(x.paths, paths)
}

// settle takes the load of each round out of its measurements: a link that several flows share
// evenly gives each its part.
func (r *rounds) settle() {
	ports := r.m.r.Graph().Fabric().Ports()
	for _, key := range r.keys {
		x := r.list[key]
		for i, no := range x.of {
			share := 1.0
			for _, path := range x.paths[i] {
				first := 0.0
				for k, c := range path {
					if int(c.id) >= r.m.tracer.ports {
						continue
					}
					rate := capacity(&ports[c.id])
					if k == 0 {
						first = rate
					}
					room := 1.0
					if rate > 0 && first > 0 {
						room = rate / first
					}
					share = min(share, room/max(x.load[c.id], 1e-9))
				}
			}
			r.m.value[no] -= math.Log(share)
		}
	}
}

// The prior probabilities of parts: cables and adapters fail more often than whole switches.
// One direction of a link, or both, are equally probable. They are shares of all parts of the
// fabric, so that they do not depend on which parts were measured.
const (
	linkPrior    = 1
	adapterPrior = 0.5
	hostPrior    = 0.25
	switchPrior  = 0.1
)

// addHypotheses adds all parts that some measurement crosses.
func (m *model) addHypotheses() {
	f := m.r.Graph().Fabric()
	known := map[uint64]int{}
	add := func(p Part, prior float64, ids ...int32) {
		entries := m.merge(ids)
		if entries == nil {
			return
		}
		key := hash(entries)
		group, ok := known[key]
		if !ok {
			group = len(m.groups)
			known[key] = group
			m.groups = append(m.groups, entries)
		}
		m.hyps = append(m.hyps, hypothesis{p, ids, prior, m.groups[group], group})
	}
	ports := func(n *fabric.Node) (ids []int32) {
		for p := range n.Ports() {
			if q := p.Peer(); q != nil {
				ids = append(ids, int32(p.ID()), int32(q.ID()))
			}
		}
		return ids
	}
	hosts := map[string][]int32{}
	adapters := map[string]int{}
	var names []string
	total := 0.0
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil {
				continue
			}
			out, in := m.cross[p.ID()] != nil, m.cross[q.ID()] != nil
			if p.ID() < q.ID() {
				total += linkPrior
			}
			switch {
			case out && in:
				add(Part{Kind: Link, Port: p, OneWay: true}, linkPrior/4., int32(p.ID()))
				if p.ID() < q.ID() {
					add(Part{Kind: Link, Port: p}, linkPrior/2., int32(p.ID()), int32(q.ID()))
				}
			case out: // of the other direction nothing is known: it may be slow too
				add(Part{Kind: Link, Port: p, OneWay: true}, linkPrior*3/4., int32(p.ID()))
			}
		}
		if n.IsSwitch() {
			total += switchPrior
			add(Part{Kind: Switch, Node: n}, switchPrior, int32(m.tracer.ports+n.ID()))
			continue
		}
		ids := ports(n)
		total += adapterPrior
		add(Part{Kind: Adapter, Node: n}, adapterPrior, ids...)
		if host, ok := fabric.HostName(n.Name()); ok {
			if adapters[host] == 0 {
				names = append(names, host)
			}
			adapters[host]++
			hosts[host] = append(hosts[host], ids...)
		}
	}
	for _, host := range names {
		if adapters[host] > 1 {
			total += hostPrior
			add(Part{Kind: Host, Host: host}, hostPrior, hosts[host]...)
		}
	}
	for i := range m.hyps {
		m.hyps[i].prior /= total
	}
}

// merge returns the entries of several crossings, by measurement.
func (m *model) merge(ids []int32) (all []entry) {
	if len(ids) == 1 {
		return m.cross[ids[0]]
	}
	lists := 0
	for _, id := range ids {
		if list := m.cross[id]; list != nil {
			all = append(all, list...)
			lists++
		}
	}
	if lists < 2 {
		return all
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.m, b.m) })
	n := 0
	for i := range all {
		e := &all[i]
		if n == 0 || all[n-1].m != e.m {
			all[n] = *e
			n++
			continue
		}
		last := &all[n-1]
		if e.part < 1 || last.part < 1 { // a sum of flows, each of which crosses at most once
			part := last.part + e.part
			last.weight = (last.weight*last.part + e.weight*e.part) / part
			last.part = min(part, 1)
		} else {
			last.weight = max(last.weight, e.weight)
		}
	}
	return slices.Clip(all[:n])
}

// hash returns a number that is equal for equal entries (FNV-1a).
func hash(list []entry) uint64 {
	h := uint64(14695981039346656037)
	for _, e := range list {
		for _, x := range []uint32{uint32(e.m), math.Float32bits(e.weight), math.Float32bits(e.part)} {
			h = (h ^ uint64(x)) * 1099511628211
		}
	}
	return h
}

// quantile returns the element at a quantile of list, which it reorders.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(q*float64(len(list))), len(list)-1)]
}
