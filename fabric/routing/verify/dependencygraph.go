package verify

import (
	"cmp"
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
)

// DependencyGraph is the channel dependency graph (Dally and Seitz, "Deadlock-free message
// routing in multiprocessor interconnection networks", 1987): a vertex for each
// channel and virtual lane, and an edge from one to the next if some path takes them
// in this order, so that packets on the first may wait for the second. Without a cycle
// no deadlock is possible; with a cycle, a credit loop, it is.
//
// Edges lead only to channels out of the switch at which the first channel ends, so
// a vertex has a bit for each of these and each lane. That takes O(N*P*V*V) bits for
// switches of P ports and V lanes.
type DependencyGraph struct {
	g     *graph.Graph
	vls   int
	place []place // by vertex, and the end
	bits  []uint64
	used  []uint64 // a bit for each vertex: some path takes it
	lanes uint16   // lanes that paths use, those of the links to end ports too, a bit each
}

// place is where the edges of a vertex are. Add reads both, for edges in any order: side by side they take a cache line.
type place struct {
	start int32 // its first word
	first int32 // the vertex that its first bit stands for
}

// NewDependencyGraph is a graph of all channels of g, each with as many virtual lanes, without
// edges.
func NewDependencyGraph(g *graph.Graph, vls int) *DependencyGraph {
	d := &DependencyGraph{g: g, vls: vls, place: make([]place, 0, len(g.Channels())*vls+1)}
	words := int32(0)
	for _, c := range g.Channels() {
		to := c.To
		n := (g.FirstChannel(int(to+1)) - g.FirstChannel(int(to))) * int32(vls)
		for range vls {
			d.place = append(d.place, place{words, g.FirstChannel(int(to)) * int32(vls)})
			words += (n + 63) / 64
		}
	}
	d.place = append(d.place, place{start: words})
	d.bits = make([]uint64, words)
	d.used = make([]uint64, (len(g.Channels())*vls+63)/64)
	return d
}

// Clone is a copy that shares no edges.
func (d *DependencyGraph) Clone() *DependencyGraph {
	c := *d
	c.bits, c.used = slices.Clone(d.bits), slices.Clone(d.used)
	return &c
}

// Vertex is the vertex of a channel and lane.
func (d *DependencyGraph) Vertex(channel int32, vl uint8) int32 {
	return channel*int32(d.vls) + int32(vl)
}

// Add adds the edge from v to w, the vertex of a channel out of the switch at which
// v ends.
func (d *DependencyGraph) Add(v, w int32) {
	word, bit := d.at(v, w)
	d.bits[word] |= bit
}

// Remove removes the edge; v and w are as in Add.
func (d *DependencyGraph) Remove(v, w int32) {
	word, bit := d.at(v, w)
	d.bits[word] &^= bit
}

// Has reports whether there is the edge; v and w are as in Add.
func (d *DependencyGraph) Has(v, w int32) bool {
	word, bit := d.at(v, w)
	return d.bits[word]&bit != 0
}

// at is the place of the edge from v to w.
func (d *DependencyGraph) at(v, w int32) (word uint32, bit uint64) {
	p := &d.place[v]
	i := uint32(w - p.first)
	return uint32(p.start) + i/64, 1 << (i % 64)
}

// words are the edges from v.
func (d *DependencyGraph) words(v int32) []uint64 { return d.bits[d.place[v].start:d.place[v+1].start] }

// Use notes that a path takes v.
func (d *DependencyGraph) Use(v int32) { d.used[v/64] |= 1 << (v % 64) }

// UseLane notes that paths use a lane.
func (d *DependencyGraph) UseLane(vl uint8) { d.lanes |= 1 << (vl & 15) }

// AddAll adds the edges from v for which mask, which begins with the first channel out of the
// switch at which v ends, has a bit. The graph must have one lane.
func (d *DependencyGraph) AddAll(v int32, mask []uint64) {
	edges := d.words(v)
	for k, more := range mask {
		edges[k] |= more
	}
}

// Clear removes all edges.
func (d *DependencyGraph) Clear() { clear(d.bits) }

// Union adds the edges of o, which has as many lanes.
func (d *DependencyGraph) Union(o *DependencyGraph) {
	for i, b := range o.bits {
		d.bits[i] |= b
	}
	for i, b := range o.used {
		d.used[i] |= b
	}
	d.lanes |= o.lanes
}

