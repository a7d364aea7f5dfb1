package traffic

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
)

// An ideal split divides the traffic to each class of LIDs, at each switch, over its choices
// such that the largest load of a link is the smallest possible: a linear program. It is
// solved by conditional gradients (Frank and Wolfe, "An algorithm for quadratic programming",
// 1956) on the soft maximum of the loads, sum(exp(sharpness*load)): in each step all traffic
// of the gradient's cheapest paths is mixed into the split so far, as much as is best.
//
// Costs of links also have a lower bound: no split has a largest load below the cost of
// sending all traffic by cheapest paths, divided by the sum of the costs (duality). The first
// bounds have equal costs on the links of one switch. The split is good enough if its largest
// load is within idealGap of the best bound so far; the number of steps is limited, so the bound
// is a part of the result.
const (
	idealGap  = 0.01
	idealWork = 1e8 // visits of choices and links, unless minSteps need more
	minSteps  = 40
	maxSteps  = 4000

	// The sharpness, for loads whose largest is 1, grows from the first to the second within
	// the steps: low values find good splits of all loads, high values exact bounds. Each
	// probeEach-th step has probeSharpness: where few links decide, that ends at once.
	minSharpness   = 20
	maxSharpness   = 200
	probeSharpness = 1000
	probeEach      = 8

	// mixtureSteps is the number of steps of a bisection.
	mixtureSteps = 14

	// Paths whose costs differ by this part are equally cheap.
	tie = 1e-9
)

// splitter finds ideal splits.
type splitter struct {
	x      *choiceNet
	list   []*demand
	sums   sums
	memory []splitMemory // by worker
}

// splitMemory is the memory of a worker.
type splitMemory struct {
	flow, distance []float64 // by vertex
	hops           []hop     // of cheapest
	capacity       *graph.Capacity
}

// ideal returns the loads of an ideal split, by channel, and a lower bound on the largest load
// of any.
func (x *choiceNet) ideal(ctx context.Context, list []*demand) (best []float64, bound float64, err error) {
	s := &splitter{x: x, list: list, sums: sums{workers: x.g.Workers()}, memory: make([]splitMemory, x.g.Workers())}
	for i := range s.memory {
		s.memory[i] = splitMemory{flow: make([]float64, x.vertices()), distance: make([]float64, x.vertices()), capacity: x.capacity}
	}
	n := len(x.g.Channels())
	load, other, cost := make([]float64, n), make([]float64, n), make([]float64, n)
	if _, err := s.route(ctx, nil, load); err != nil {
		return nil, 0, err
	}
	best, bound = append(best, load...), x.cuts(list)
	least, _ := largest(load)
	steps := s.steps()
	for step := range steps + 1 {
		most, _ := largest(load)
		if most < least {
			copy(best, load)
			least = most
		}
		if step == steps || most == 0 || least <= bound*(1+idealGap) {
			break
		}
		sharpness := minSharpness * math.Pow(maxSharpness/minSharpness, float64(step)/float64(steps))
		if step%probeEach == 0 {
			sharpness = probeSharpness
		}
		sum := 0.0
		for c, l := range load {
			cost[c] = math.Exp(max(sharpness*(l/most-1), -60))
			sum += cost[c]
			cost[c] = x.capacity.Load(int32(c), cost[c]) // of a unit of traffic
		}
		total, err := s.route(ctx, cost, other)
		if err != nil {
			return nil, 0, err
		}
		bound = max(bound, total/sum)
		part := mixture(load, other, sharpness/most)
		for c := range load {
			load[c] += part * (other[c] - load[c])
		}
	}
	return best, min(bound, least), nil
}

