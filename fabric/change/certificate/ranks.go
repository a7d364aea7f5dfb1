package certificate

import (
	"context"
	"math/bits"
	"slices"
)

// Make finds the ranks and positions by which the rounds of c are proven, and puts them
// into c. The error is a *FailureError if they do not exist, or the end of ctx.
func Make(ctx context.Context, sub *Subnet, c *Certificate) error {
	c.Ranks, c.Orders = nil, nil
	p, err := newProof(sub, c)
	if err != nil || c.EndOnly {
		return err
	}
	var ranks []uint32
	p.rank = func(round int32) error {
		if err := p.findRanks(round); err != nil {
			return err
		}
		ranks = append(ranks, p.ranks...)
		return nil
	}
	var found []*dependencies
	if !c.AcceptCreditLoops {
		for range p.epochs {
			found = append(found, p.newDependencies())
		}
		p.depends = func(e int, v, w int32) error {
			found[e].add(v, w)
			return nil
		}
	}
	if err := p.each(ctx); err != nil {
		return err
	}
	c.Ranks = Pack(ranks)
	for _, d := range found {
		edges := d.edges()
		positions, err := levels(len(d.first)-1, edges, func(between []int32) error {
			pairs := map[[2]int32]bool{}
			for _, i := range between {
				pairs[[2]int32{edges[i].low, edges[i].high}] = true
			}
			err := p.removeOld(ctx, pairs)
			for _, i := range between {
				edges[i].equal = !pairs[[2]int32{edges[i].low, edges[i].high}]
			}
			return err
		})
		if err != nil {
			return err
		}
		c.Orders = append(c.Orders, Pack(positions))
	}
	return nil
}

// findRanks gives the switches the lowest ranks that a round allows.
func (p *proof) findRanks(round int32) error {
	var edges []edge
	var by []uint8 // by edge: the port
	failing := make([]bool, len(p.ranks))
	add := func(s int32, port uint8) {
		switch lead := p.lead(s, port); {
		case lead >= 0:
			edges, by = append(edges, edge{low: p.channels[lead].to, high: s}), append(by, port)
		case lead != leadsToEnd(p.to):
			failing[s] = true
		}
	}
	for s := range p.ranks {
		for _, port := range p.ports(int32(s), round) {
			add(int32(s), port)
		}
	}
	ranks, err := levels(len(p.ranks), edges, func(between []int32) error {
		for _, i := range between {
			if e := &edges[i]; p.keepsLoop(e.high, by[i], e.low, round) {
				e.equal, failing[e.high] = true, true
			}
		}
		return nil
	})
	if err != nil {
		return failure("LID %d: with some order of the writes of a round packets loop", p.lid)
	}
	order := make([]int32, len(ranks))
	for s := range order {
		order[s] = int32(s)
	}
	slices.SortFunc(order, func(a, b int32) int { return int(ranks[a]) - int(ranks[b]) })
	copy(p.ranks, ranks)
	for _, s := range order {
		for _, port := range p.ports(s, round) {
			if lead := p.lead(s, port); lead >= 0 && failing[p.channels[lead].to] {
				failing[s] = true
			}
		}
		if failing[s] {
			p.ranks[s] += p.fails()
		}
	}
	return nil
}

// keepsLoop reports whether a port leads from a switch to the next one on a loop that is
// there before the change, all of whose entries may still be in force.
func (p *proof) keepsLoop(s int32, port uint8, next, round int32) bool {
	if !slices.Contains(p.begun(s), port) {
		return false
	}
	seen := make([]bool, len(p.switches))
	for queue := []int32{next}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == s {
			return true
		}
		for _, port := range p.ports(at, round) {
			if lead := p.lead(at, port); lead >= 0 && slices.Contains(p.begun(at), port) && !seen[p.channels[lead].to] {
				seen[p.channels[lead].to] = true
				queue = append(queue, p.channels[lead].to)
			}
		}
	}
	return false
}

// edge states that the number of the first vertex is lower than the number of the second, or
// equal to it.
type edge struct {
	low, high int32
	equal     bool
}

// levels numbers vertices so that edges lead to higher numbers, each as low as possible.
// Where edges are on or behind cycles, mark says which of these may lead to an equal one.
func levels(n int, edges []edge, mark func(between []int32) error) ([]uint32, error) {
	level, lower := make([]uint32, n), make([]int32, n)
	first := make([]int32, n+2) // in out, by vertex
	for _, e := range edges {
		first[e.low+2]++
		lower[e.high]++
	}
	for v := range n {
		first[v+2] += first[v+1]
	}
	out := make([]int32, len(edges))
	for i, e := range edges {
		out[first[e.low+1]] = int32(i)
		first[e.low+1]++
	}
	var queue []int32
	for v := range lower {
		if lower[v] == 0 {
			queue = append(queue, int32(v))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, i := range out[first[queue[0]]:first[queue[0]+1]] {
			w := edges[i].high
			level[w] = max(level[w], level[queue[0]]+1)
			if lower[w]--; lower[w] == 0 {
				queue = append(queue, w)
			}
		}
	}
	var between []int32
	for i, e := range edges {
		if lower[e.low] > 0 {
			between = append(between, int32(i))
		}
	}
	if len(between) == 0 {
		return level, nil
	}
	if err := mark(between); err != nil {
		return nil, err
	}
	for v := range lower {
		if lower[v] > 0 {
			queue = append(queue, int32(v))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, i := range out[first[queue[0]]:first[queue[0]+1]] {
			w, l := edges[i].high, level[queue[0]]
			if !edges[i].equal {
				l++
			}
			if l >= uint32(n) {
				return nil, failure("no order of channels exists: with some order of the writes of a round packets may deadlock in a credit loop")
			}
			if level[w] < l {
				level[w] = l
				queue = append(queue, w)
			}
		}
	}
	return level, nil
}

// dependencies are the dependencies of one epoch: a bit for each pair of a channel and a
// channel that leaves the switch to which it leads. Lanes are counted one by one.
type dependencies struct {
	p       *proof
	first   []int // in bits, by channel
	bits    []uint64
	leaving []int32 // by switch: its first channel; and the end
}

func (p *proof) newDependencies() *dependencies {
	d := &dependencies{p: p, first: []int{0}, leaving: make([]int32, len(p.switches)+1)}
	for i, c := range p.channels { // by switch
		d.leaving[c.from+1] = int32(i) + 1
	}
	for s := range p.switches {
		d.leaving[s+1] = max(d.leaving[s], d.leaving[s+1])
	}
	for _, c := range p.channels {
		words := (int(d.leaving[c.to+1]-d.leaving[c.to])*p.cert.Lanes + 63) / 64
		for range p.cert.Lanes {
			d.first = append(d.first, d.first[len(d.first)-1]+words)
		}
	}
	d.bits = make([]uint64, d.first[len(d.first)-1])
	return d
}

// base returns the first channel that may follow v.
func (d *dependencies) base(v int32) int32 {
	lanes := int32(d.p.cert.Lanes)
	return d.leaving[d.p.channels[v/lanes].to] * lanes
}

func (d *dependencies) add(v, w int32) {
	bit := int(w - d.base(v))
	d.bits[d.first[v]+bit/64] |= 1 << (bit % 64)
}

func (d *dependencies) edges() (edges []edge) {
	for v := range len(d.first) - 1 {
		base := d.base(int32(v))
		for i, word := range d.bits[d.first[v]:d.first[v+1]] {
			for ; word != 0; word &= word - 1 {
				edges = append(edges, edge{low: int32(v), high: base + int32(i*64+bits.TrailingZeros64(word))})
			}
		}
	}
	return edges
}