// Size counts vertices in use and edges.
func (d *DependencyGraph) Size() (vertices, edges int) {
	for _, b := range d.used {
		vertices += bits.OnesCount64(b)
	}
	for _, b := range d.bits {
		edges += bits.OnesCount64(b)
	}
	return vertices, edges
}

// Next is the first vertex from on that v has an edge to, or -1. from is a
// place among v's bits; the place behind it is returned for the next call.
func (d *DependencyGraph) Next(v int32, from int32) (w, after int32) {
	words := d.words(v)
	for i := from / 64; int(i) < len(words); i++ {
		word := words[i]
		if i == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			at := i*64 + int32(bits.TrailingZeros64(word))
			return d.place[v].first + at, at + 1
		}
	}
	return -1, 0
}

// Cycle is a cycle, or nil without one. It is a shortest one through some
// vertex, found by depth-first and breadth-first search in O(C*V + E) time for E
// edges.
func (d *DependencyGraph) Cycle() []int32 {
	on := d.onCycle()
	if on < 0 {
		return nil
	}
	// Breadth-first search from there until it is met again.
	before := slices.Repeat([]int32{-1}, len(d.place)-1)
	queue := []int32{on}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		for w, at := d.Next(v, 0); w >= 0; w, at = d.Next(v, at) {
			if w == on {
				cycle := []int32{v}
				for ; v != on; v = before[v] {
					cycle = append(cycle, before[v])
				}
				slices.Reverse(cycle)
				return cycle
			}
			if before[w] < 0 {
				before[w] = v
				queue = append(queue, w)
			}
		}
	}
	return nil // not reached: on is on a cycle
}

// onCycle is a vertex on a cycle, or -1: a depth-first search meets a vertex on its
// own stack if and only if there is a cycle (Tarjan, "Depth-first search and linear
// graph algorithms", 1972).
func (d *DependencyGraph) onCycle() int32 {
	const (
		fresh = iota
		open
		done
	)
	type frame struct{ v, at int32 }
	colour := make([]uint8, len(d.place)-1)
	var stack []frame
	for root := range colour {
		if colour[root] != fresh {
			continue
		}
		colour[root] = open
		stack = append(stack[:0], frame{int32(root), 0})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			w, at := d.Next(top.v, top.at)
			if w < 0 {
				colour[top.v] = done
				stack = stack[:len(stack)-1]
				continue
			}
			top.at = at
			switch colour[w] {
			case open:
				return w
			case fresh:
				colour[w] = open
				stack = append(stack, frame{w, 0})
			}
		}
	}
	return -1
}

// Acyclic reports whether there is no cycle.
func (d *DependencyGraph) Acyclic() bool { return d.onCycle() < 0 }

// CycleBeyond is a cycle with an edge that before, another graph of d's channels and lanes,
// does not have; or nil. It is a shortest one through that edge.
//
// Time: O(C*V + E), and O(E) for the cycle.
func (d *DependencyGraph) CycleBeyond(before *DependencyGraph) []int32 {
	component := d.components()
	for v := range component {
		for w, at := d.Next(int32(v), 0); w >= 0; w, at = d.Next(int32(v), at) {
			if component[v] == component[w] && !before.Has(int32(v), w) {
				return d.Path(w, int32(v))
			}
		}
	}
	return nil
}

// Path is a shortest path, with both ends; or nil.
//
// Time: O(C*V + E).
func (d *DependencyGraph) Path(from, to int32) []int32 {
	before := slices.Repeat([]int32{-1}, len(d.place)-1)
	before[from] = from
	queue := []int32{from}
	for i := 0; i < len(queue) && before[to] < 0; i++ {
		for w, at := d.Next(queue[i], 0); w >= 0; w, at = d.Next(queue[i], at) {
			if before[w] < 0 {
				before[w] = queue[i]
				queue = append(queue, w)
			}
		}
	}
	if before[to] < 0 {
		return nil
	}
	path := []int32{to}
	for v := to; v != from; v = before[v] {
		path = append(path, before[v])
	}
	slices.Reverse(path)
	return path
}