// cuts is a lower bound on the largest load of any split: what leaves a switch, or comes to it
// to stay, over the capacity of the links that it may take.
func (x *choiceNet) cuts(list []*demand) (bound float64) {
	n := len(x.g.Switches())
	flow, links := make([]float64, 2*n), make([]float64, 2*n) // out of a switch, then into it
	seen := [2][]bool{make([]bool, len(x.g.Channels())), make([]bool, len(x.g.Channels()))}
	for _, d := range list {
		home := int32(x.g.Terminals()[x.g.TerminalByLID(d.class.lid)].Switch)
		begins := make(map[int32]bool, len(d.from)) // switches
		for _, from := range d.from {
			s := from.vertex / x.plfts
			begins[s] = true
			if s != home {
				flow[s] += from.amount
				flow[n+int(home)] += from.amount
			}
		}
		for _, p := range d.active {
			s := p.vertex / x.plfts
			for _, h := range p.hops {
				if h == noHop {
					continue
				}
				if begins[s] && !seen[0][h.channel] {
					seen[0][h.channel] = true
					links[s] += 1 / x.capacity.Load(h.channel, 1)
				}
				if h.to/x.plfts == home && !seen[1][h.channel] {
					seen[1][h.channel] = true
					links[n+int(home)] += 1 / x.capacity.Load(h.channel, 1)
				}
			}
		}
	}
	for i, l := range links {
		if l > 0 {
			bound = max(bound, flow[i]/l)
		}
	}
	return bound
}

// steps is how many there may be.
func (s *splitter) steps() int {
	work := 2 * mixtureSteps * len(s.x.g.Channels())
	for _, d := range s.list {
		for _, p := range d.active {
			work += 2 * len(p.hops)
		}
	}
	return min(max(minSteps, int(idealWork)/work), maxSteps)
}

// route sends all traffic by cheapest paths, over all of these evenly, and returns the cost;
// without costs by all choices, evenly at each switch.
func (s *splitter) route(ctx context.Context, cost, load []float64) (float64, error) {
	return s.sums.add(ctx, s.list, load, func(worker int, d *demand, load []float64) float64 {
		return s.memory[worker].send(d, cost, load)
	})
}

// send adds the traffic of a demand to load.
func (m *splitMemory) send(d *demand, cost, load []float64) (total float64) {
	if cost != nil {
		for _, p := range slices.Backward(d.active) {
			m.distance[p.vertex] = m.nearest(p.hops, cost)
		}
	}
	for _, from := range d.from {
		m.flow[from.vertex] += from.amount
		if cost != nil {
			total += from.amount * m.distance[from.vertex]
		}
	}
	for _, p := range d.active {
		v, hops := p.vertex, p.hops
		flow := m.flow[v]
		m.flow[v] = 0
		if cost != nil && len(hops) > 1 {
			hops = m.cheapest(hops, cost, m.distance[v]*(1+tie))
		}
		part := flow / float64(len(hops))
		for _, h := range hops {
			if h != noHop {
				load[h.channel] += m.capacity.Load(h.channel, part)
				m.flow[h.to] += part
			}
		}
	}
	return total
}

// nearest is the cost of a cheapest path by one of hops.
func (m *splitMemory) nearest(hops []hop, cost []float64) float64 {
	least := math.Inf(1)
	for _, h := range hops {
		if h == noHop {
			return 0
		}
		least = min(least, cost[h.channel]+m.distance[h.to])
	}
	return least
}

// cheapest are the hops with paths that cost no more than limit. They are valid until the next
// call.
func (m *splitMemory) cheapest(hops []hop, cost []float64, limit float64) []hop {
	m.hops = m.hops[:0]
	for _, h := range hops {
		if h == noHop || cost[h.channel]+m.distance[h.to] <= limit {
			m.hops = append(m.hops, h)
		}
	}
	return m.hops
}

// mixture is the part of other in a mixture with load whose soft maximum is least.
func mixture(load, other []float64, sharpness float64) float64 {
	low, high := 0.0, 1.0
	for range mixtureSteps {
		part := (low + high) / 2
		most := 0.0
		for c, l := range load {
			most = max(most, l+part*(other[c]-l))
		}
		slope := 0.0
		for c, l := range load {
			change := other[c] - l
			if z := sharpness * (l + part*change - most); change != 0 && z > -40 {
				slope += change * math.Exp(z)
			}
		}
		if slope > 0 {
			high = part
		} else {
			low = part
		}
	}
	return low
}

