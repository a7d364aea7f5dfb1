package verify

import (
	"cmp"
	"math/bits"
	"slices"

	"fabsh/fabric/routing/graph"
)

// DependencyOrder keeps the channels of a dependency graph without cycles in topological
// order while edges are added, and rejects edges that would close a cycle. An order stays
// valid when edges are removed.
//
// Time: O(1) for an edge that agrees with the order; otherwise O(A*log A), where A
// is the number of channels, and edges of these, that lead to or from it and have
// positions between those of its ends.
type DependencyOrder struct {
	*DependencyGraph
	sorted    graph.TopologicalSort
	first     []int32 // by channel: the position at the beginning
	mark      []int32 // by channel: the last search that has met it
	search    int32   // number of the present search
	forward   []int32 // met by the search forward, and by the one backward
	backward  []int32
	stack     []int32
	parent    []int32          // by channel: the one before it in the search forward
	added     [][2]int32       // tentative edges: those added since the last commit
	tentative *DependencyGraph // the same
	Budget    int              // channels that searches may still go through, if not 0; without any left, edges that need one are rejected

	// Edges that were rejected; and of these, those that must be checked again
	// when tentative edges have been removed.
	rejected *DependencyGraph
	recheck  [][2]int32
}

// NewDependencyOrder begins with the edges of d, which must all lead to a later position. There is one of
// each position from 0 up.
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

// Positions are those in which all edges of d, which has no cycle and one lane, lead
// forward: the reverse of the order in which a depth-first search is done with them.
func (d *DependencyGraph) Positions() []int32 {
	type frame struct{ v, at int32 }
	position := slices.Repeat([]int32{-1}, len(d.start)-1)
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

// Positions are those of the channels in the order.
func (o *DependencyOrder) Positions() []int32 { return o.sorted.Position }

// Expects reports whether the edge from v to w is there, or agrees with the first order.
func (o *DependencyOrder) Expects(v, w int32) bool {
	return o.first[v] < o.first[w] || o.Has(v, w)
}

// Agrees reports whether the edge from v to w agrees with the order, as those do that are there:
// then TryAdd needs no search.
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
		y := o.DependencyGraph.first[x]
		for _, word := range o.bits[o.start[x]:o.start[x+1]] {
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
