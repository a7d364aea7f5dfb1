package order

import (
	"slices"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// leg is the part of a change between two drains, between two versions of the tables.
type leg struct {
	*net
	in       *Input
	from, to *routes.Routes
	// ordered are LIDs, a bit each by block, whose entries change from the destination
	// backwards: each after the next switch that changes on the new path. A packet at a
	// switch that has changed then meets only switches that have changed; a packet at
	// another switch follows the old path until it reaches one (RFC 6976 has this order
	// for routers).
	ordered []uint64
	extra   map[int][]precedence // by block
}

// precedence states that one switch changes its entry for a LID before another does and,
// if set, that the packets that it sent before have left by then.
type precedence struct {
	lid           mad.LID
	before, after int32
	drain         bool
}

// placedWrite is a write with its round.
type placedWrite struct {
	round int32
	certificate.Write
}

// span is a pair of rounds between which a drain must be: after one of first to last.
type span struct{ first, last int32 }

// rounds places the writes in as few rounds as the precedences allow. It returns nil and
// false if they contradict each other.
func (l *leg) rounds() (list []certificate.Round, drains []int32, ok bool) {
	blocks := max(int(l.from.Top()), int(l.to.Top()))/mad.LFTBlock + 1
	differ := make([][]int32, blocks) // the switches whose block changes
	for _, sd := range l.to.Diff(l.from).Switches {
		for _, b := range sd.Blocks {
			differ[b] = append(differ[b], int32(sd.Switch))
		}
	}
	writes, spans := make([][]placedWrite, blocks), make([][]span, blocks)
	wrong := make([]bool, blocks)
	workers := make([]*placer, l.g.Workers())
	l.each(blocks, func(worker, b int) {
		if workers[worker] == nil {
			workers[worker] = newPlacer(l)
		}
		var fits bool
		writes[b], spans[b], fits = workers[worker].place(b, differ[b])
		wrong[b] = !fits
	})
	if slices.Contains(wrong, true) {
		return nil, nil, false
	}
	for _, of := range writes {
		for i := range of {
			r := int(of[i].round)
			for len(list) <= r {
				list = append(list, certificate.Round{})
			}
			list[r].Writes = append(list[r].Writes, of[i].Write)
		}
	}
	return list, drainRounds(slices.Concat(spans...)), true
}

// drainRounds returns the fewest rounds after which to drain so that each span has a drain: each
// is the last possible round of the span that ends first.
func drainRounds(spans []span) (after []int32) {
	slices.SortFunc(spans, func(a, b span) int { return int(a.last - b.last) })
	for _, s := range spans {
		if n := len(after); n == 0 || after[n-1] < s.first {
			after = append(after, s.last)
		}
	}
	return after
}

// placer places the writes of blocks, one by one. Each worker has its own. Its
// graph has a vertex for the block of each switch that changes. If the blocks of a
// strongly connected component cannot be written in any order, they have a vertex for
// each LID instead, and are written more than once. Each LID also has a barrier: a vertex
// between the entries that must be first and the entries that must be last.
type placer struct {
	l        *leg
	old, new []uint8 // entries of the block, by LID, then switch
	switches []int32 // the switches that change
	index    []int32 // by switch that changes: its place in switches
	split    []bool  // by place: whether there is a vertex for each LID
	barriers int32   // the number of the first barrier, and of all other vertices
	edges    []edge
	level    []int32
}

// edge is a precedence between vertices.
type edge struct {
	from, to int32
	drain    bool
}

func newPlacer(l *leg) *placer {
	n := l.n
	return &placer{l: l, old: make([]uint8, mad.LFTBlock*n), new: make([]uint8, mad.LFTBlock*n), index: make([]int32, n)}
}

// place assigns each write of block b a round.
func (p *placer) place(b int, switches []int32) ([]placedWrite, []span, bool) {
	l := p.l
	if p.switches = switches; len(switches) == 0 {
		return nil, nil, true
	}
	for i, s := range switches {
		p.index[s] = int32(i)
	}
	p.split = make([]bool, len(p.switches))
	p.level = make([]int32, len(p.switches))
	p.edges = p.edges[:0]
	if l.ordered[b] != 0 || len(l.extra[b]) > 0 {
		for s := range l.n {
			column(p.old[s:], l.from.Row(s), b, l.n, l.ordered[b])
			column(p.new[s:], l.to.Row(s), b, l.n, l.ordered[b])
		}
		p.precede(b)
		if !p.levels() {
			p.splitCycles()
			p.precede(b)
			if !p.levels() {
				return nil, nil, false
			}
		}
	}
	var spans []span
	for _, e := range p.edges {
		if e.drain {
			spans = append(spans, span{p.level[e.from], p.level[e.to] - 1})
		}
	}
	return p.writes(b), spans, true
}

// vertex returns the vertex of the entry of a switch for LID i of the block, which
// changes.
func (p *placer) vertex(s int32, i int) int32 {
	at := p.index[s]
	if p.split[at] {
		return int32(len(p.switches)*(i+1)) + at
	}
	return at
}

// barrier returns the barrier of LID i of the block.
func (p *placer) barrier(i int) int32 { return p.barriers + int32(i) }

// vertices returns the number of vertices.
func (p *placer) vertices() int { return int(p.barriers) + mad.LFTBlock }

// rounds returns how many rounds a vertex takes: a barrier writes nothing.
func (p *placer) rounds(v int32) int32 {
	if v >= p.barriers {
		return 0
	}
	return 1
}

// precede creates the edges.
func (p *placer) precede(b int) {
	p.edges = p.edges[:0]
	p.barriers = int32(len(p.switches))
	if slices.Contains(p.split, true) {
		p.barriers += int32(len(p.switches) * mad.LFTBlock)
	}
	for i := range mad.LFTBlock {
		if p.l.ordered[b]>>i&1 != 0 {
			p.backwards(b, i)
		}
	}
	for _, x := range p.l.extra[b] {
		i := int(x.lid) % mad.LFTBlock
		if v, w := p.vertex(x.before, i), p.vertex(x.after, i); v != w {
			p.edges = append(p.edges, edge{v, w, x.drain})
		}
	}
}

// backwards orders the entries for LID i from the destination backwards. Entries that do
// not lead to the LID are last.
func (p *placer) backwards(b, i int) {
	n := p.l.n
	old, new := p.old[i*n:][:n], p.new[i*n:][:n]
	terminal := p.l.terminal(b*mad.LFTBlock + i)
	if terminal < 0 {
		return
	}
	for _, s := range p.switches {
		if old[s] == new[s] {
			continue
		}
		v := p.vertex(s, i)
		next, arrives := p.newWay(s, graph.ToTerminal(terminal), old, new)
		if !arrives {
			p.edges = append(p.edges, edge{from: p.barrier(i), to: v})
			continue
		}
		if next != noSwitch {
			if w := p.vertex(next, i); w != v {
				p.edges = append(p.edges, edge{from: w, to: v})
			}
		}
		p.edges = append(p.edges, edge{from: v, to: p.barrier(i)})
	}
}

// noSwitch stands for a missing switch.
const noSwitch = -1

// newWay follows the new entries for a LID from switch s. It returns the next switch on
// the path whose entry changes, or noSwitch, and whether the path leads to the LID.
func (p *placer) newWay(s int32, to graph.Target, old, new []uint8) (next int32, arrives bool) {
	next = noSwitch
	for range p.l.n {
		target := p.l.target(s, new[s])
		if !target.IsChannel() {
			return next, target == to
		}
		s = p.l.channels[target].To
		if next == noSwitch && old[s] != new[s] {
			next = s
		}
	}
	return next, false // a loop
}

// levels assigns each vertex the lowest round after all vertices that precede it. It returns
// false if there is a cycle.
func (p *placer) levels() bool {
	into := make([]int32, p.vertices())
	for _, e := range p.edges {
		into[e.to]++
	}
	first, out := adjacency(p.vertices(), p.edges)
	p.level = make([]int32, p.vertices())
	var queue []int32
	for v := range int32(p.vertices()) {
		if into[v] == 0 {
			queue = append(queue, v)
		}
	}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		next := p.level[v] + p.rounds(v)
		for _, w := range out[first[v]:first[v+1]] {
			p.level[w] = max(p.level[w], next)
			if into[w]--; into[w] == 0 {
				queue = append(queue, w)
			}
		}
	}
	return len(queue) == p.vertices()
}

