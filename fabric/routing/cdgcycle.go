package routing

import "slices"

// Acyclic says that there is no cycle.
func (d *CDG) Acyclic() bool { return d.onCycle() < 0 }

// CycleBeyond is a cycle with an edge that before, a graph of the same channels and
// lanes, does not have; nil: there is none. It is a shortest one through that edge.
//
// Time: O(C*V + E), and O(E) for the cycle.
func (d *CDG) CycleBeyond(before *CDG) []int32 {
	component := d.components()
	for v := range component {
		for w, at := d.Next(int32(v), 0); w >= 0; w, at = d.Next(int32(v), at) {
			if component[v] == component[w] && !before.Has(int32(v), w) {
				return d.path(w, int32(v))
			}
		}
	}
	return nil
}

// path is a shortest path, with both ends; nil: there is none.
func (d *CDG) path(from, to int32) []int32 {
	before := slices.Repeat([]int32{-1}, len(d.start)-1)
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
func (d *CDG) components() []int32 {
	n := len(d.start) - 1
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