// components numbers the strongly connected components (Tarjan, "Depth-first search
// and linear graph algorithms", 1972), by vertex. No edge leads to its own vertex.
func (d *DependencyGraph) components() []int32 {
	n := len(d.place) - 1
	number, low := make([]int32, n), make([]int32, n)
	component := slices.Repeat([]int32{-1}, n)
	type frame struct{ v, at int32 }
	var stack []frame
	var open []int32
	clock, count := int32(0), int32(0)
	enter := func(v int32) {
		clock++
		number[v], low[v] = clock, clock
		stack, open = append(stack, frame{v, 0}), append(open, v)
	}
	for root := range int32(n) {
		if number[root] != 0 {
			continue
		}
		for enter(root); len(stack) > 0; {
			top := &stack[len(stack)-1]
			v := top.v
			w, at := d.Next(v, top.at)
			if w >= 0 {
				top.at = at
				switch {
				case number[w] == 0:
					enter(w)
				case component[w] < 0:
					low[v] = min(low[v], number[w])
				}
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				u := stack[len(stack)-1].v
				low[u] = min(low[u], low[v])
			}
			if low[v] == number[v] {
				for {
					w := open[len(open)-1]
					open = open[:len(open)-1]
					component[w] = count
					if w == v {
						break
					}
				}
				count++
			}
		}
	}
	return component
}

// DependencyOrder keeps the channels of a dependency graph without cycles in topological
// order while edges are added, and rejects edges that would close a cycle. An order stays
// valid when edges are removed.
//
// Time: O(1) for an edge that agrees with the order; otherwise O(A*log A), where A
// is the number of channels, and edges of these, that lead to or from it and have
// positions between the positions of its ends.
type DependencyOrder struct {
	*DependencyGraph
	sorted    graph.TopologicalSort
	first     []int32 // by channel: the position at the beginning
	mark      []int32 // by channel: the last search that has met it
	search    int32   // number of the present search
	forward   []int32 // met by the search forward, and by the search backward
	backward  []int32
	stack     []int32
	parent    []int32          // by channel: the channel before it in the search forward
	added     [][2]int32       // tentative edges: added since the last commit
	tentative *DependencyGraph // the tentative edges
	Budget    int              // channels that searches may still go through, if not 0; without any left, edges that need one are rejected

	// Edges that were rejected; and of these, edges that must be checked again
	// when tentative edges have been removed.
	rejected *DependencyGraph
	recheck  [][2]int32
}

// NewDependencyOrder begins with the edges of d, which must all lead to a later position. Each position
// from 0 up occurs once.
func NewDependencyOrder(d *DependencyGraph, position []int32) *DependencyOrder {
	return &DependencyOrder{DependencyGraph: d, sorted: graph.NewTopologicalSort(position), first: slices.Clone(position), mark: make([]int32, len(position)), parent: make([]int32, len(position)), tentative: NewDependencyGraph(d.g, d.vls), rejected: NewDependencyGraph(d.g, d.vls)}
}

// UpDownOrder are positions in which all dependencies of up*/down* lead forward.
func UpDownOrder(g *graph.Graph, r *graph.Ranks) []int32 {
	list := make([]int32, len(g.Channels()))
	for c := range list {
		list[c] = int32(c)
	}
	// Up from the lowest switches first, then down from the highest.
	slices.SortFunc(list, func(i, j int32) int {
		a, b := &g.Channels()[i], &g.Channels()[j]
		up, alsoUp := r.Up(int(a.From), int(a.To)), r.Up(int(b.From), int(b.To))
		switch {
		case up && !alsoUp:
			return -1
		case !up && alsoUp:
			return 1
		}
		c := cmp.Or(cmp.Compare(r.Rank[a.From], r.Rank[b.From]), cmp.Compare(a.From, b.From))
		if up {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(i, j))
	})
	position := make([]int32, len(list))
	for i, c := range list {
		position[c] = int32(i)
	}
	return position
}

// Positions are positions in which all edges of d, which has no cycle and one lane, lead
// forward: the reverse of the order in which a depth-first search is done with the channels.
func (d *DependencyGraph) Positions() []int32 {
	type frame struct{ v, at int32 }
	position := slices.Repeat([]int32{-1}, len(d.place)-1)
	next := int32(len(position))
	met := make([]bool, len(position))
	var stack []frame
	for root := range position {
		if met[root] {
			continue
		}
		met[root] = true
		stack = append(stack, frame{int32(root), 0})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			w, at := d.Next(top.v, top.at)
			switch top.at = at; {
			case w < 0:
				next--
				position[top.v] = next
				stack = stack[:len(stack)-1]
			case !met[w]:
				met[w] = true
				stack = append(stack, frame{w, 0})
			}
		}
	}
	return position
}

