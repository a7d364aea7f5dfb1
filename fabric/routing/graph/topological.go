package graph

import "slices"

// TopologicalSort is a topological order of vertices that changes as edges are added
// (Pearce, Kelly, "A dynamic topological sort algorithm for directed acyclic graphs",
// 2006). The caller has the edges, and searches them.
type TopologicalSort struct {
	Position []int32 // by vertex
	Vertex   []int32 // by position
	moved    []int32
}

// NewTopologicalSort begins with a position for each vertex, one of each from 0 up. It keeps the slice.
func NewTopologicalSort(position []int32) TopologicalSort {
	vertex := make([]int32, len(position))
	for v, p := range position {
		vertex[p] = int32(v)
	}
	return TopologicalSort{Position: position, Vertex: vertex}
}

// Exchange makes room for an edge from v to w: the vertices of backward, from which edges lead to v,
// and then the vertices of forward, to which edges lead from w, share out the positions of both
// lists, each list in its present order. It overwrites both lists.
//
// Time: O(N*log N) for N vertices in the lists.
func (t *TopologicalSort) Exchange(backward, forward []int32) {
	for _, list := range [][]int32{backward, forward} {
		for i, x := range list {
			list[i] = t.Position[x]
		}
		slices.Sort(list)
	}
	t.moved = t.moved[:0]
	for _, list := range [][]int32{backward, forward} {
		for _, p := range list {
			t.moved = append(t.moved, t.Vertex[p])
		}
	}
	b, f := backward, forward
	for _, x := range t.moved {
		var p int32
		if len(f) == 0 || len(b) > 0 && b[0] < f[0] {
			p, b = b[0], b[1:]
		} else {
			p, f = f[0], f[1:]
		}
		t.Position[x], t.Vertex[p] = p, x
	}
}