// splitCycles splits the blocks of the strongly connected components.
func (p *placer) splitCycles() {
	for _, c := range components(p.vertices(), p.edges) {
		if len(c) < 2 {
			continue
		}
		for _, v := range c {
			if int(v) < len(p.switches) {
				p.split[v] = true
			}
		}
	}
}

// writes returns the writes of all switches: one for a block, and for a split block one
// for each round in which a LID of it changes.
func (p *placer) writes(b int) (list []placedWrite) {
	for at, s := range p.switches {
		w := placedWrite{p.level[at], p.l.in.write(int(s), b, blockOf(p.l.to.Row(int(s)), b))}
		if !p.split[at] {
			list = append(list, w)
			continue
		}
		from := blockOf(p.l.from.Row(int(s)), b)
		var rounds []int32
		for i := range from {
			if from[i] != w.Data[i] && p.moves(b, i) {
				rounds = append(rounds, p.level[p.vertex(s, i)])
			}
		}
		slices.Sort(rounds)
		rounds = slices.Compact(rounds)
		if len(rounds) == 0 {
			rounds = []int32{0}
		}
		for k, round := range rounds {
			step := placedWrite{round, certificate.Write{Change: w.Change, Data: slices.Clone(w.Data)}}
			for i := range from {
				if k < len(rounds)-1 && (!p.moves(b, i) || p.level[p.vertex(s, i)] > round) {
					step.Data[i] = from[i]
				}
			}
			list = append(list, step)
		}
	}
	return list
}