// Positions are the positions of the channels in the order.
func (o *DependencyOrder) Positions() []int32 { return o.sorted.Position }

// Expects reports whether the edge from v to w is there, or agrees with the first order.
func (o *DependencyOrder) Expects(v, w int32) bool {
	return o.first[v] < o.first[w] || o.Has(v, w)
}

// Agrees reports whether the edge from v to w agrees with the order, as existing edges do: then
// TryAdd needs no search.
func (o *DependencyOrder) Agrees(v, w int32) bool { return o.sorted.Position[v] < o.sorted.Position[w] }

// TryAdd adds the edge from v to w unless that closes a cycle, and reports whether the
// edge is there now.
func (o *DependencyOrder) TryAdd(v, w int32) bool {
	if o.Has(v, w) {
		return true
	}
	if o.sorted.Position[v] >= o.sorted.Position[w] {
		if o.Budget < 0 || o.rejected.Has(v, w) {
			return false
		}
		if !o.reorder(v, w) {
			o.rejected.Add(v, w)
			return false
		}
	}
	o.Add(v, w)
	o.tentative.Add(v, w)
	o.added = append(o.added, [2]int32{v, w})
	return true
}

// reorder makes room for an edge that leads backward, from v to w: v and what leads
// to it get the first of the positions of all that are involved, w and what it leads
// to the last. False: w leads to v, so there is no such order.
func (o *DependencyOrder) reorder(v, w int32) bool {
	o.search++
	o.forward, o.backward = o.forward[:0], o.backward[:0]
	if o.Budget > 0 {
		defer func() {
			if o.Budget -= len(o.forward) + len(o.backward); o.Budget <= 0 {
				o.Budget = -1
			}
		}()
	}
	// Forward from w, as far as v.
	last := o.sorted.Position[v]
	o.mark[w] = o.search
	o.stack = append(o.stack[:0], w)
	for len(o.stack) > 0 {
		x := o.stack[len(o.stack)-1]
		o.stack = o.stack[:len(o.stack)-1]
		o.forward = append(o.forward, x)
		y := o.place[x].first
		for _, word := range o.words(x) {
			for ; word != 0; word &= word - 1 {
				y := y + int32(bits.TrailingZeros64(word))
				if y == v {
					if o.overTentative(w, x, v) {
						o.recheck = append(o.recheck, [2]int32{v, w})
					}
					return false
				}
				if o.mark[y] != o.search && o.sorted.Position[y] < last {
					o.mark[y], o.parent[y] = o.search, x
					o.stack = append(o.stack, y)
				}
			}
			y += 64
		}
	}
	// Backward from v, as far as w.
	o.mark[v] = o.search
	o.stack = append(o.stack, v)
	for len(o.stack) > 0 {
		x := o.stack[len(o.stack)-1]
		o.stack = o.stack[:len(o.stack)-1]
		o.backward = append(o.backward, x)
		from := o.g.Channels()[x].From
		for c := o.g.FirstChannel(int(from)); c < o.g.FirstChannel(int(from+1)); c++ {
			y := o.g.Channels()[c].Reverse
			if o.mark[y] != o.search && o.sorted.Position[y] > o.sorted.Position[w] && o.Has(y, x) {
				o.mark[y] = o.search
				o.stack = append(o.stack, y)
			}
		}
	}
	o.sorted.Exchange(o.backward, o.forward)
	return true
}

// overTentative reports whether there is a tentative edge on the path from w that the
// search forward has found, over x to v.
func (o *DependencyOrder) overTentative(w, x, v int32) bool {
	for !o.tentative.Has(x, v) {
		if x == w {
			return false
		}
		x, v = o.parent[x], x
	}
	return true
}

// Commit keeps the tentative edges for which keep is true, and removes the others.
func (o *DependencyOrder) Commit(keep func(v, w int32) bool) {
	for _, e := range o.added {
		o.tentative.Remove(e[0], e[1])
		if !keep(e[0], e[1]) {
			o.Remove(e[0], e[1])
		}
	}
	for _, e := range o.recheck {
		o.rejected.Remove(e[0], e[1])
	}
	o.added, o.recheck = o.added[:0], o.recheck[:0]
}