// worst is the most traffic that each link may get, by channel: the traffic of all flows which
// some choices send over it. For each link by itself switches can choose so; for all of them at
// once they cannot.
func (x *choiceNet) worst(ctx context.Context, list []*demand) ([]float64, error) {
	s := sums{workers: x.g.Workers()}
	memory := make([]reach, s.workers)
	load := make([]float64, len(x.g.Channels()))
	_, err := s.add(ctx, list, load, func(worker int, d *demand, load []float64) float64 {
		m := &memory[worker]
		m.capacity = x.capacity
		if m.vertices.place == nil {
			m.vertices.place, m.channels.place = make([]int32, x.vertices()), make([]int32, len(load))
		}
		m.add(d, load)
		return 0
	})
	return load, err
}

// reach has the sources whose packets may pass vertices and channels: the memory of a worker.
type reach struct {
	vertices, channels sourceSets
	capacity           *graph.Capacity
}

// add adds what each link may get of a demand.
func (m *reach) add(d *demand, load []float64) {
	words := (len(d.from) + 63) / 64
	m.vertices.reset(words)
	m.channels.reset(words)
	equal := true
	for i, from := range d.from {
		m.vertices.of(from.vertex)[i/64] |= 1 << (i % 64)
		equal = equal && from.amount == d.from[0].amount
	}
	for _, p := range d.active {
		for _, h := range p.hops {
			if h == noHop {
				continue
			}
			// By way of several private LFTs packets may come to one channel.
			next, channel := m.vertices.of(h.to), m.channels.of(h.channel)
			for w, word := range m.vertices.of(p.vertex) {
				next[w] |= word
				channel[w] |= word
			}
		}
	}
	for _, c := range m.channels.used {
		for w, word := range m.channels.of(c) {
			if equal {
				load[c] += m.capacity.Load(c, float64(bits.OnesCount64(word))*d.from[0].amount)
				continue
			}
			for ; word != 0; word &= word - 1 {
				load[c] += m.capacity.Load(c, d.from[w*64+bits.TrailingZeros64(word)].amount)
			}
		}
	}
}

// sourceSets are sets of sources, by vertex or channel.
type sourceSets struct {
	place []int32 // by key: its number from 1 on among the used keys
	used  []int32 // keys
	words int
	sets  []uint64
}

// reset forgets all sets.
func (s *sourceSets) reset(words int) {
	for _, key := range s.used {
		s.place[key] = 0
	}
	s.used, s.sets, s.words = s.used[:0], s.sets[:0], words
}

// of is the set of a key, empty at first. It is valid until the next call with a new key.
func (s *sourceSets) of(key int32) []uint64 {
	if s.place[key] == 0 {
		s.used = append(s.used, key)
		s.place[key] = int32(len(s.used))
		for range s.words {
			s.sets = append(s.sets, 0)
		}
	}
	return s.sets[int(s.place[key]-1)*s.words:][:s.words]
}

// sumBlocks is how many sums of loads are made at once. Each adds its demands in an order that does
// not depend on the number of workers, and so rounding does not.
const sumBlocks = 32

// sums has the memory for sums of loads.
type sums struct {
	workers int
	blocks  [sumBlocks][]float64 // by channel
	totals  [sumBlocks]float64
}

// add sets load, by channel, to the sum of what put adds for each demand, and returns the sum
// of what it returns.
func (s *sums) add(ctx context.Context, list []*demand, load []float64, put func(worker int, d *demand, load []float64) float64) (total float64, err error) {
	err = graph.Each(ctx, s.workers, sumBlocks, func(worker, b int) {
		if s.blocks[b] == nil {
			s.blocks[b] = make([]float64, len(load))
		}
		clear(s.blocks[b])
		s.totals[b] = 0
		for i := b; i < len(list); i += sumBlocks {
			s.totals[b] += put(worker, list[i], s.blocks[b])
		}
	})
	clear(load)
	for b, part := range s.blocks {
		total += s.totals[b]
		for c, x := range part {
			load[c] += x
		}
	}
	return total, err
}

// largest is the largest of loads, and the first channel with it; -1: none has any.
func largest(loads []float64) (most float64, at int) {
	at = -1
	for c, x := range loads {
		if x > most {
			most, at = x, c
		}
	}
	return most, at
}