// moves reports whether LID i of the block has precedences. LIDs without precedences
// change with the last write of a block.
func (p *placer) moves(b, i int) bool {
	return p.l.ordered[b]>>i&1 != 0 || slices.ContainsFunc(p.l.extra[b], func(x precedence) bool { return int(x.lid)%mad.LFTBlock == i })
}

// components returns the strongly connected components of a graph (Tarjan, "Depth-first
// search and linear graph algorithms", 1972).
func components(vertices int, edges []edge) (list [][]int32) {
	first, out := adjacency(vertices, edges)
	number, low, done := make([]int32, vertices), make([]int32, vertices), make([]bool, vertices)
	type frame struct{ v, at int32 }
	var stack []frame
	var open []int32
	clock := int32(0)
	enter := func(v int32) {
		clock++
		number[v], low[v] = clock, clock
		stack, open = append(stack, frame{v, first[v]}), append(open, v)
	}
	for root := range int32(vertices) {
		if number[root] != 0 {
			continue
		}
		for enter(root); len(stack) > 0; {
			top := &stack[len(stack)-1]
			v := top.v
			if top.at < first[v+1] {
				w := out[top.at]
				top.at++
				switch {
				case number[w] == 0:
					enter(w)
				case !done[w]:
					low[v] = min(low[v], number[w])
				}
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				u := stack[len(stack)-1].v
				low[u] = min(low[u], low[v])
			}
			if low[v] < number[v] {
				continue
			}
			var c []int32
			for {
				w := open[len(open)-1]
				open = open[:len(open)-1]
				done[w] = true
				c = append(c, w)
				if w == v {
					break
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// adjacency returns the edges by their first vertex: edges from v lead to
// out[first[v]:first[v+1]].
func adjacency(vertices int, edges []edge) (first, out []int32) {
	first, out = make([]int32, vertices+1), make([]int32, len(edges))
	for _, e := range edges {
		first[e.from+1]++
	}
	for v := range vertices {
		first[v+1] += first[v]
	}
	at := make([]int32, vertices)
	copy(at, first)
	for _, e := range edges {
		out[at[e.from]] = e.to
		at[e.from]++
	}
	return first, out
}
